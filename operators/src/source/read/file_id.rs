//! Identity of a file, independent of its names.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;

/// Device and inode of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct FileId {
    device: u64,
    inode: u64,
}

impl FileId {
    /// Identity of the file that `metadata` describes.
    pub(super) fn of(metadata: &Metadata) -> Self {
        Self { device: metadata.dev(), inode: metadata.ino() }
    }

    /// Identity of standard input; `None` if it is closed.
    pub(super) fn of_stdin() -> Option<Self> {
        let stat = rustix::fs::fstat(rustix::stdio::stdin()).ok()?;
        Some(Self { device: stat.st_dev, inode: stat.st_ino })
    }
}
