//! Full files of a growing file: compresses full files, and removes the oldest.
//!
//! ```text
//! rows.TIME.jsonl ──► some bytes per step ──► a file without a name ──► rows.TIME.jsonl.gz
//! ```
//!
//! A compressed file gets its name when it is whole and on the disk, and the plain file is removed
//! after that. If a run is killed before, the plain file stays, and the next run compresses it.

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read as _, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use chrono::{DateTime, Utc};
use flate2::write::GzEncoder;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use trommel_engine::operator::{Counters, Outputs};
use zstd::stream::write::Encoder as ZstdEncoder;

use super::rotated::{RotatedNames, time_of};
use crate::shared::files::{Destination, FileError, NewFile, folder_of, sync_folder};

/// Bytes that one call of the operator compresses.
const STEP_BYTES: usize = 256 << 10;

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
pub(crate) struct ArchiveRules {
    pub(crate) compress: Option<RotateCompression>,
    /// Maximum number of full files that stay.
    pub(crate) keep: Option<usize>,
}

/// The full files next to a growing file.
pub(crate) struct Archive {
    /// The growing file.
    path: PathBuf,
    rules: ArchiveRules,
    names: RotatedNames,
    outputs: Outputs,
    /// Plain files that wait to be compressed.
    waiting: VecDeque<PathBuf>,
    packing: Option<Packing>,
    /// A time in the past, which makes the operator wake at once.
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

/// A compressed file that is not complete.
struct Unfinished(NewFile);

/// A full file, by the time in its name.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct FullFile {
    time: DateTime<Utc>,
    is_plain: bool,
    path: PathBuf,
}

impl Archive {
    pub(crate) fn new(path: &Path, rules: ArchiveRules, outputs: Outputs) -> Self {
        Self {
            path: path.to_owned(),
            rules,
            names: RotatedNames::default(),
            outputs,
            waiting: VecDeque::new(),
            packing: None,
            begun: Instant::now(),
            compressed: 0,
            removed: 0,
        }
    }

    /// Takes over the full files of earlier runs.
    pub(crate) fn begin(&mut self) -> io::Result<()> {
        if self.rules.compress.is_some() {
            let plain = full_files(&self.path)?.into_iter().filter(|file| file.is_plain);
            self.waiting = plain.map(|file| file.path).collect();
        }
        self.prune()
    }

    /// Renames the growing file, which is full, to an unused name that contains the current time.
    pub(crate) fn add(&mut self) -> io::Result<()> {
        let full = self.names.rename(&self.path)?;
        if self.rules.compress.is_some() {
            self.waiting.push_back(full);
        }
        self.prune()
    }

    /// Removes the oldest full files, if the number of full files exceeds `keep`.
    fn prune(&mut self) -> io::Result<()> {
        let Some(keep) = self.rules.keep else { return Ok(()) };
        let files = full_files(&self.path)?;
        // If a run was killed just after it had compressed a file, the file exists in both forms.
        let same = |one: &FullFile, other: &FullFile| one.time == other.time;
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
    pub(crate) fn has_work(&self) -> bool {
        self.packing.is_some() || !self.waiting.is_empty()
    }

    /// The time of the next step; `None` if no file waits.
    pub(crate) fn wake_at(&self) -> Option<Instant> {
        self.has_work().then_some(self.begun)
    }

    /// Compresses the next bytes.
    pub(crate) fn step(&mut self) -> Result<(), FileError> {
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

    /// The file in progress, or the next file that waits.
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
            // Another program has moved or removed the file.
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

    /// Counters for the report, for the rules that are set.
    pub(crate) fn counters(&self) -> Counters {
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
pub(crate) fn into_io(error: FileError) -> io::Error {
    match error {
        FileError::Io { source, .. } => source,
        other => io::Error::other(other),
    }
}

/// The full files of the growing file at `path`, from the oldest on.
fn full_files(path: &Path) -> io::Result<Vec<FullFile>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder_of(path))? {
        let entry = entry?;
        let name = entry.file_name();
        let Some((time, is_plain)) = parts_of_name(path, &name) else { continue };
        if entry.file_type()?.is_file() {
            found.push(FullFile { time, is_plain, path: entry.path() });
        }
    }
    found.sort_unstable();
    Ok(found)
}

/// The time in the name of a full file, and whether the file is not compressed; `None` for any
/// other file.
fn parts_of_name(path: &Path, name: &OsStr) -> Option<(DateTime<Utc>, bool)> {
    if let Some(time) = time_of(path, name) {
        return Some((time, true));
    }
    let bytes = name.as_bytes();
    let plain = bytes.strip_suffix(b".gz").or_else(|| bytes.strip_suffix(b".zst"))?;
    Some((time_of(path, OsStr::from_bytes(plain))?, false))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_files_are_told_by_their_names_compressed_or_not() {
        let parts = |name: &str| parts_of_name(Path::new("a/rows.jsonl"), name.as_ref());
        let name = "rows.20261122T053312.123Z.jsonl";
        let time = time_of(Path::new("a/rows.jsonl"), name.as_ref()).unwrap();
        for (more, is_plain) in [("", true), (".gz", false), (".zst", false)] {
            assert_eq!(parts(&format!("{name}{more}")), Some((time, is_plain)));
        }
        for other in [".bak", ".gz.bak", ".zst.gz", "gz"] {
            assert_eq!(parts(&format!("{name}{other}")), None, "{other}");
        }
    }
}
