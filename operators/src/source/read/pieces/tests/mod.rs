//! The rows of copies are those of one reader, and those that the files say.

mod packed;
mod records;
mod runs;
mod stops;
mod tables;
mod texts;
mod widths;

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{BooleanArray, RecordBatch};
use arrow_schema::Schema;
use arrow_select::concat::concat_batches;
use arrow_select::nullif::nullif;
use proptest::prelude::*;
use tempfile::TempDir;
use trommel_engine::operator::{BindContext, Counters, Output, Source, SourceFlow};
use trommel_kernels::Isa;

use super::bind::Reading;
use super::reader::PieceReader;
use super::source::PieceSource;
use crate::shared::rejected::OnError;
use crate::source::read::divided::Divided;
use crate::source::read::files::paths::{self, Files};
use crate::source::read::text::encoding::{Decoding, Invalid};
use crate::source::read::text::lines::LineBuffer;

/// Maximum calls of a test. A copy that waits for ever makes more calls.
const CALLS_MAX: usize = 2_000_000;

/// Rows, rejected rows, counters and named inputs.
#[derive(Debug, PartialEq)]
struct Outcome {
    rows: Option<RecordBatch>,
    rejected: Option<RecordBatch>,
    counters: BTreeMap<&'static str, u64>,
    named: Vec<String>,
    bytes: u64,
}

/// Copies, and sizes that put a border at every place.
#[derive(Debug, Clone, Copy)]
struct Sizes {
    copies: usize,
    piece: u64,
    batch: usize,
    block: usize,
    line_bytes_max: usize,
    /// Seed of the order of calls.
    seed: u64,
}

impl Sizes {
    /// One copy, which reads as the reader of a source without copies does.
    fn alone(self) -> Self {
        Self { copies: 1, ..self }
    }
}

fn sizes() -> impl Strategy<Value = Sizes> {
    let copies = prop::sample::select(vec![2, 3, 5, 8]);
    let limits = prop_oneof![3 => Just(1_usize << 12), 1 => 6_usize..40];
    (copies, 1_u64..40, 1_usize..20, 1_usize..60, limits, any::<u64>()).prop_map(
        |(copies, piece, batch, block, line_bytes_max, seed)| Sizes {
            copies,
            piece,
            batch,
            block,
            line_bytes_max,
            seed,
        },
    )
}

fn actions() -> impl Strategy<Value = OnError> {
    prop_oneof![Just(OnError::Fail), Just(OnError::Skip), Just(OnError::Reject)]
}

fn invalid() -> impl Strategy<Value = Invalid> {
    prop_oneof![Just(Invalid::Fail), Just(Invalid::Skip), Just(Invalid::Replace)]
}

/// Up to three files of these lines. Some lines are not text, and the last line may lack its line
/// end. A file may begin with a byte order mark.
fn files(line: impl Strategy<Value = String>) -> impl Strategy<Value = Vec<Vec<u8>>> {
    let line = prop_oneof![
        20 => line.prop_map(String::into_bytes),
        1 => Just(b"\xff,1".to_vec()),
        1 => Just(Vec::new()),
    ];
    let end = prop_oneof![8 => Just("\n"), 1 => Just("\r\n")];
    let lines = prop::collection::vec((line, end), 0..25);
    let mark = prop_oneof![6 => Just(""), 1 => Just("\u{feff}")];
    let file = (mark, lines, any::<bool>()).prop_map(|(mark, lines, is_whole)| {
        let mut file = mark.as_bytes().to_vec();
        file.extend(lines.into_iter().flat_map(|(line, end)| [line, end.into()].concat()));
        if !is_whole {
            file.pop();
        }
        file
    });
    prop::collection::vec(file, 1..4)
}

/// A folder with these files, and the files as a source gets them.
struct Folder {
    folder: TempDir,
    paths: Vec<PathBuf>,
}

impl Folder {
    fn new(contents: &[Vec<u8>]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = |index: usize| folder.path().join(format!("{index:03}.txt"));
        let paths: Vec<_> = (0..contents.len()).map(path).collect();
        paths.iter().zip(contents).for_each(|(path, bytes)| fs::write(path, bytes).unwrap());
        Self { folder, paths }
    }

    fn files(&self) -> Files {
        paths::resolve(&self.paths, OnError::Fail).unwrap().unwrap()
    }

    /// A text in which the name of the folder is left out.
    fn short(&self, text: &str) -> String {
        text.replace(&format!("{}/", self.folder.path().display()), "")
    }
}

/// Random numbers (SplitMix64).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) % limit as u64).unwrap()
    }
}

fn reading(on_error: OnError, invalid: Invalid, sizes: Sizes) -> Reading {
    Reading::whole(on_error, Decoding::usual(invalid), sizes.batch).piece_bytes(sizes.piece)
}

fn buffers(sizes: Sizes) -> impl Fn() -> LineBuffer {
    move || LineBuffer::new(Isa::selected().unwrap(), sizes.block, sizes.line_bytes_max)
}

fn lines_of<F: Divided>(
    files: Files,
    reading: Reading,
    format: F,
    sizes: Sizes,
) -> Result<Outcome, String> {
    let copy = reading.copies_of_lines(files, BindContext::new(0), format, buffers(sizes));
    drain(copy, sizes)
}

/// Everything that copies send when they are called in any order, in the order of the pieces.
fn drain<R: PieceReader>(
    mut copy: impl FnMut() -> PieceSource<R>,
    sizes: Sizes,
) -> Result<Outcome, String> {
    let mut copies: Vec<_> = (0..sizes.copies).map(|_| Some(copy())).collect();
    let mut ended = Vec::new();
    let mut pieces: BTreeMap<u64, [Vec<RecordBatch>; 2]> = BTreeMap::new();
    let mut open = vec![None; sizes.copies];
    let mut random = Random(sizes.seed);
    for _ in 0..CALLS_MAX {
        let index = random.below(sizes.copies);
        let Some(source) = &mut copies[index] else { continue };
        let mut out = Output::new();
        let flow = source.next(&mut out).map_err(|error| error.to_string())?;
        let mut begun = out.drain_begun().collect::<Vec<_>>().into_iter().peekable();
        for (place, (port, sent)) in out.drain_sent().enumerate() {
            while let Some((_, piece)) = begun.next_if(|(before, _)| *before <= place) {
                open[index] = Some(begin(&mut pieces, piece));
            }
            let piece = open[index].expect("rows belong to a piece");
            let rows = sent.into_records();
            assert!(port > 0 || rows.num_rows() <= sizes.batch);
            pieces.get_mut(&piece).unwrap()[port].push(rows);
        }
        if let Some((_, piece)) = begun.last() {
            open[index] = Some(begin(&mut pieces, piece));
        }
        if flow == SourceFlow::Finished {
            ended.extend(copies[index].take());
        }
        if ended.len() == sizes.copies {
            assert!(pieces.keys().copied().eq(0..pieces.len() as u64), "no piece is left out");
            return Ok(outcome(pieces, &ended));
        }
    }
    panic!("a copy waits for ever");
}

fn begin(pieces: &mut BTreeMap<u64, [Vec<RecordBatch>; 2]>, piece: u64) -> u64 {
    assert!(pieces.insert(piece, Default::default()).is_none(), "each piece begins once");
    piece
}

fn outcome<S: Source>(pieces: BTreeMap<u64, [Vec<RecordBatch>; 2]>, ended: &[S]) -> Outcome {
    let mut counters = BTreeMap::new();
    let all: Vec<Counters> = ended.iter().map(Source::counters).collect();
    for (name, count) in all.into_iter().flatten() {
        *counters.entry(name).or_insert(0) += count;
    }
    let named = ended.iter().flat_map(|source| source.named_inputs().left_out);
    let mut named: Vec<_> = named.map(|name| name.to_string()).collect();
    named.sort();
    let progress = ended.iter().map(Source::progress);
    let (mut rows, mut rejected) = (Vec::new(), Vec::new());
    for [good, bad] in pieces.into_values() {
        rows.extend(good);
        rejected.extend(bad);
    }
    Outcome {
        rows: joined(&rows),
        rejected: joined(&rejected).map(|rejected| without_long_lines(&rejected)),
        counters,
        named,
        bytes: progress.map(|progress| progress.bytes).sum(),
    }
}

/// Rejected rows without the bytes and the places of lines that are too long: whether a reader
/// still has the bytes depends on its buffer.
fn without_long_lines(rejected: &RecordBatch) -> RecordBatch {
    let reasons = rejected.column_by_name("reason").unwrap().as_string::<i32>();
    let is_long: BooleanArray =
        reasons.iter().map(|reason| Some(reason.unwrap().contains("the line is longer"))).collect();
    let hide = |name: &str| nullif(rejected.column_by_name(name).unwrap(), &is_long);
    let mut columns = rejected.columns().to_vec();
    for name in ["byte_offset", "bytes"] {
        columns[rejected.schema().index_of(name).unwrap()] = hide(name).unwrap();
    }
    let fields = rejected
        .schema()
        .fields()
        .iter()
        .map(|field| field.as_ref().clone().with_nullable(true))
        .collect::<Vec<_>>();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).unwrap()
}

fn joined(batches: &[RecordBatch]) -> Option<RecordBatch> {
    let schema = batches.first()?.schema();
    Some(concat_batches(&schema, batches).unwrap())
}

/// Checks that copies send what one copy sends.
fn check<F: Divided>(
    contents: &[Vec<u8>],
    reading: impl Fn() -> Reading,
    format: impl Fn() -> F,
    sizes: Sizes,
) -> Result<Result<Outcome, String>, TestCaseError> {
    let folder = Folder::new(contents);
    let expected = lines_of(folder.files(), reading(), format(), sizes.alone());
    let found = lines_of(folder.files(), reading(), format(), sizes);
    prop_assert!(found == expected, "{:?}\n{:?}", found, expected);
    if let Ok(outcome) = &found {
        let bytes = contents.iter().map(Vec::len).sum::<usize>() as u64;
        let is_all = outcome.counters["files_skipped"] == 0;
        prop_assert!(!is_all || outcome.bytes == bytes, "{} of {bytes}", outcome.bytes);
    }
    Ok(found.map_err(|error| folder.short(&error)))
}
