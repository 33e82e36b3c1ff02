//! Full files of a growing file: compresses them, and removes the oldest.
//!
//! ```text
//! rows.TIME.jsonl ──► some bytes a step ──► a file without a name ──► rows.TIME.jsonl.gz
//! ```
//!
//! A compressed file gets its name when it is whole and on the disk, and the plain one goes after
//! that. So a run that is killed leaves the plain file, which the next run compresses.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read as _, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Instant, SystemTime};

use chrono::{DateTime, Utc};
use flate2::write::GzEncoder;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use trommel_engine::operator::{Counters, Outputs};
use zstd::stream::write::Encoder as ZstdEncoder;

use crate::files::{Destination, FileError, NewFile, folder_of, sync_folder};

/// Bytes that are compressed in one call of the operator.
const STEP_BYTES: usize = 256 << 10;

/// The time in the name of a full file; each 0 stands for a digit.
const TIME: &[u8] = b"00000000T000000.000Z";

/// Compression of full files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RotateCompression {
    /// To files that end in `.gz`.
    Gzip,
    /// To files that end in `.zst`.
    Zstd,
}

impl RotateCompression {
    fn extension(self) -> &'static str {
        match self {
            Self::Gzip => ".gz",
            Self::Zstd => ".zst",
        }
    }
}

/// Rules for full files.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ArchiveRules {
    pub(super) compress: Option<RotateCompression>,
    /// Number of full files that stay.
    pub(super) keep: Option<usize>,
}

/// The full files beside a growing one.
pub(super) struct Archive {
    /// The growing file.
    path: PathBuf,
    rules: ArchiveRules,
    outputs: Outputs,
    /// Plain files that are to be compressed.
    waiting: VecDeque<PathBuf>,
    packing: Option<Packing>,
    /// Any time in the past.
    begun: Instant,
    compressed: u64,
    removed: u64,
}

/// A file that is being compressed.
struct Packing {
    path: PathBuf,
    plain: File,
    block: Vec<u8>,
    encoder: Encoder,
}

enum Encoder {
    Gzip(GzEncoder<Unfinished>),
    Zstd(ZstdEncoder<'static, Unfinished>),
}

/// A compressed file that is not whole yet.
struct Unfinished(NewFile);

/// A full file, by the time and the number in its name.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct FullFile {
    time: Vec<u8>,
    number: u64,
    is_plain: bool,
    path: PathBuf,
}

impl Archive {
    pub(super) fn new(path: &Path, rules: ArchiveRules, outputs: Outputs) -> Self {
        Self {
            path: path.to_owned(),
            rules,
            outputs,
            waiting: VecDeque::new(),
            packing: None,
            begun: Instant::now(),
            compressed: 0,
            removed: 0,
        }
    }

    /// Takes over the full files of earlier runs.
    pub(super) fn begin(&mut self) -> io::Result<()> {
        if self.rules.compress.is_some() {
            let plain = full_files(&self.path)?.into_iter().filter(|file| file.is_plain);
            self.waiting = plain.map(|file| file.path).collect();
        }
        self.prune()
    }

    /// Renames the growing file, which is full, to an unused name that contains the current time.
    pub(super) fn add(&mut self) -> io::Result<()> {
        let full = rename_full(&self.path)?;
        if self.rules.compress.is_some() {
            self.waiting.push_back(full);
        }
        self.prune()
    }

    /// Removes the oldest full files, if there are too many.
    fn prune(&mut self) -> io::Result<()> {
        let Some(keep) = self.rules.keep else { return Ok(()) };
        let files = full_files(&self.path)?;
        // A file that was compressed just before its run was killed is there in both forms.
        let same = |one: &FullFile, other: &FullFile| {
            (&one.time, one.number) == (&other.time, other.number)
        };
        let groups: Vec<&[FullFile]> = files.chunk_by(same).collect();
        for file in groups[..groups.len().saturating_sub(keep)].iter().copied().flatten() {
            self.waiting.retain(|path| *path != file.path);
            if self.packing.as_ref().is_some_and(|packing| packing.path == file.path) {
                self.packing = None;
            }
            fs::remove_file(&file.path)?;
            self.removed += 1;
        }
        Ok(())
    }

    /// Whether files wait to be compressed.
    pub(super) fn has_work(&self) -> bool {
        self.packing.is_some() || !self.waiting.is_empty()
    }

    /// The time of the next step, if there is one.
    pub(super) fn wake_at(&self) -> Option<Instant> {
        self.has_work().then_some(self.begun)
    }

    /// Compresses some bytes more.
    pub(super) fn step(&mut self) -> Result<(), FileError> {
        let Some(mut packing) = self.take_packing()? else { return Ok(()) };
        let blame =
            |path: &Path, source| FileError::Io { path: path.display().to_string(), source };
        let read = packing.plain.read(&mut packing.block);
        let bytes = read.map_err(|error| blame(&packing.path, error))?;
        if bytes > 0 {
            let written = packing.encoder.write_all(&packing.block[..bytes]);
            written.map_err(|error| blame(&packing.path, error))?;
            self.packing = Some(packing);
            return Ok(());
        }
        let Packing { path, encoder, .. } = packing;
        encoder.finish().map_err(|error| blame(&path, error))?.0.commit()?;
        let removed = fs::remove_file(&path).and_then(|()| sync_folder(&path));
        removed.map_err(|error| blame(&path, error))?;
        self.compressed += 1;
        Ok(())
    }

    /// The file in progress, or else the next one.
    fn take_packing(&mut self) -> Result<Option<Packing>, FileError> {
        if self.packing.is_some() {
            return Ok(self.packing.take());
        }
        let (Some(compression), Some(path)) = (self.rules.compress, self.waiting.pop_front())
        else {
            return Ok(None);
        };
        let plain = match File::open(&path) {
            Ok(plain) => plain,
            // Another program has moved or removed it.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => {
                return Err(FileError::Io { path: path.display().to_string(), source });
            }
        };
        let mut name = path.clone().into_os_string();
        name.push(compression.extension());
        let packed = Destination::file(Path::new(&name))?.within(self.outputs.clone());
        let unfinished = Unfinished(packed.replace()?);
        let encoder = match compression {
            RotateCompression::Gzip => {
                Encoder::Gzip(GzEncoder::new(unfinished, flate2::Compression::default()))
            }
            RotateCompression::Zstd => Encoder::zstd(unfinished).map_err(|e| packed.error(e))?,
        };
        Ok(Some(Packing { path, plain, block: vec![0; STEP_BYTES], encoder }))
    }

    /// Counters for the report, of what the rules ask for.
    pub(super) fn counters(&self) -> Counters {
        let ArchiveRules { compress, keep } = self.rules;
        let compressed = compress.map(|_| ("files_compressed", self.compressed));
        compressed.into_iter().chain(keep.map(|_| ("files_removed", self.removed))).collect()
    }
}

impl Encoder {
    fn zstd(file: Unfinished) -> io::Result<Self> {
        let mut encoder = ZstdEncoder::new(file, zstd::DEFAULT_COMPRESSION_LEVEL)?;
        encoder.include_checksum(true)?;
        Ok(Self::Zstd(encoder))
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Gzip(encoder) => encoder.write_all(bytes),
            Self::Zstd(encoder) => encoder.write_all(bytes),
        }
    }

    /// Writes the end of the compressed file.
    fn finish(self) -> io::Result<Unfinished> {
        match self {
            Self::Gzip(encoder) => encoder.finish(),
            Self::Zstd(encoder) => encoder.finish(),
        }
    }
}

impl Write for Unfinished {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes).map_err(into_io)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The error of the operating system in an error of a file.
pub(super) fn into_io(error: FileError) -> io::Error {
    match error {
        FileError::Io { source, .. } => source,
        other => io::Error::other(other),
    }
}

/// Renames a full file to an unused name that contains the current time.
fn rename_full(path: &Path) -> io::Result<PathBuf> {
    let time = DateTime::<Utc>::from(SystemTime::now()).format("%Y%m%dT%H%M%S%.3fZ").to_string();
    for number in 1_u64.. {
        let to = full_name(path, &time, number);
        match renameat_with(CWD, path, CWD, &to, RenameFlags::NOREPLACE) {
            Err(Errno::EXIST) => {}
            // The file system cannot rename without replacing. The check before it suffices: no
            // other program uses names like these.
            Err(Errno::INVAL | Errno::NOSYS) if !to.exists() => {
                fs::rename(path, &to)?;
                sync_folder(path)?;
                return Ok(to);
            }
            Err(Errno::INVAL | Errno::NOSYS) => {}
            renamed => {
                renamed?;
                sync_folder(path)?;
                return Ok(to);
            }
        }
    }
    unreachable!("there are more numbers than files")
}

/// Name of a full file: `rows.TIME.jsonl` for `rows.jsonl`, `rows.TIME-2.jsonl` if that exists.
fn full_name(path: &Path, time: &str, number: u64) -> PathBuf {
    let mut name = OsString::from(path.file_stem().unwrap_or_default());
    name.push(".");
    name.push(time);
    if number > 1 {
        name.push(format!("-{number}"));
    }
    if let Some(extension) = path.extension() {
        name.push(".");
        name.push(extension);
    }
    path.with_file_name(name)
}

/// The full files of the growing file at `path`, from the oldest on.
fn full_files(path: &Path) -> io::Result<Vec<FullFile>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder_of(path))? {
        let entry = entry?;
        let name = entry.file_name();
        let Some((time, number, is_plain)) = parts_of_name(path, name.as_bytes()) else { continue };
        if entry.file_type()?.is_file() {
            let time = time.to_vec();
            found.push(FullFile { time, number, is_plain, path: entry.path() });
        }
    }
    found.sort_unstable();
    Ok(found)
}

/// Time and number in the `name` of a full file, and whether it is not compressed; none for any
/// other file.
fn parts_of_name<'a>(path: &Path, name: &'a [u8]) -> Option<(&'a [u8], u64, bool)> {
    let rest = name.strip_prefix(path.file_stem()?.as_bytes())?.strip_prefix(b".")?;
    let (time, mut rest) = rest.split_at_checked(TIME.len())?;
    let fits = |(byte, like): (&u8, &u8)| byte == like || *like == b'0' && byte.is_ascii_digit();
    if !time.iter().zip(TIME).all(fits) {
        return None;
    }
    let mut number = 1;
    if let Some(after) = rest.strip_prefix(b"-") {
        let (digits, more) =
            after.split_at(after.iter().take_while(|byte| byte.is_ascii_digit()).count());
        number = str::from_utf8(digits).ok()?.parse().ok()?;
        rest = more;
    }
    if let Some(extension) = path.extension() {
        rest = rest.strip_prefix(b".")?.strip_prefix(extension.as_bytes())?;
    }
    match rest {
        b"" => Some((time, number, true)),
        b".gz" | b".zst" => Some((time, number, false)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_files_are_told_by_their_names() {
        let parts = |path: &str, name: &str| {
            let found = parts_of_name(Path::new(path), name.as_bytes());
            found.map(|(time, number, is_plain)| {
                (String::from_utf8(time.to_vec()).unwrap(), number, is_plain)
            })
        };
        let time = "20261122T053312.123Z";
        for (path, end) in [("a/rows.jsonl", ".jsonl"), ("rows", "")] {
            for number in [1, 2, 17] {
                let name = full_name(Path::new(path), time, number);
                let name = name.file_name().unwrap().to_str().unwrap().to_owned();
                for (more, is_plain) in [("", true), (".gz", false), (".zst", false)] {
                    let expected = Some((time.to_owned(), number, is_plain));
                    assert_eq!(parts(path, &format!("{name}{more}")), expected);
                }
                assert_eq!(parts(path, &format!("{name}.bak")), None);
            }
            for other in ["rows", "rows.old", "rows.20261122T053312.123Y", "rows.2026"] {
                assert_eq!(parts(path, &format!("{other}{end}")), None, "{other}");
            }
            assert_eq!(parts(path, &format!("my-rows.{time}{end}")), None);
        }
        assert_eq!(parts("rows.jsonl", &format!("rows.{time}.csv")), None);
        assert_eq!(parts("rows.jsonl", &format!("rows.{time}-.jsonl")), None);
    }
}
