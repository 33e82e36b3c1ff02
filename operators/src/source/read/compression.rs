//! Compression of a file, recognised by its name or by its first bytes.

use std::path::Path;

/// Compression format of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Compression {
    None,
    Gzip,
    Zstd,
    /// Recognised, to name it in the error, but not supported.
    Bzip2,
    /// Recognised, to name it in the error, but not supported.
    Xz,
}

/// Wildcard in [`MAGIC`]: any byte matches. No magic number contains it.
const ANY: u8 = 0x20;

/// Magic numbers of the formats. The ones of gzip, zstd and xz cannot begin a text in UTF-8. The
/// one of bzip2 can, so all ten bytes of it must match.
const MAGIC: [(Compression, &[u8]); 4] = [
    (Compression::Gzip, b"\x1f\x8b\x08"),
    (Compression::Zstd, b"\x28\xb5\x2f\xfd"),
    (Compression::Xz, b"\xfd7zXZ\0"),
    (Compression::Bzip2, b"BZh 1AY&SY"),
];

/// Bytes 1 to 3 of a skippable frame, with which a zstd file may begin. They are valid text, so
/// they count only in files named .zst.
const SKIPPABLE: &[u8] = b"\x2a\x4d\x18";

/// Bytes needed to recognise every format.
pub(super) const START_BYTES: usize = 10;

impl Compression {
    /// Compression by the extension of `path`.
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

    /// Compression by the first bytes of a file; `None` while more bytes are needed.
    pub(super) fn of_start(start: &[u8]) -> Option<Self> {
        // At most one magic number agrees with a given start: they differ in their first bytes.
        let mut agreeing = MAGIC.iter().filter(|(_, magic)| agree(magic, start));
        match agreeing.next() {
            // The whole magic number has been seen; a shorter start may still turn out to be
            // text.
            Some((compression, magic)) if start.len() >= magic.len() => Some(*compression),
            Some(_) => None,
            None => Some(Self::None),
        }
    }

    /// True if `start`, at least [`START_BYTES`] long or the whole file, begins a file of this
    /// format.
    pub(super) fn fits(self, start: &[u8]) -> bool {
        let is_skippable = start.len() >= 4 && start[0] >> 4 == 5 && &start[1..4] == SKIPPABLE;
        Self::of_start(start) == Some(self) || (self == Self::Zstd && is_skippable)
    }

    /// Name for messages.
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

/// True if `magic` and `start` agree in their common length.
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
