//! Compression of a file, recognised by its name or by its first bytes.

use std::path::Path;

/// Compression format of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Compression {
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

/// Magic numbers of the formats. The magic numbers of gzip, zstd and xz cannot begin a text in
/// UTF-8. The magic number of bzip2 can, so all ten bytes of it must match.
const MAGIC: [(Compression, &[u8]); 4] = [
    (Compression::Gzip, b"\x1f\x8b\x08"),
    (Compression::Zstd, b"\x28\xb5\x2f\xfd"),
    (Compression::Xz, b"\xfd7zXZ\0"),
    (Compression::Bzip2, b"BZh 1AY&SY"),
];

/// Bytes 1 to 3 of a skippable frame, which may begin a zstd file; `pzstd` writes such files. The
/// first byte has one of 16 values. A text has no control character there.
const SKIPPABLE: &[u8] = b"\x2a\x4d\x18";
/// The upper half of the first byte of a skippable frame.
const SKIPPABLE_FIRST: u8 = 5;

/// Bytes needed to recognise every format.
pub(crate) const START_BYTES: usize = 10;

impl Compression {
    /// Compression by the extension of `path`.
    pub(crate) fn of_name(path: &Path) -> Self {
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
    pub(crate) fn of_start(start: &[u8]) -> Option<Self> {
        // At most one magic number agrees with a given start: they differ in their first bytes.
        let skippable = start.first().filter(|&&first| first >> 4 == SKIPPABLE_FIRST);
        let (compression, bytes) = match MAGIC.iter().find(|(_, magic)| agree(magic, start)) {
            Some((compression, magic)) => (*compression, magic.len()),
            None if skippable.is_some() && agree(SKIPPABLE, &start[1..]) => {
                (Self::Zstd, 1 + SKIPPABLE.len())
            }
            None => return Some(Self::None),
        };
        // A shorter start than the whole magic number may still turn out to be text.
        (start.len() >= bytes).then_some(compression)
    }

    /// True if `start`, at least [`START_BYTES`] long or the whole file, begins a file of this
    /// format.
    pub(crate) fn fits(self, start: &[u8]) -> bool {
        Self::of_start(start) == Some(self)
    }

    /// Name for messages.
    pub(crate) fn name(self) -> &'static str {
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
            (b"P", None),
            (b"Plain", Some(Compression::None)),
            (b"\x50\x2a\x4d\x18\x04", Some(Compression::Zstd)),
            (b"\x5f\x2a\x4d\x18", Some(Compression::Zstd)),
            (b"\x60\x2a\x4d\x18", Some(Compression::None)),
        ] {
            assert_eq!(Compression::of_start(start), expected, "{start:?}");
        }
        assert!(Compression::Zstd.fits(b"\x50\x2a\x4d\x18\0\0\0\0"));
        assert!(!Compression::Gzip.fits(b"plain text"));
    }
}
