//! Tables of Parquet and Arrow. The files are written by the writers of these formats, and are then
//! damaged.

use std::fs::File;
use std::sync::Arc;

use ::parquet::arrow::ArrowWriter;
use ::parquet::basic::Compression;
use ::parquet::file::properties::WriterProperties;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::{
    ArrayRef, BinaryArray, BooleanArray, Date32Array, Decimal128Array, DictionaryArray,
    Float64Array, Int8Array, Int64Array, LargeStringArray, ListArray, StringArray, StructArray,
    TimestampMicrosecondArray, UInt64Array,
};
use arrow_ipc::CompressionType;
use arrow_ipc::writer::{FileWriter, IpcWriteOptions, StreamWriter};
use arrow_schema::{DataType, Field};
use trommel_engine::graph::Graph;
use trommel_engine::memory::MemoryBudget;
use trommel_engine::operator::{BindContext, OperatorSpec};
use trommel_engine::runtime::RunOptions;

use super::*;

/// A table with columns of many types. Each column has nulls.
pub(super) fn table(rows: i64) -> RecordBatch {
    let every = |step: i64, number: i64| (number % step != 0).then_some(number);
    let numbers = || (0..rows).map(|number| every(3, number));
    let texts = || (0..rows).map(|number| every(5, number).map(|n| format!("text {}", n % 7)));
    let lists =
        (0..rows).map(|number| every(4, number).map(|n| (0..n % 3).map(Some).collect::<Vec<_>>()));
    let scaled = Decimal128Array::from_iter((0..rows).map(|n| every(2, n).map(i128::from)));
    let fields = vec![
        Arc::new(Field::new("x", DataType::Int64, true)),
        Arc::new(Field::new("t", DataType::Utf8, true)),
    ];
    let members: Vec<ArrayRef> =
        vec![Arc::new(Int64Array::from_iter(numbers())), Arc::new(StringArray::from_iter(texts()))];
    let columns: Vec<(&str, ArrayRef)> = vec![
        (
            "i8",
            Arc::new(Int8Array::from_iter(
                numbers().map(|n| n.and_then(|n| i8::try_from(n % 100).ok())),
            )),
        ),
        (
            "u64",
            Arc::new(UInt64Array::from_iter(
                numbers().map(|n| n.map(|n| u64::MAX - n.unsigned_abs())),
            )),
        ),
        ("f64", Arc::new(Float64Array::from_iter((0..rows).map(|n| (n % 2 == 0).then_some(0.1))))),
        ("flag", Arc::new(BooleanArray::from_iter(numbers().map(|n| n.map(|n| n % 2 == 0))))),
        ("text", Arc::new(StringArray::from_iter(texts()))),
        ("large", Arc::new(LargeStringArray::from_iter(texts()))),
        ("blob", Arc::new(BinaryArray::from_iter(texts().map(|t| t.map(String::into_bytes))))),
        (
            "day",
            Arc::new(Date32Array::from_iter(
                numbers().map(|n| n.and_then(|n| i32::try_from(n).ok())),
            )),
        ),
        ("time", Arc::new(TimestampMicrosecondArray::from_iter(numbers()).with_timezone("UTC"))),
        ("scaled", Arc::new(scaled.with_precision_and_scale(20, 3).unwrap())),
        (
            "word",
            Arc::new(
                texts()
                    .collect::<Vec<_>>()
                    .iter()
                    .map(Option::as_deref)
                    .collect::<DictionaryArray<Int32Type>>(),
            ),
        ),
        ("list", Arc::new(ListArray::from_iter_primitive::<Int64Type, _, _>(lists))),
        ("object", Arc::new(StructArray::new(fields.into(), members, None))),
    ];
    RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, c)| (name, c, true)))
        .unwrap()
}

pub(super) type WriteTable = fn(&Path, &RecordBatch);

fn write_parquet(path: &Path, rows: &RecordBatch, compression: Compression) {
    let properties = WriterProperties::builder()
        .set_compression(compression)
        .set_max_row_group_row_count(Some(1_000))
        .build();
    let file = File::create(path).unwrap();
    let mut writer = ArrowWriter::try_new(file, rows.schema(), Some(properties)).unwrap();
    writer.write(rows).unwrap();
    writer.close().unwrap();
}

fn write_stream(path: &Path, rows: &RecordBatch, compression: Option<CompressionType>) {
    let options = IpcWriteOptions::default().try_with_compression(compression).unwrap();
    let file = File::create(path).unwrap();
    let mut writer = StreamWriter::try_new_with_options(file, rows.schema_ref(), options).unwrap();
    for begin in (0..rows.num_rows()).step_by(1_000) {
        writer.write(&rows.slice(begin, 1_000.min(rows.num_rows() - begin))).unwrap();
    }
    writer.finish().unwrap();
}

fn write_file(path: &Path, rows: &RecordBatch) {
    let file = File::create(path).unwrap();
    let mut writer = FileWriter::try_new(file, rows.schema_ref()).unwrap();
    writer.write(rows).unwrap();
    writer.finish().unwrap();
}

pub(super) const WRITERS: [(ReadFormat, WriteTable); 7] = [
    (ReadFormat::Parquet, |path, rows| write_parquet(path, rows, Compression::UNCOMPRESSED)),
    (ReadFormat::Parquet, |path, rows| write_parquet(path, rows, Compression::SNAPPY)),
    (ReadFormat::Parquet, |path, rows| {
        write_parquet(path, rows, Compression::ZSTD(::parquet::basic::ZstdLevel::default()));
    }),
    (ReadFormat::Parquet, |path, rows| {
        write_parquet(path, rows, Compression::GZIP(::parquet::basic::GzipLevel::default()));
    }),
    (ReadFormat::Arrow, |path, rows| write_stream(path, rows, None)),
    (ReadFormat::Arrow, |path, rows| write_stream(path, rows, Some(CompressionType::ZSTD))),
    (ReadFormat::Arrow, write_file),
];

/// Reads with a memory budget of this size.
pub(super) fn read_within(
    read: Read,
    memory: usize,
) -> Result<(Vec<RecordBatch>, Counters), String> {
    let context = BindContext::new(0).memory(MemoryBudget::new(memory));
    let bound = Box::new(read).bind(&[], context).map_err(|error| error.to_string())?;
    let Body::Source(mut source) = bound.parts.into_iter().next().unwrap().body else {
        panic!("not a source")
    };
    let batches = drain_source(&mut *source).map_err(|error| error.to_string())?;
    assert!(batches.iter().all(|batch| batch.schema_ref() == &bound.outputs[0]));
    Ok((batches, source.counters()))
}

fn read_all(read: Read) -> Result<(Vec<RecordBatch>, Counters), String> {
    read_within(read, 1 << 30)
}

fn joined(batches: &[RecordBatch]) -> RecordBatch {
    arrow_select::concat::concat_batches(&batches[0].schema(), batches).unwrap()
}

#[test]
fn columns_of_all_types_come_back() {
    let folder = tempfile::tempdir().unwrap();
    let rows = table(2_500);
    for (number, (format, write)) in WRITERS.iter().enumerate() {
        let path = folder.path().join(format!("table.{number}"));
        write(&path, &rows);
        let read = || Read::new([&path], *format).batch(300);
        let (batches, counters) = read_all(read()).unwrap();
        assert!(batches.iter().all(|batch| batch.num_rows() <= 300));
        assert_eq!(joined(&batches), rows, "{number}");
        assert_eq!(counter(&counters, "files"), 1);
        let chosen = ["object", "i8", "text"];
        let (batches, _) = read_all(read().columns(chosen)).unwrap();
        let places = chosen.map(|name| rows.schema().index_of(name).unwrap());
        assert_eq!(joined(&batches), rows.project(&places).unwrap(), "{number}");
    }
}

#[test]
fn files_have_the_columns_of_the_first_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let rows = table(100);
    let other = rows.project(&[4, 0]).unwrap();
    for (format, write) in [WRITERS[1], WRITERS[4], WRITERS[6]] {
        write(&path("a"), &rows);
        write(&path("b"), &other);
        write(&path("c"), &rows);
        let read = || Read::new([folder.path().join("*")], format);
        let error = read_all(read()).unwrap_err();
        let b = path("b").display().to_string();
        let lacks = format!(
            "cannot read {b}: it has no column `u64` of the type UInt64, which the first file has"
        );
        assert_eq!(error, lacks);
        let (batches, counters) = read_all(read().on_error(OnError::Skip)).unwrap();
        assert_eq!((joined(&batches).num_rows(), counter(&counters, "files_skipped")), (200, 1));
        // Chosen columns are found by their names.
        let (batches, _) = read_all(read().columns(["i8", "text"])).unwrap();
        assert_eq!(joined(&batches).num_rows(), 300);
        let more = read_all(Read::new([path("b"), path("a")], format)).unwrap_err();
        assert!(
            more.ends_with("it has the column `u64`, which the first file does not have"),
            "{more}"
        );
        let error = read_all(read().columns(["txt"])).unwrap_err();
        assert!(error.contains("did you mean `text`?"), "{error}");
    }
}

#[test]
fn pipes_and_other_files_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &pipe,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
        0,
    )
    .unwrap();
    let text = folder.path().join("text");
    fs::write(&text, "this is no table").unwrap();
    let empty = folder.path().join("empty");
    fs::write(&empty, "").unwrap();
    for format in [ReadFormat::Parquet, ReadFormat::Arrow] {
        for path in [Path::new("-"), &pipe, &text, &empty] {
            let error = read_all(Read::new([path], format)).unwrap_err();
            let is_pipe = path != text && path != empty;
            let said =
                if is_pipe { "tables are read from regular files only" } else { "cannot read" };
            assert!(error.contains(said), "{error}");
        }
        let error = read_all(Read::new([&text], format).follow()).unwrap_err();
        assert!(error.contains("`format` must be"), "{error}");
    }
}

#[test]
fn damaged_files_are_errors_that_name_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("table");
    let rows = table(40);
    let (mut errors, mut tries) = (0, 0);
    for (format, write) in [WRITERS[1], WRITERS[2], WRITERS[4], WRITERS[5], WRITERS[6]] {
        write(&path, &rows);
        let whole = fs::read(&path).unwrap();
        let damaged = (0..whole.len()).step_by(31).flat_map(|at| {
            let cut = whole[..at].to_vec();
            [0xff, 0x80, 0x01]
                .map(|flip| {
                    let mut bytes = whole.clone();
                    bytes[at] ^= flip;
                    bytes
                })
                .into_iter()
                .chain([cut])
        });
        for bytes in damaged {
            fs::write(&path, bytes).unwrap();
            tries += 1;
            // Damage in a value gives another value.
            if let Err(error) = read_within(Read::new([&path], format), 64 << 20) {
                assert!(error.contains(&format!("{}", path.display())), "{error}");
                errors += 1;
            }
        }
    }
    assert!(errors > tries / 3, "{errors} of {tries}");
}

#[test]
fn texts_of_a_dictionary_come_in_limited_batches() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("table");
    let long = "x".repeat(1 << 18);
    let texts: ArrayRef = Arc::new(StringArray::from_iter_values((0..1_000).map(|_| &long)));
    let rows = RecordBatch::try_from_iter([("text", texts)]).unwrap();
    write_parquet(&path, &rows, Compression::SNAPPY);
    assert!(fs::metadata(&path).unwrap().len() < 1 << 20);
    let (batches, _) = read_within(Read::new([&path], ReadFormat::Parquet), 64 << 20).unwrap();
    assert_eq!(batches.iter().map(RecordBatch::num_rows).sum::<usize>(), 1_000);
    let largest = batches.iter().map(|batch| batch.column(0).as_string::<i32>().values().len());
    assert!(largest.max().unwrap() <= 16 << 20);
}

#[test]
fn memory_is_asked_for_before_rows_are_decoded() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("table");
    let zeros: ArrayRef = Arc::new(ListArray::from_iter_primitive::<Int64Type, _, _>(
        (0..1_000).map(|_| Some(vec![Some(0); 1_000])),
    ));
    let rows = RecordBatch::try_from_iter([("list", zeros)]).unwrap();
    for (format, write) in [WRITERS[2], WRITERS[5]] {
        write(&path, &rows);
        assert!(fs::metadata(&path).unwrap().len() < 1 << 16);
        let read = || Read::new([&path], format);
        let error = read_within(read(), 4 << 20).unwrap_err();
        assert!(error.contains("no memory for its next part"), "{error}");
        assert!(read_within(read(), 64 << 20).is_ok());
    }
    // The last write was a stream with compressed buffers: the first number of each is its length.
    let mut bytes = fs::read(&path).unwrap();
    let magic = b"\x28\xb5\x2f\xfd";
    let frame = bytes.windows(4).position(|window| window == magic).unwrap();
    bytes[frame - 8..frame].copy_from_slice(&(1_u64 << 60).to_le_bytes());
    fs::write(&path, bytes).unwrap();
    let error = read_all(Read::new([&path], ReadFormat::Arrow)).unwrap_err();
    assert!(error.contains("no memory for its next part"), "{error}");
}

/// The rows with workers, and the counters of the stage.
fn read_divided(read: Read, memory: usize) -> Result<(RecordBatch, Counters), String> {
    let mut graph = Graph::new();
    graph.memory_max(memory);
    let read = graph.add("read", read);
    graph.workers(read, 3);
    let (sink, rows) = crate::sink::Collect::new();
    graph.add_after(read, "rows", sink);
    let topology = graph.build().map_err(|errors| errors.to_string())?;
    let metrics = topology.run(RunOptions::new()).map_err(|error| {
        let said = error.to_string();
        std::error::Error::source(&error).map_or(said, ToString::to_string)
    })?;
    let stage = metrics.stage("read").unwrap();
    assert_eq!(stage.workers(), 3);
    let counters = ["files", "files_skipped"].map(|name| (name, stage.counter(name)));
    Ok((joined(&rows.batches()), counters.to_vec()))
}

#[test]
fn workers_decode_the_same_rows() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let rows = table(40_000);
    // One file has many row groups; another file has one row group.
    write_parquet(&path("many"), &rows, Compression::UNCOMPRESSED);
    let plain = WriterProperties::builder().set_dictionary_enabled(false).build();
    let file = File::create(path("one")).unwrap();
    let mut writer = ArrowWriter::try_new(file, rows.schema(), Some(plain)).unwrap();
    writer.write(&rows).unwrap();
    writer.close().unwrap();
    for name in ["many", "one"] {
        for copy in 1..4 {
            fs::copy(path(name), path(&format!("{name}.{copy}"))).unwrap();
        }
        for batch in [100, 16_384] {
            let read = || Read::new([path(&format!("{name}*"))], ReadFormat::Parquet).batch(batch);
            let all = joined(&[(); 4].map(|()| rows.clone()));
            let (found, counters) = read_divided(read(), 1 << 30).unwrap();
            assert_eq!(found, all, "{name}");
            assert_eq!(counter(&counters, "files"), 4);
            let chosen = ["object", "i8", "text"];
            let places = chosen.map(|name| rows.schema().index_of(name).unwrap());
            let (found, _) = read_divided(read().columns(chosen), 1 << 30).unwrap();
            assert_eq!(found, all.project(&places).unwrap(), "{name}");
        }
    }
    // Pieces wait for the memory of earlier pieces, and a block that never fits is refused.
    let four = |name| Read::new([path(&format!("{name}*"))], ReadFormat::Parquet);
    let (found, _) = read_divided(four("many"), 4 << 20).unwrap();
    assert_eq!(found.num_rows(), 160_000);
    let error = read_divided(four("one"), 3 << 20).unwrap_err();
    assert!(error.contains("memory"), "{error}");
}

#[test]
fn a_damaged_block_ends_its_file_with_workers_too() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let rows = table(40_000);
    write_parquet(&path("b"), &rows, Compression::UNCOMPRESSED);
    let mut bytes = fs::read(path("b")).unwrap();
    fs::write(path("c"), &bytes).unwrap();
    // The place is among the levels of a page.
    let middle = bytes.len() / 2;
    bytes[middle..middle + 2_000].fill(0xff);
    fs::write(path("a"), &bytes).unwrap();
    let read = || Read::new([path("a"), path("b"), path("c")], ReadFormat::Parquet);
    let alone = read_all(read()).unwrap_err();
    assert_eq!(read_divided(read(), 1 << 30).unwrap_err(), alone);
    let (alone, counters) = read_all(read().on_error(OnError::Skip)).unwrap();
    let (found, divided) = read_divided(read().on_error(OnError::Skip), 1 << 30).unwrap();
    let alone = joined(&alone);
    assert_eq!(found.num_rows(), alone.num_rows());
    assert_eq!(found, alone);
    assert_eq!(counter(&divided, "files_skipped"), 1);
    assert_eq!(counter(&counters, "files_skipped"), 1);
}
