//! The bytes of a segment, in memory or in a mapped file.

use std::ops::Range;
use std::sync::Arc;

use trommel_kernels::inverted::SegmentBytes;
use trommel_kernels::mapped::MappedFile;

/// Bytes that a segment owns or maps.
#[derive(Debug)]
pub(super) enum IndexBytes {
    Memory(SegmentBytes),
    Mapped(Arc<MappedFile>, Range<usize>),
}

impl AsRef<[u8]> for IndexBytes {
    #[inline]
    fn as_ref(&self) -> &[u8] {
        match self {
            Self::Memory(bytes) => bytes.as_ref(),
            Self::Mapped(file, range) => &file.bytes()[range.clone()],
        }
    }
}

impl From<SegmentBytes> for IndexBytes {
    fn from(bytes: SegmentBytes) -> Self {
        Self::Memory(bytes)
    }
}
