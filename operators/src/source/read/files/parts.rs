//! Parts of compressed files that can be decompressed on their own: frames of zstd, and blocks of
//! bgzip.
//!
//! The bytes of a part are found without decompression. A frame of zstd states its size without
//! compression, and each of its blocks the bytes of the block in the file (RFC 8878). A block of
//! bgzip is a member of gzip that states its bytes in the file in an extra field of the header, and
//! its size without compression at the end. A decoder that reads the part checks the sizes without
//! compression.

use std::fs::File;
use std::io;

use super::compression::Compression;
use super::ranged::read_all;

/// The first bytes of a frame of zstd.
const FRAME: u32 = 0xfd2f_b528;
/// The first bytes of a frame that has no content, without the lower half of the first byte.
const SKIPPABLE: u32 = 0x184d_2a50;
/// Maximum bytes of the header of a frame, with the first bytes.
const FRAME_HEADER_BYTES: usize = 18;
/// Bytes of the header of a block of zstd, and of a checksum.
const BLOCK_HEADER_BYTES: usize = 3;
const CHECKSUM_BYTES: u64 = 4;

/// Bytes of the header of a member of gzip up to the extra field, and the beginning of a header
/// with an extra field and nothing else.
const MEMBER_HEADER_BYTES: usize = 12;
const MEMBER: &[u8] = b"\x1f\x8b\x08\x04";
/// Maximum bytes of an extra field.
const EXTRA_BYTES_MAX: usize = 64;
/// Name and length of the subfield that has the bytes of the member.
const MEMBER_BYTES: &[u8] = b"BC\x02\x00";
/// Maximum bytes of a block of bgzip without compression.
const BLOCK_BYTES_MAX: u64 = 64 << 10;
/// Bytes of the size at the end of a member.
const SIZE_BYTES: usize = 4;

/// Maximum bytes of a part without compression. A decoder of a larger frame may need as much
/// memory, and each copy of a source has a decoder.
const PART_BYTES_MAX: u64 = 64 << 20;

/// A border between two parts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Border {
    /// First byte of the next part in the file.
    pub(crate) packed: u64,
    /// The same place without compression.
    pub(crate) plain: u64,
}

/// Walks over the parts of a file.
pub(crate) struct Parts {
    compression: Compression,
    at: Border,
}

impl Parts {
    /// The parts of a file that is compressed in this way.
    pub(crate) fn new(compression: Compression) -> Self {
        Self { compression, at: Border::default() }
    }

    /// The first border after at least this number of bytes without compression, if a part with a
    /// size stands on both sides. Without such a border, the rest of the file is not cut.
    pub(crate) fn next(&mut self, file: &File, bytes: u64) -> io::Result<Option<Border>> {
        let enough = self.at.plain.saturating_add(bytes);
        while let Some(part) = self.part(file)? {
            if self.at.plain >= enough {
                return Ok(Some(self.at));
            }
            self.at.packed += part.packed;
            self.at.plain += part.plain;
        }
        Ok(None)
    }

    /// Bytes of the next part.
    fn part(&self, file: &File) -> io::Result<Option<Border>> {
        match self.compression {
            Compression::Zstd => frame(file, self.at.packed),
            Compression::Gzip => member(file, self.at.packed),
            _ => Ok(None),
        }
    }
}

/// A little-endian number of at most 8 bytes; `None` if bytes are missing.
fn number(bytes: Option<&[u8]>) -> Option<u64> {
    let bytes = bytes?.iter().rev();
    Some(bytes.fold(0, |number, &byte| number << 8 | u64::from(byte)))
}

/// Bytes of a frame of zstd in the file and without compression.
fn frame(file: &File, at: u64) -> io::Result<Option<Border>> {
    let mut header = [0; FRAME_HEADER_BYTES];
    let filled = read_all(file, &mut header, at)?;
    let header = &header[..filled];
    let Some(mark) = number(header.get(..4)).and_then(|mark| u32::try_from(mark).ok()) else {
        return Ok(None);
    };
    if mark & !0xf == SKIPPABLE {
        return Ok(number(header.get(4..8)).map(|bytes| Border { packed: 8 + bytes, plain: 0 }));
    }
    let Some((bytes, plain, has_checksum)) = frame_header(header).filter(|_| mark == FRAME) else {
        return Ok(None);
    };
    if plain > PART_BYTES_MAX {
        return Ok(None);
    }
    let mut packed = bytes;
    loop {
        let mut block = [0; BLOCK_HEADER_BYTES];
        if read_all(file, &mut block, at + packed)? < block.len() {
            return Ok(None);
        }
        let block = number(Some(&block)).expect("three bytes");
        let bytes = match block >> 1 & 3 {
            // A byte that is repeated.
            1 => 1,
            0 | 2 => block >> 3,
            _ => return Ok(None),
        };
        packed += BLOCK_HEADER_BYTES as u64 + bytes;
        if block & 1 == 1 {
            packed += if has_checksum { CHECKSUM_BYTES } else { 0 };
            return Ok(Some(Border { packed, plain }));
        }
    }
}

/// Bytes of the header of a frame, bytes of the frame without compression, and whether a checksum
/// follows; `None` if the header does not say the size.
fn frame_header(header: &[u8]) -> Option<(u64, u64, bool)> {
    let flags = *header.get(4)?;
    let is_single_segment = flags & 0x20 != 0;
    let dictionary = [0, 1, 2, 4][usize::from(flags & 3)];
    let begin = 5 + usize::from(!is_single_segment) + dictionary;
    let (bytes, least) = match flags >> 6 {
        0 if is_single_segment => (1, 0),
        0 => return None,
        1 => (2, 256),
        2 => (4, 0),
        _ => (8, 0),
    };
    let plain = number(header.get(begin..begin + bytes))?.checked_add(least)?;
    Some(((begin + bytes) as u64, plain, flags & 4 != 0))
}

/// Bytes of a block of bgzip in the file and without compression.
fn member(file: &File, at: u64) -> io::Result<Option<Border>> {
    let mut header = [0; MEMBER_HEADER_BYTES + EXTRA_BYTES_MAX];
    let filled = read_all(file, &mut header, at)?;
    let Some(packed) = member_bytes(&header[..filled]) else { return Ok(None) };
    let mut size = [0; SIZE_BYTES];
    let Some(begin) = packed.checked_sub(size.len() as u64) else { return Ok(None) };
    let filled = read_all(file, &mut size, at + begin)?;
    let plain = number(size.get(..filled)).filter(|&plain| plain <= BLOCK_BYTES_MAX);
    Ok(plain.filter(|_| filled == size.len()).map(|plain| Border { packed, plain }))
}

/// The bytes of a block of bgzip, which its header states.
fn member_bytes(header: &[u8]) -> Option<u64> {
    if !header.starts_with(MEMBER) {
        return None;
    }
    let length = usize::try_from(number(header.get(10..12))?).ok()?;
    let mut fields = header.get(MEMBER_HEADER_BYTES..MEMBER_HEADER_BYTES + length)?;
    while let Some(rest) = fields.get(4..) {
        if fields.starts_with(MEMBER_BYTES) {
            return Some(number(rest.get(..2))? + 1);
        }
        let bytes = usize::try_from(number(fields.get(2..4))?).ok()?;
        fields = rest.get(bytes..)?;
    }
    None
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    /// The borders of a file that consists of these parts.
    fn borders(compression: Compression, parts: &[Vec<u8>], bytes: u64) -> Vec<(u64, u64)> {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&parts.concat()).unwrap();
        let mut walk = Parts::new(compression);
        let mut borders = Vec::new();
        while let Some(Border { packed, plain }) = walk.next(&file, bytes).unwrap() {
            borders.push((packed, plain));
        }
        borders
    }

    fn zstd_of(bytes: &[u8]) -> Vec<u8> {
        zstd::bulk::compress(bytes, 3).unwrap()
    }

    #[test]
    fn frames_of_zstd_state_their_sizes() {
        let contents = [vec![b'a'; 10], vec![b'b'; 300], (0..=255).cycle().take(900_000).collect()];
        let mut parts: Vec<_> = contents.iter().map(|bytes| zstd_of(bytes)).collect();
        let skippable = b"\x5e\x2a\x4d\x18\x03\0\0\0abc".to_vec();
        parts.insert(1, skippable);
        let sums = |upto: usize| parts[..upto].iter().map(Vec::len).sum::<usize>() as u64;
        let found = borders(Compression::Zstd, &parts, 1);
        assert_eq!(found, [(sums(1), 10), (sums(3), 310)]);
        assert_eq!(borders(Compression::Zstd, &parts, 11), [(sums(3), 310)]);
        assert_eq!(borders(Compression::Zstd, &parts, 1_000), []);
    }

    /// A frame of unknown size is the rest of the file, and so are bytes that are no frame.
    #[test]
    fn other_bytes_end_the_walk() {
        let unknown = zstd::encode_all(&b"abc"[..], 3).unwrap();
        let known = zstd_of(b"abc");
        let all = [known.clone(), known.clone(), unknown, known.clone()];
        assert_eq!(borders(Compression::Zstd, &all, 1), [(known.len() as u64, 3)]);
        let all = [known.clone(), known.clone(), b"zstd".to_vec()];
        assert_eq!(borders(Compression::Zstd, &all, 1), [(known.len() as u64, 3)]);
        for cut in 0..known.len() {
            assert_eq!(borders(Compression::Zstd, &[known[..cut].to_vec()], 1), []);
        }
        let gzip = b"\x1f\x8b\x08\0\0\0\0\0\0\0".to_vec();
        assert_eq!(borders(Compression::Gzip, &[gzip], 1), []);
    }
}
