//! Names of files that were rotated: `rows.20261122T053312.123Z.jsonl` for `rows.jsonl`.
//!
//! The names in one folder sort in the order of rotation. If a time is not later than the time of
//! the last file, or if its name is taken, the name gets the next millisecond.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use chrono::{DateTime, NaiveDateTime, TimeDelta, Utc};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;

use crate::shared::files::sync_folder;

/// Form of the time in a name.
const TIME: &str = "%Y%m%dT%H%M%S%.3fZ";

/// The names of the rotated files of one growing file.
#[derive(Debug, Default)]
pub(crate) struct RotatedNames {
    /// Time in the last name.
    last: Option<DateTime<Utc>>,
}

impl RotatedNames {
    /// Renames a full file to an unused name with the current time, and returns the new path.
    pub(crate) fn rename(&mut self, path: &Path) -> io::Result<PathBuf> {
        let next = self.last.map(|last| last + TimeDelta::milliseconds(1));
        let now = DateTime::<Utc>::from(SystemTime::now());
        let mut time = next.map_or(now, |next| next.max(now));
        let mut to = full_name(path, time);
        while !rename_to(path, &to)? {
            time += TimeDelta::milliseconds(1);
            to = full_name(path, time);
        }
        self.last = Some(time);
        sync_folder(path)?;
        Ok(to)
    }
}

/// Renames a file; false if the name is taken.
fn rename_to(path: &Path, to: &Path) -> io::Result<bool> {
    match renameat_with(CWD, path, CWD, to, RenameFlags::NOREPLACE) {
        Err(Errno::EXIST) => Ok(false),
        // This file system has no rename that refuses to replace a file. The check in advance
        // suffices, since no other program uses names of this form.
        Err(Errno::INVAL | Errno::NOSYS) if !to.exists() => fs::rename(path, to).map(|()| true),
        Err(Errno::INVAL | Errno::NOSYS) => Ok(false),
        renamed => Ok(renamed.map(|()| true)?),
    }
}

/// Name of a full file: `rows.TIME.jsonl` for `rows.jsonl`.
fn full_name(path: &Path, time: DateTime<Utc>) -> PathBuf {
    let mut name = OsString::from(path.file_stem().unwrap_or_default());
    name.push(format!(".{}", time.format(TIME)));
    if let Some(extension) = path.extension() {
        name.push(".");
        name.push(extension);
    }
    path.with_file_name(name)
}

/// The time in the name of a file that was rotated from `path`; `None` for any other name.
pub(crate) fn time_of(path: &Path, name: &OsStr) -> Option<DateTime<Utc>> {
    let stem = path.file_stem()?.as_encoded_bytes();
    let rest = name.as_encoded_bytes().strip_prefix(stem)?.strip_prefix(b".")?;
    let time = match path.extension() {
        Some(extension) => rest.strip_suffix(extension.as_encoded_bytes())?.strip_suffix(b".")?,
        None => rest,
    };
    let time = NaiveDateTime::parse_from_str(str::from_utf8(time).ok()?, TIME).ok()?.and_utc();
    // The same time can be written in several forms, and only the form of `full_name` counts.
    (full_name(path, time).file_name() == Some(name)).then_some(time)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_one_millisecond_sort_as_the_files_were_rotated() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["rows.jsonl", "rows"] {
            let path = folder.path().join(name);
            let mut names = RotatedNames::default();
            for number in 0..300 {
                fs::write(&path, number.to_string()).unwrap();
                names.rename(&path).unwrap();
            }
            let entries = fs::read_dir(folder.path()).unwrap();
            let mut found: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
            found.sort_unstable();
            let order = found.iter().map(|path| fs::read_to_string(path).unwrap());
            let order: Vec<usize> = order.map(|number| number.parse().unwrap()).collect();
            assert_eq!(order, (0..300).collect::<Vec<_>>());
            found.iter().for_each(|path| fs::remove_file(path).unwrap());
        }
    }

    #[test]
    fn only_names_of_this_file_are_its_own() {
        let time = "20261122T053312.123Z";
        let own = [("rows.jsonl", format!("rows.{time}.jsonl")), ("rows", format!("rows.{time}"))];
        for (path, name) in own {
            let found = time_of(Path::new(path), name.as_ref()).expect("a name of this file");
            assert_eq!(found.format(TIME).to_string(), time);
        }
        let others = [
            format!("rows2.{time}.jsonl"),
            format!("rows.{time}.csv"),
            format!("rows.{time}"),
            format!("rows.x{time}.jsonl"),
            "rows.20261122T053312Z.jsonl".to_owned(),
            "rows.20261322T053312.123Z.jsonl".to_owned(),
            "rows.2026.jsonl".to_owned(),
            "rows.jsonl".to_owned(),
        ];
        for name in others {
            assert_eq!(time_of(Path::new("/a/rows.jsonl"), name.as_ref()), None, "{name}");
        }
    }
}
