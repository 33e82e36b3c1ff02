//! How a file is compressed: by its name, or by its first bytes.

use std::path::Path;

/// How a file is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Compression {
    None,
    Gzip,
    Zstd,
    /// Not supported.
    Bzip2,
    /// Not supported.
    Xz,
}

/// Stands for any byte; no magic number has it.
const ANY: u8 = 0x20;

/// The magic numbers of the formats. None of those of gzip, zstd and xz can begin a text in UTF-8;
/// that of bzip2 can, so all ten bytes of it are asked for.
const MAGIC: [(Compression, &[u8]); 4] = [
    (Compression::Gzip, b"\x1f\x8b\x08"),
    (Compression::Zstd, b"\x28\xb5\x2f\xfd"),
    (Compression::Xz, b"\xfd7zXZ\0"),
    (Compression::Bzip2, b"BZh 1AY&SY"),
];

/// A zstd file may begin with a frame to be skipped, whose magic number is good text.
const SKIPPABLE: &[u8] = b"\x2a\x4d\x18";

/// Bytes that are looked at.
pub(super) const START_BYTES: usize = 10;

impl Compression {
    /// By the name of the file.
    pub(super) fn of_name(path: &Path) -> Self {
        let extension = path.extension().and_then(|extension| extension.to_str());
        let is = |name: &str| extension.is_some_and(|e| e.eq_ignore_ascii_case(name));
        if is("gz") {
            Self::Gzip
        } else if is("zst") {
            Self::Zstd
        } else if is("bz2") {
            Self::Bzip2
        } else if is("xz") {
            Self::Xz
        } else {
            Self::None
        }
    }

    /// By the first bytes of the file; `None` while more of them are needed.
    pub(super) fn of_start(start: &[u8]) -> Option<Self> {
        let mut agreeing = MAGIC.iter().filter(|(_, magic)| agree(magic, start));
        match agreeing.next() {
            Some((compression, magic)) if start.len() >= magic.len() => Some(*compression),
            Some(_) => None,
            None => Some(Self::None),
        }
    }

    /// Whether these first bytes, at least [`START_BYTES`] or the whole file, are of a file that is
    /// compressed in this way.
    pub(super) fn fits(self, start: &[u8]) -> bool {
        let is_skippable = start.len() >= 4 && start[0] >> 4 == 5 && &start[1..4] == SKIPPABLE;
        Self::of_start(start) == Some(self) || (self == Self::Zstd && is_skippable)
    }

    /// How messages name it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::None => "not compressed",
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
            Self::Bzip2 => "bzip2",
            Self::Xz => "xz",
        }
    }
}

/// Whether the bytes are the same as far as both go.
fn agree(magic: &[u8], start: &[u8]) -> bool {
    magic.iter().zip(start).all(|(&magic, &byte)| magic == ANY || magic == byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_start_is_decided_as_early_as_possible() {
        for (start, expected) in [
            (&b""[..], None),
            (b"a", Some(Compression::None)),
            (b"\x1f", None),
            (b"\x1f\x8b\x08", Some(Compression::Gzip)),
            (b"\x1f\x8b\x07", Some(Compression::None)),
            (b"\x28\xb5\x2f", None),
            (b"\x28\xb5\x2f\xfd", Some(Compression::Zstd)),
            (b"BZh91AY&S", None),
            (b"BZh51AY&SY", Some(Compression::Bzip2)),
            (b"BZh5 is text", Some(Compression::None)),
            (b"\xfd7zXZ\0", Some(Compression::Xz)),
        ] {
            assert_eq!(Compression::of_start(start), expected, "{start:?}");
        }
        assert!(Compression::Zstd.fits(b"\x50\x2a\x4d\x18\0\0\0\0"));
        assert!(!Compression::Gzip.fits(b"plain text"));
    }
}
