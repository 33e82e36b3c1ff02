//! Compressed files that consist of parts.

use std::io::Write as _;

use arrow_array::cast::AsArray;
use flate2::write::DeflateEncoder;
use flate2::{Crc, GzBuilder};

use super::*;
use crate::source::read::text::plain::TextLines;

/// A way to compress a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Packing {
    Frame,
    /// A frame that does not say its size.
    UnknownFrame,
    Block,
    /// A member of gzip that is no block of bgzip.
    Member,
}

impl Packing {
    fn pack(self, bytes: &[u8]) -> Vec<u8> {
        match self {
            Self::Frame => zstd::bulk::compress(bytes, 1).unwrap(),
            Self::UnknownFrame => zstd::encode_all(bytes, 1).unwrap(),
            Self::Block => block(bytes),
            Self::Member => {
                let mut member = GzBuilder::new().write(Vec::new(), flate2::Compression::fast());
                member.write_all(bytes).unwrap();
                member.finish().unwrap()
            }
        }
    }
}

/// A block of bgzip.
fn block(bytes: &[u8]) -> Vec<u8> {
    let mut deflated = DeflateEncoder::new(Vec::new(), flate2::Compression::fast());
    deflated.write_all(bytes).unwrap();
    let deflated = deflated.finish().unwrap();
    let mut crc = Crc::new();
    crc.update(bytes);
    let mut block = b"\x1f\x8b\x08\x04\0\0\0\0\0\xff\x06\0BC\x02\0".to_vec();
    let all = block.len() + 2 + deflated.len() + 8;
    block.extend(u16::try_from(all - 1).unwrap().to_le_bytes());
    block.extend(deflated);
    block.extend(crc.sum().to_le_bytes());
    block.extend(crc.amount().to_le_bytes());
    block
}

/// Parts of a file that are compressed with zstd or with gzip.
fn packings() -> impl Strategy<Value = Vec<Packing>> {
    let zstd = prop_oneof![12 => Just(Packing::Frame), 1 => Just(Packing::UnknownFrame)];
    let gzip = prop_oneof![12 => Just(Packing::Block), 1 => Just(Packing::Member)];
    let parts = 1_usize..12;
    prop_oneof![prop::collection::vec(zstd, parts.clone()), prop::collection::vec(gzip, parts)]
}

/// A text in parts of any lengths.
fn packed(text: &[u8], packings: &[Packing], places: &[prop::sample::Index]) -> Vec<u8> {
    let mut borders: Vec<_> = places.iter().map(|place| place.index(text.len() + 1)).collect();
    borders.truncate(packings.len() - 1);
    borders.push(text.len());
    borders.sort_unstable();
    let mut begin = 0;
    let mut file = Vec::new();
    for (&end, packing) in borders.iter().zip(packings) {
        file.extend(packing.pack(&text[begin..end]));
        begin = end;
    }
    if packings[0] == Packing::Frame {
        file.extend(b"\x5e\x2a\x4d\x18\x02\0\0\0ab");
    }
    file
}

fn lines_in(folder: &Folder, (on_error, sizes): (OnError, Sizes)) -> Result<Outcome, String> {
    let reading = reading(on_error, Invalid::of(on_error), sizes).lines(sizes.line_bytes_max, true);
    lines_of(folder.files(), reading, TextLines::new(), sizes)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn lines_are_those_that_were_compressed(
        files in prop::collection::vec(
            (prop::collection::vec("[a-c]{0,12}", 0..40), packings()), 1..3,
        ),
        end in prop_oneof![Just("\n"), Just("\r\n")],
        mark in prop_oneof![3 => Just(""), 1 => Just("\u{feff}")],
        is_whole in any::<bool>(),
        places in prop::collection::vec(any::<prop::sample::Index>(), 12),
        sizes in sizes(),
    ) {
        let sizes = Sizes { line_bytes_max: 1 << 12, ..sizes };
        let (mut contents, mut expected) = (Vec::new(), Vec::new());
        for (lines, packings) in &files {
            let mut text = lines.join(end);
            // An empty last line is a line only if its line end is there.
            if !lines.is_empty() && (is_whole || lines.last().is_some_and(String::is_empty)) {
                text += end;
            }
            expected.extend(lines.iter().cloned());
            contents.push(packed(format!("{mark}{text}").as_bytes(), packings, &places));
        }
        let folder = Folder::new(&contents);
        let found = lines_in(&folder, (OnError::Fail, sizes)).unwrap();
        let alone = lines_in(&folder, (OnError::Fail, sizes.alone())).unwrap();
        prop_assert!(found == alone, "{:?}\n{:?}", found, alone);
        let rows = found.rows.iter();
        let found: Vec<_> = rows
            .flat_map(|rows| {
                let lines = rows.column(0).as_string::<i32>().iter().flatten();
                lines.map(str::to_owned).collect::<Vec<_>>()
            })
            .collect();
        prop_assert_eq!(found, expected);
    }

    /// A byte of the file is changed, or the file is cut off; or a line is too long or no text.
    #[test]
    fn faults_are_those_of_one_reader(
        mut lines in prop::collection::vec("[a-c]{0,30}", 1..40),
        packings in packings(),
        places in prop::collection::vec(any::<prop::sample::Index>(), 12),
        place in any::<prop::sample::Index>(),
        change in prop_oneof![Just(None), (1_u8..=255).prop_map(Some)],
        is_damaged in any::<bool>(),
        on_error in actions(),
        sizes in sizes(),
    ) {
        let place_of_line = place.index(lines.len());
        lines[place_of_line] = "a line that is longer than the others".into();
        let mut bytes = packed(lines.join("\n").as_bytes(), &packings, &places);
        let place = place.index(bytes.len());
        match change {
            _ if !is_damaged => {}
            Some(change) => bytes[place] ^= change,
            None => bytes.truncate(place),
        }
        let folder = Folder::new(&[bytes]);
        let found = lines_in(&folder, (on_error, sizes));
        let alone = lines_in(&folder, (on_error, sizes.alone()));
        prop_assert!(found == alone, "{:?}\n{:?}", found, alone);
    }
}

/// Copies share the parts of a file, and read little more than the file.
#[test]
fn parts_are_read_by_several_copies() {
    let text: Vec<u8> = (0..200_000_u32).flat_map(|n| format!("{n}\n").into_bytes()).collect();
    for packing in [Packing::Frame, Packing::Block] {
        let parts: Vec<_> = text.chunks(60_000).map(|part| packing.pack(part)).collect();
        let folder = Folder::new(&[parts.concat()]);
        let sizes = Sizes {
            copies: 3,
            piece: 30_000,
            batch: 1_000,
            block: 1 << 12,
            line_bytes_max: 1 << 12,
            seed: 2,
        };
        let reading = reading(OnError::Fail, Invalid::Fail, sizes).lines(1 << 12, true);
        let context = BindContext::new(0);
        let mut copy =
            reading.copies_of_lines(folder.files(), context, TextLines::new(), buffers(sizes));
        let mut copies = [copy(), copy(), copy()];
        let mut rows = [0; 3];
        for turn in 0..2_000 {
            let mut out = Output::new();
            copies[turn % 3].next(&mut out).unwrap();
            rows[turn % 3] +=
                out.drain_sent().map(|(_, rows)| rows.into_records().num_rows()).sum::<usize>();
        }
        assert_eq!(rows.iter().sum::<usize>(), 200_000);
        assert!(rows.iter().all(|&rows| rows > 30_000), "{rows:?}");
    }
}
