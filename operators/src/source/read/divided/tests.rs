//! A source with workers sends the same rows, and refuses the same lines, as a source without
//! workers.

use std::io;
use std::ops::RangeInclusive;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{DataType, Field, Schema};
use arrow_select::concat::concat_batches;
use proptest::prelude::*;
use trommel_engine::batch::Payload;
use trommel_engine::error::BindError;
use trommel_engine::graph::Graph;
use trommel_engine::operator::{
    BindContext, Counters, OperatorSpec, Output, Source as _, SourceFlow,
};
use trommel_engine::runtime::RunOptions;
use trommel_kernels::Isa;

use super::super::log::{LogRows, Pattern};
use super::*;
use crate::sink::Collect as Rows;
use crate::source::read::csv::dialect::Dialect;
use crate::source::read::csv::records::CsvLines;
use crate::source::read::csv::typed::TypedRows;
use crate::source::read::json::jsonl::JsonRows;
use crate::source::read::text::encoding::Invalid;
use crate::source::read::text::plain::TextLines;
use crate::source::read::text::sets::SetLines;
use crate::wave::{Consumer as _, Filled, Kernel as _, Producer as _, Taken};

/// Rows, rejected rows, counters and named inputs.
#[derive(Debug, PartialEq)]
struct Outcome {
    rows: Option<RecordBatch>,
    rejected: Option<RecordBatch>,
    counters: Vec<u64>,
    named: Vec<String>,
}

/// The counters that do not depend on how the work is divided.
const COUNTERS: [&str; 5] = ["files", "skipped", "replaced", "files_skipped", "rejected"];

/// A bound stage.
struct Bound(Fragment, OnError);

impl OperatorSpec for Bound {
    fn operator(&self) -> &'static str {
        "read"
    }

    fn input_ports(&self) -> RangeInclusive<usize> {
        0..=0
    }

    fn output_ports(&self) -> &'static [&'static str] {
        OnError::output_ports(Some(self.1))
    }

    fn bind(self: Box<Self>, _: &[SchemaRef], _: BindContext) -> Result<Fragment, BindError> {
        let rows = Arc::clone(&self.0.outputs[0]);
        Ok(self.0.with_outputs(self.1.outputs(rows)))
    }
}

/// Limits of lines, blocks and reads.
#[derive(Debug, Clone, Copy)]
struct Sizes {
    batch: usize,
    block: usize,
    step: usize,
    line_bytes_max: usize,
    workers: usize,
}

fn sizes() -> impl Strategy<Value = Sizes> {
    let limits = prop_oneof![Just(1_usize << 12), 6_usize..40];
    (1_usize..20, 1_usize..90, 1_usize..90, limits, 1_usize..5).prop_map(
        |(batch, block, step, line_bytes_max, workers)| Sizes {
            batch,
            block,
            step,
            line_bytes_max,
            workers,
        },
    )
}

fn actions() -> impl Strategy<Value = OnError> {
    prop_oneof![Just(OnError::Fail), Just(OnError::Skip), Just(OnError::Reject)]
}

/// Reader that returns at most `step` bytes per call.
struct Steps(io::Cursor<Vec<u8>>, usize);

impl io::Read for Steps {
    fn read(&mut self, target: &mut [u8]) -> io::Result<usize> {
        let bytes = target.len().min(self.1);
        self.0.read(&mut target[..bytes])
    }
}

fn inputs(files: &[Vec<u8>], sizes: Sizes, on_error: OnError, decoding: Decoding) -> Inputs {
    let reader = |bytes: &Vec<u8>| Box::new(Steps(io::Cursor::new(bytes.clone()), sizes.step));
    let readers = ["a", "b", "c"].into_iter().zip(files);
    let readers = readers.map(|(name, file)| (name, reader(file) as Box<dyn io::Read + Send>));
    Inputs::of_readers(readers, on_error).decoding(decoding)
}

fn lines(sizes: Sizes) -> LineBuffer {
    LineBuffer::new(Isa::selected().unwrap(), sizes.block, sizes.line_bytes_max)
}

fn joined(batches: &[RecordBatch]) -> Option<RecordBatch> {
    let schema = batches.first()?.schema();
    Some(concat_batches(&schema, batches).unwrap())
}

fn counted<'a>(counters: impl Iterator<Item = &'a Counters> + Clone) -> Vec<u64> {
    let count = |name: &str| {
        let all = counters.clone().flatten().filter(|(other, _)| *other == name);
        all.map(|(_, count)| count).sum()
    };
    COUNTERS.iter().map(|name| count(name)).collect()
}

/// The outcome without workers.
fn alone(format: impl LineFormat, inputs: Inputs, sizes: Sizes) -> Result<Outcome, String> {
    let mut source = LineSource::new(inputs, format, sizes.batch, lines(sizes));
    let (mut out, mut sent) = (Output::new(), [Vec::new(), Vec::new()]);
    loop {
        let flow = source.next(&mut out).map_err(|error| error.to_string())?;
        for (port, payload) in out.drain_sent() {
            sent[port].push(payload.into_records());
        }
        if flow == SourceFlow::Finished {
            let named = source.named_inputs().left_out;
            return Ok(Outcome {
                rows: joined(&sent[0]),
                rejected: joined(&sent[1]),
                counters: counted([source.counters()].iter()),
                named: named.iter().map(ToString::to_string).collect(),
            });
        }
    }
}

/// The outcome with workers.
fn together(
    format: &(impl Divided + 'static),
    ends: impl RecordEnds + 'static,
    inputs: Inputs,
    (sizes, on_error, decoding): (Sizes, OnError, Decoding),
) -> Result<Outcome, String> {
    let memory = MemoryBudget::new(1 << 30);
    let Sizes { batch, block: block_bytes, .. } = sizes;
    let division = Division { batch, on_error, decoding, memory, block_bytes };
    let fragment = division.source(inputs, lines(sizes), format, ends, sizes.workers);
    run(fragment, on_error, sizes)
}

fn run(fragment: Fragment, on_error: OnError, sizes: Sizes) -> Result<Outcome, String> {
    let mut graph = Graph::new();
    let read = graph.add("read", Bound(fragment, on_error));
    let (sink, rows) = Rows::new();
    graph.add_after(read, "rows", sink);
    let (sink, rejected) = Rows::new();
    if on_error == OnError::Reject {
        graph.add_after(read.port(1), "rejected", sink);
    }
    let topology = graph.build().map_err(|errors| errors.to_string())?;
    let metrics = topology.run(RunOptions::new()).map_err(|error| {
        // The error names the failed stage before the cause.
        let said = error.to_string();
        std::error::Error::source(&error).map_or(said, ToString::to_string)
    })?;
    let stage = metrics.stage("read").unwrap();
    assert!(rows.batches().iter().all(|rows| rows.num_rows() <= sizes.batch));
    Ok(Outcome {
        rows: joined(&rows.batches()),
        rejected: joined(&rejected.batches()),
        counters: counted(stage.parts.iter().map(|part| &part.counters)),
        named: stage
            .parts
            .iter()
            .flat_map(|part| &part.inputs.left_out)
            .map(ToString::to_string)
            .collect(),
    })
}

fn check<F: Divided + 'static, E: RecordEnds + 'static>(
    format: impl Fn() -> F,
    ends: impl Fn() -> E,
    files: &[Vec<u8>],
    (sizes, on_error, invalid): (Sizes, OnError, Invalid),
) -> Result<(), TestCaseError> {
    let decoding = Decoding::usual(invalid);
    let expected = alone(format(), inputs(files, sizes, on_error, decoding), sizes);
    let inputs = inputs(files, sizes, on_error, decoding);
    let found = together(&format(), ends(), inputs, (sizes, on_error, decoding));
    prop_assert_eq!(found, expected);
    Ok(())
}

/// The rows and the error of each block of a file. One worker parses the blocks in the order `of`
/// their places, or a new worker parses each block.
fn parsed<F: Divided + 'static>(
    format: &F,
    blocks: Vec<Payload>,
    of: &[usize],
    sizes: Sizes,
    is_one_worker: bool,
) -> Vec<(Option<RecordBatch>, Option<String>)> {
    let refusals = |action: Option<OnError>| Inputs::none(action.unwrap_or(OnError::Fail));
    let limits = (Isa::selected().unwrap(), sizes.line_bytes_max);
    let worker =
        || Parse::new(format.another(&MemoryBudget::new(1 << 30)), refusals, sizes.batch, limits);
    let (mut parse, count) = (worker(), blocks.len());
    let mut blocks: Vec<_> = blocks.into_iter().map(Some).collect();
    let mut found: Vec<_> = (0..count).map(|_| (None, None)).collect();
    for &place in of {
        let mut prepare = Prepare::new();
        let mut chunk = ParseChunk::default();
        prepare.take(0, blocks[place].take().unwrap()).unwrap();
        assert_eq!(prepare.fill(&mut chunk).unwrap(), Filled::Chunk);
        if !is_one_worker {
            parse = worker();
        }
        parse.run(&mut chunk);
        let (mut collect, mut out, mut error) = (Collect::new(refusals(None)), Output::new(), None);
        loop {
            match collect.take(&chunk, &mut out) {
                Ok(Taken::Some) => {}
                Ok(Taken::All) => break,
                Err(failed) => {
                    error = Some(failed.to_string());
                    break;
                }
            }
        }
        let rows: Vec<_> = out.drain_sent().map(|(_, rows)| rows.into_records()).collect();
        found[place] = (joined(&rows), error);
    }
    found
}

/// The blocks of a file.
fn cut(ends: impl RecordEnds, file: &[u8], sizes: Sizes) -> Vec<Payload> {
    let decoding = Decoding::usual(Invalid::Fail);
    let inputs = inputs(&[file.to_vec()], sizes, OnError::Fail, decoding);
    let blocks = Blocks::new(ends, sizes.line_bytes_max);
    let mut source = LineSource::new(inputs, blocks, sizes.batch, lines(sizes));
    let (mut out, mut blocks) = (Output::new(), Vec::new());
    while source.next(&mut out).unwrap() != SourceFlow::Finished {
        blocks.extend(out.drain_sent().map(|(_, block)| block));
    }
    blocks.extend(out.drain_sent().map(|(_, block)| block));
    blocks
}

fn invalid() -> impl Strategy<Value = Invalid> {
    prop_oneof![Just(Invalid::Fail), Just(Invalid::Skip), Just(Invalid::Replace)]
}

/// Up to three files of these lines. Some lines are not text, and the last line may lack its line
/// end.
fn files(lines: impl Strategy<Value = String>) -> impl Strategy<Value = Vec<Vec<u8>>> {
    let line = prop_oneof![
        20 => lines.prop_map(String::into_bytes),
        1 => Just(b"\xff,1".to_vec()),
        1 => Just(Vec::new()),
    ];
    let end = prop_oneof![8 => Just("\n"), 1 => Just("\r\n")];
    let lines = prop::collection::vec((line, end), 0..25);
    let file = (lines, any::<bool>()).prop_map(|(lines, is_whole)| {
        let mut file: Vec<u8> =
            lines.into_iter().flat_map(|(line, end)| [line, end.into()].concat()).collect();
        if !is_whole {
            file.pop();
        }
        file
    });
    prop::collection::vec(file, 1..4)
}

fn columns(fields: &[(&str, DataType)]) -> SchemaRef {
    let field = |(name, kind): &(&str, DataType)| Field::new(*name, kind.clone(), true);
    Arc::new(Schema::new(fields.iter().map(field).collect::<Vec<_>>()))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn texts_and_their_places_are_those_of_one_thread(
        files in files("[a-c ]{0,12}"),
        sizes in sizes(),
        on_error in actions(),
        invalid in invalid(),
    ) {
        let names = ["path", "line_number"].map(str::to_owned);
        check(|| TextLines::with_columns(&names), || EachLine, &files, (sizes, on_error, invalid))?;
    }

    #[test]
    fn sets_and_their_numbers_are_those_of_one_thread(
        files in files("([0-9]{1,3} ?){0,5}|1 x"),
        sizes in sizes(),
        on_error in actions(),
    ) {
        check(SetLines::new, || EachLine, &files, (sizes, on_error, Invalid::of(on_error)))?;
    }

    #[test]
    fn objects_are_those_of_one_thread(
        files in files(r#"\{"a":(1|-2|"x"|null),"b":\{"c":\["y"\]\}\}|\{\}|\{"a"|\[1\]"#),
        sizes in sizes(),
        on_error in actions(),
        invalid in invalid(),
    ) {
        let schema = columns(&[("a", DataType::Int64)]);
        let rows = || JsonRows::new(Arc::clone(&schema)).unwrap();
        check(rows, || EachLine, &files, (sizes, on_error, invalid))?;
    }

    #[test]
    fn logs_are_those_of_one_thread(
        files in files("[a-c]{1,3} [0-9]{1,3} .{0,4}|[a-c]{2}"),
        sizes in sizes(),
        on_error in actions(),
        invalid in invalid(),
    ) {
        let rows = || {
            let Ok(Pattern::Fixed(scanner)) = Pattern::new("{name} {count:u8} {rest}") else {
                panic!("a template")
            };
            let schema = Arc::new(Schema::new(scanner.fields()));
            LogRows::new(Arc::new(scanner), schema).unwrap()
        };
        check(rows, || EachLine, &files, (sizes, on_error, invalid))?;
    }

    #[test]
    fn records_of_csv_are_those_of_one_thread(
        files in files(r#"x,y|[12],[ab]{0,3}|"?[12]"?,"[a\n",]{0,9}"?|#"?[ab]|[a",]{0,12}"#),
        header in any::<bool>(),
        begins_well in any::<bool>(),
        sizes in sizes(),
        on_error in actions(),
        invalid in invalid(),
    ) {
        let dialect = Dialect { comment: Some(b'#'), has_header: header, ..Dialect::default() };
        let names = if header { ["x", "y"] } else { ["c1", "c2"] };
        let schema = columns(&[(names[1], DataType::Utf8), (names[0], DataType::Int32)]);
        let rows = || {
            let rows = TypedRows::new(Arc::clone(&schema), vec![String::new()]).unwrap();
            CsvLines::new(rows, dialect.clone(), sizes.line_bytes_max)
        };
        let head: &[u8] = if begins_well { b"x,y\n" } else { b"" };
        let files: Vec<_> = files.into_iter().map(|file| [head, &file].concat()).collect();
        let ends = || QuotedRecords::new(dialect.clone());
        check(rows, ends, &files, (sizes, on_error, invalid))?;
    }
}

/// A worker may get a block before blocks that precede it in the file, also after a block that ends
/// the run.
#[test]
fn blocks_are_parsed_in_any_order() {
    let dialect = Dialect::default();
    let schema = columns(&[("x", DataType::Int32), ("y", DataType::Utf8)]);
    let rows = TypedRows::new(schema, vec![String::new()]).unwrap();
    let csv = CsvLines::new(rows, dialect.clone(), 1 << 10);
    let file = b"x,y\n1,a\n\"2,\"\n3,\"b\nc\"\nz,d\n4,e\n5,\"f\n";
    for batch in [1, 2, 3] {
        let sizes = Sizes { batch, block: 64, step: 64, line_bytes_max: 1 << 10, workers: 1 };
        let blocks = || cut(QuotedRecords::new(dialect.clone()), file, sizes);
        let count = blocks().len();
        assert!(count > 2);
        let forwards: Vec<_> = (0..count).collect();
        let backwards: Vec<_> = (0..count).rev().collect();
        let expected = parsed(&csv, blocks(), &forwards, sizes, false);
        assert!(expected.iter().filter(|(_, error)| error.is_some()).count() > 1);
        for order in [forwards, backwards] {
            assert_eq!(parsed(&csv, blocks(), &order, sizes, true), expected);
        }
    }
}

#[test]
fn long_lines_need_the_memory_of_one() {
    let long = format!("{{\"a\":1,\"b\":\"{}\"}}\n", "x".repeat(3 << 20));
    let file = [&b"{\"a\":2}\n".repeat(1_000)[..], &long.repeat(6).into_bytes()].concat();
    let sizes =
        Sizes { batch: 100, block: 1 << 16, step: 1 << 16, line_bytes_max: 1 << 23, workers: 3 };
    let (on_error, decoding) = (OnError::Fail, Decoding::usual(Invalid::Fail));
    // One line needs 24 times its bytes, in addition to the buffers of the reader.
    let memory = MemoryBudget::new(100 << 20);
    let rows = JsonRows::new(columns(&[("a", DataType::Int64)])).unwrap().within(&memory);
    let Sizes { batch, block: block_bytes, .. } = sizes;
    let division = Division { batch, on_error, decoding, memory: memory.clone(), block_bytes };
    let inputs = inputs(&[file], sizes, on_error, decoding);
    let lines = lines(sizes).within(&memory);
    let fragment = division.source(inputs, lines, &rows, EachLine, sizes.workers);
    let rows = run(fragment, on_error, sizes).unwrap().rows.unwrap();
    assert_eq!(rows.num_rows(), 1_006);
    assert_eq!(memory.reserved(), 0);
}
