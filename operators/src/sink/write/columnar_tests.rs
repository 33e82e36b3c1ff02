//! Files of columns that the readers of the crates read again, and the texts of every type.

use std::fs::{self, File};
use std::io::Cursor;
use std::os::fd::AsRawFd as _;
use std::path::Path;
use std::sync::Arc;

use arrow_array::builder::{
    BinaryViewBuilder, FixedSizeBinaryBuilder, FixedSizeListBuilder, Int32Builder, ListBuilder,
    MapBuilder, StringBuilder,
};
use arrow_array::types::{Int8Type, Int32Type};
use arrow_array::{
    Array, ArrayRef, BinaryArray, BooleanArray, DictionaryArray, Float64Array, Int64Array,
    NullArray, RecordBatch, RunArray, StringArray, StructArray, new_null_array,
};
use arrow_cast::cast;
use arrow_ipc::reader::{FileReader, StreamReader};
use arrow_schema::{DataType, Field, Fields, IntervalUnit, Schema, SchemaRef, TimeUnit, UnionMode};
use arrow_select::concat::{concat, concat_batches};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::file::metadata::ParquetMetaData;
use proptest::prelude::*;
use trommel_engine::memory::MemoryBudget;
use trommel_engine::operator::{BindContext, Body, Operator, OperatorSpec as _};

use super::*;
use crate::testing::{bind, bind_operator, run_operator};

/// Types whose values can be made from integers.
fn plain_types() -> Vec<DataType> {
    use DataType::*;
    let zone = || Some(Arc::from("+02:00"));
    let mut types = vec![Int8, Int16, Int32, Int64, UInt8, UInt16, UInt32, UInt64];
    types.extend([Float16, Float32, Float64, Boolean, Utf8, LargeUtf8, Utf8View, Binary]);
    types.extend([LargeBinary, BinaryView, Date32, Date64]);
    types.extend([Decimal32(9, 2), Decimal64(18, 3), Decimal128(38, 2), Decimal256(76, 4)]);
    types.extend([Time32(TimeUnit::Second), Time32(TimeUnit::Millisecond)]);
    types.extend([Time64(TimeUnit::Microsecond), Time64(TimeUnit::Nanosecond)]);
    for unit in
        [TimeUnit::Second, TimeUnit::Millisecond, TimeUnit::Microsecond, TimeUnit::Nanosecond]
    {
        types.extend([Timestamp(unit, None), Timestamp(unit, zone()), Duration(unit)]);
    }
    types
}

/// Columns of these numbers, of every type whose values can be made from integers, alone and
/// nested.
fn columns(numbers: &[Option<i64>]) -> RecordBatch {
    let numbers = Arc::new(Int64Array::from(numbers.to_vec())) as ArrayRef;
    let texts = cast(&numbers, &DataType::Utf8).unwrap();
    let mut columns = Vec::new();
    for wanted in plain_types() {
        let from = match wanted {
            DataType::Binary | DataType::LargeBinary | DataType::BinaryView => &texts,
            _ => &numbers,
        };
        let column = match wanted {
            DataType::Time32(_) => cast(&cast(from, &DataType::Int32).unwrap(), &wanted),
            _ => cast(from, &wanted),
        };
        columns.push((wanted.to_string(), column.unwrap()));
    }
    let plain = columns.clone();
    for (name, column) in &plain {
        let fields = Fields::from(vec![Field::new("inside", column.data_type().clone(), true)]);
        let nested = StructArray::new(fields, vec![Arc::clone(column)], numbers.nulls().cloned());
        columns.push((format!("struct of {name}"), Arc::new(nested)));
    }
    let texts = texts.as_any().downcast_ref::<StringArray>().unwrap();
    let dictionary: DictionaryArray<Int32Type> = texts.iter().collect();
    columns.push(("dictionary".to_owned(), Arc::new(dictionary)));
    columns.extend(lists(texts));
    let [ends, values] = [DataType::Int32, DataType::Utf8];
    let ends = Arc::new(Field::new("run_ends", ends, false));
    let runs = DataType::RunEndEncoded(ends, Arc::new(Field::new("values", values, true)));
    columns.push(("runs".to_owned(), cast(texts, &runs).unwrap()));
    RecordBatch::try_from_iter_with_nullable(
        columns.into_iter().map(|(name, column)| (name, column, true)),
    )
    .unwrap()
}

fn lists(texts: &StringArray) -> Vec<(String, ArrayRef)> {
    let mut list = ListBuilder::new(StringBuilder::new());
    let mut pair = FixedSizeListBuilder::new(Int32Builder::new(), 2);
    let mut map = MapBuilder::new(None, StringBuilder::new(), Int32Builder::new());
    for (row, text) in texts.iter().enumerate() {
        for _ in 0..row % 3 {
            list.values().append_option(text);
            map.keys().append_value(format!("{row}"));
            map.values().append_option(text.map(|text| i32::try_from(text.len()).unwrap()));
        }
        list.append(text.is_some());
        map.append(text.is_some()).unwrap();
        pair.values().append_slice(&[1, 2]);
        pair.append(text.is_some());
    }
    let list = Arc::new(list.finish()) as ArrayRef;
    let large = DataType::LargeList(Arc::new(Field::new("item", DataType::Utf8, true)));
    let large = cast(&list, &large).unwrap();
    let named = |name: &str, column| (name.to_owned(), column);
    let map = Arc::new(map.finish());
    let pair = Arc::new(pair.finish());
    vec![named("list", list), named("large", large), named("map", map), named("pair", pair)]
}

/// The operator, with memory from `budget`.
fn bind_within(spec: Write, rows: &RecordBatch, budget: &MemoryBudget) -> Box<dyn Operator> {
    let mut context = BindContext::new(0);
    context.memory = budget.clone();
    let mut fragment = Box::new(spec).bind(&[rows.schema()], context).unwrap();
    match fragment.parts.remove(0).body {
        Body::Operator(writer) => writer,
        Body::Source(_) => panic!("a source"),
    }
}

/// Writes `rows` in batches of `per_batch` rows, within `memory` bytes, and returns the counter of
/// rows.
fn write_file(rows: &RecordBatch, spec: Write, per_batch: usize, memory: usize) -> u64 {
    let budget = MemoryBudget::new(memory);
    let mut writer = bind_within(spec, rows, &budget);
    let starts = (0..rows.num_rows()).step_by(per_batch);
    let batches = starts.map(|at| rows.slice(at, per_batch.min(rows.num_rows() - at)));
    run_operator(&mut *writer, batches.collect::<Vec<_>>()).unwrap();
    let written = writer.counters().iter().find(|(name, _)| *name == "rows_written").unwrap().1;
    drop(writer);
    assert_eq!(budget.reserved(), 0);
    written
}

fn read_parquet(path: &Path) -> (RecordBatch, Arc<ParquetMetaData>) {
    let builder = ParquetRecordBatchReaderBuilder::try_new(File::open(path).unwrap()).unwrap();
    let (schema, metadata) = (Arc::clone(builder.schema()), Arc::clone(builder.metadata()));
    let batches: Vec<_> = builder.build().unwrap().map(Result::unwrap).collect();
    (concat_batches(&schema, &batches).unwrap(), metadata)
}

fn read_arrow(path: &Path) -> RecordBatch {
    let reader = FileReader::try_new(File::open(path).unwrap(), None).unwrap();
    let schema = reader.schema();
    let batches: Vec<_> = reader.map(Result::unwrap).collect();
    concat_batches(&schema, &batches).unwrap()
}

/// The values of the column, without a dictionary or runs, so that only values are compared.
fn values(column: &ArrayRef) -> ArrayRef {
    match column.data_type() {
        DataType::Dictionary(_, value) => cast(column, value).unwrap(),
        DataType::RunEndEncoded(_, value) => cast(column, value.data_type()).unwrap(),
        _ => Arc::clone(column),
    }
}

fn check_equal(read: &RecordBatch, written: &RecordBatch, keeps_dictionaries: bool) {
    assert_eq!(read.num_rows(), written.num_rows());
    for (field, column) in written.schema().fields().iter().zip(written.columns()) {
        let found = read.column_by_name(field.name()).unwrap();
        assert_eq!(&values(found), &values(column), "{field}");
        let is_same = found.data_type() == column.data_type();
        let keeps = match column.data_type() {
            DataType::Dictionary(..) => keeps_dictionaries,
            // Parquet has no run-end encoded columns.
            DataType::RunEndEncoded(..) => continue,
            _ => true,
        };
        assert_eq!(is_same, keeps, "{field}: {}", found.data_type());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn parquet_and_arrow_keep_every_type_and_value(
        numbers in proptest::collection::vec(
            prop_oneof![1 => Just(None), 4 => (-200_i64..86_000).prop_map(Some)],
            0..120,
        ),
        per_batch in 1_usize..50,
    ) {
        let folder = tempfile::tempdir().unwrap();
        let rows = columns(&numbers);
        let path = folder.path().join("rows.parquet");
        let written = write_file(&rows, at(&path, WriteFormat::Parquet), per_batch, usize::MAX);
        prop_assert_eq!(written, numbers.len() as u64);
        check_equal(&read_parquet(&path).0, &rows, true);
        let path = folder.path().join("rows.arrow");
        let written = write_file(&rows, at(&path, WriteFormat::Arrow), per_batch, usize::MAX);
        prop_assert_eq!(written, numbers.len() as u64);
        check_equal(&read_arrow(&path), &rows, false);
        prop_assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    }
}

fn at(path: &Path, format: WriteFormat) -> Write {
    Write::new(path.to_str().unwrap(), format)
}

#[test]
fn an_empty_stream_makes_a_file_with_the_columns() {
    let folder = tempfile::tempdir().unwrap();
    let rows = columns(&[]);
    let path = folder.path().join("rows");
    write_file(&rows, at(&path, WriteFormat::Parquet), 1, usize::MAX);
    check_equal(&read_parquet(&path).0, &rows, true);
    write_file(&rows, at(&path, WriteFormat::Arrow), 1, usize::MAX);
    check_equal(&read_arrow(&path), &rows, false);
}

/// Numbers that compress little.
fn noise(rows: usize) -> RecordBatch {
    let mut state = 1_u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        i64::from_ne_bytes(state.to_ne_bytes())
    };
    let numbers = Int64Array::from_iter_values((0..rows).map(|_| next()));
    RecordBatch::try_from_iter([("number", Arc::new(numbers) as ArrayRef)]).unwrap()
}

#[test]
fn row_groups_end_by_their_bytes_and_when_memory_is_short() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rows.parquet");
    let rows = noise(400_000);
    let groups = |row_group_bytes: Option<usize>, memory| {
        let mut spec = at(&path, WriteFormat::Parquet);
        if let Some(bytes) = row_group_bytes {
            spec = spec.row_group_bytes(bytes);
        }
        assert_eq!(write_file(&rows, spec, 10_000, memory), 400_000);
        let (read, metadata) = read_parquet(&path);
        assert_eq!(read, rows);
        metadata.row_groups().iter().for_each(|group| {
            let column = group.column(0);
            assert_eq!(column.compression().to_string(), "ZSTD(ZstdLevel(1))");
            let statistics = column.statistics().unwrap();
            assert!(statistics.min_bytes_opt().is_some() && statistics.max_bytes_opt().is_some());
        });
        metadata.row_groups().iter().map(|group| group.compressed_size()).collect::<Vec<_>>()
    };
    assert_eq!(groups(None, usize::MAX).len(), 1, "3.2 MB");
    let bounded = groups(Some(500_000), usize::MAX);
    assert!(bounded.len() >= 6 && bounded.iter().all(|&bytes| bytes < 600_000), "{bounded:?}");
    let short = groups(None, 3 << 20);
    assert!((2..40).contains(&short.len()), "{short:?}");
}

#[test]
fn a_row_group_that_does_not_fit_the_memory_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let rows = noise(100_000);
    let spec = at(&folder.path().join("rows.parquet"), WriteFormat::Parquet);
    let mut writer = bind_within(spec, &rows, &MemoryBudget::new(1_000));
    let error = run_operator(&mut *writer, [rows]).unwrap_err().to_string();
    assert!(error.contains("rows.parquet") && error.contains("memory_max"), "{error}");
    drop(writer);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

/// Types that some formats do not have.
fn odd_types() -> Vec<(DataType, [bool; 4])> {
    let field = |name: &str, found| Arc::new(Field::new(name, found, true));
    let union = DataType::Union(
        [(0, field("a", DataType::Int32)), (1, field("b", DataType::Utf8))].into_iter().collect(),
        UnionMode::Dense,
    );
    let dictionary = DataType::Dictionary(Box::new(DataType::Int8), Box::new(DataType::LargeUtf8));
    let run = |values| {
        let ends = Arc::new(Field::new("run_ends", DataType::Int32, false));
        DataType::RunEndEncoded(ends, field("values", values))
    };
    let list = |of| DataType::List(field("item", of));
    let interval = DataType::Interval(IntervalUnit::MonthDayNano);
    let filled = Arc::new(Field::new("item", DataType::Int32, false));
    // Whether jsonl, csv, parquet and a file of arrow have the type.
    vec![
        (DataType::Null, [true, true, true, true]),
        (union.clone(), [false, false, false, true]),
        (list(union), [false, false, false, true]),
        (interval, [true, true, false, true]),
        (dictionary.clone(), [true, true, true, true]),
        (list(dictionary.clone()), [true, false, true, true]),
        (run(dictionary), [true, true, true, true]),
        (DataType::Struct(Fields::empty()), [true, false, false, true]),
        (DataType::Struct(vec![Arc::clone(&filled)].into()), [true, false, true, true]),
        (DataType::FixedSizeList(filled, 2), [true, false, true, true]),
    ]
}

#[test]
fn a_type_that_a_format_does_not_have_is_told_before_the_run() {
    let formats = [WriteFormat::Jsonl, WriteFormat::Csv, WriteFormat::Parquet, WriteFormat::Arrow];
    let folder = tempfile::tempdir().unwrap();
    for (found, expected) in odd_types() {
        let schema = Arc::new(Schema::new(vec![
            Field::new("good", DataType::Int32, false),
            Field::new("odd", found.clone(), true),
        ]));
        for (format, has) in formats.into_iter().zip(expected) {
            let path = folder.path().join(format!("{format:?}"));
            match bind(at(&path, format), &[SchemaRef::clone(&schema)]) {
                Ok(_) => assert!(has, "{format:?} took {found}"),
                Err(error) => {
                    assert!(!has, "{format:?} refused {found}: {error}");
                    assert_eq!(error.parameter, Some("format"));
                    let text = error.to_string();
                    assert!(text.contains("odd") && !text.contains("good"), "{text}");
                }
            }
            if has {
                // If a stage can be bound, its rows can be written.
                let good = Arc::new(arrow_array::Int32Array::from(vec![1, 2])) as ArrayRef;
                let columns = vec![good, new_null_array(&found, 2)];
                let rows = RecordBatch::try_new(SchemaRef::clone(&schema), columns).unwrap();
                write_file(&rows, at(&path, format), 1, usize::MAX);
            }
        }
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 4);
}

#[test]
fn the_largest_fixed_size_takes_no_memory_before_the_run() {
    let inner = DataType::FixedSizeList(Arc::new(Field::new("x", DataType::Int8, true)), i32::MAX);
    let found = DataType::FixedSizeList(Arc::new(Field::new("y", inner, true)), i32::MAX);
    let schema = Arc::new(Schema::new(vec![Field::new("huge", found, true)]));
    let folder = tempfile::tempdir().unwrap();
    for format in [WriteFormat::Jsonl, WriteFormat::Parquet, WriteFormat::Arrow] {
        bind(at(&folder.path().join("rows"), format), &[SchemaRef::clone(&schema)]).unwrap();
    }
}

#[test]
fn files_of_columns_do_not_grow_and_only_parquet_has_row_groups() {
    let schema = noise(0).schema();
    let refused = |spec: Write| bind(spec, &[SchemaRef::clone(&schema)]).unwrap_err();
    for format in [WriteFormat::Parquet, WriteFormat::Arrow] {
        let error = refused(Write::new("rows", format).append());
        assert_eq!(error.parameter, Some("append"));
        assert!(error.to_string().contains("complete at the end"), "{error}");
        let error = refused(Write::new("rows", format).rotate(Rotate::bytes(9)));
        assert_eq!(error.parameter, Some("rotate"));
    }
    let error = refused(Write::new("-", WriteFormat::Csv).row_group_bytes(1 << 20));
    assert_eq!(error.parameter, Some("row_group_bytes"));
    let error = refused(Write::new("-", WriteFormat::Parquet).row_group_bytes(1));
    assert_eq!(error.parameter, Some("row_group_bytes"));
}

#[test]
fn batches_with_dictionaries_of_their_own_are_one_column() {
    let folder = tempfile::tempdir().unwrap();
    let batch = |texts: [&str; 2]| {
        let column: DictionaryArray<Int8Type> = texts.into_iter().collect();
        RecordBatch::try_from_iter([("text", Arc::new(column) as ArrayRef)]).unwrap()
    };
    let batches = || [batch(["a", "b"]), batch(["c", "a"])];
    let expected = Arc::new(StringArray::from(vec!["a", "b", "c", "a"])) as ArrayRef;
    let write = |path: &Path, format| {
        let mut writer = bind_operator(at(path, format), &batch(["", ""]).schema());
        run_operator(&mut *writer, batches()).unwrap();
    };
    let path = folder.path().join("rows");
    write(&path, WriteFormat::Arrow);
    assert_eq!(read_arrow(&path).column(0), &expected);
    write(&path, WriteFormat::Parquet);
    let read = read_parquet(&path).0;
    assert_eq!(read.column(0).data_type(), batch(["", ""]).column(0).data_type());
    assert_eq!(&values(read.column(0)), &expected);
    // A stream may replace a dictionary.
    let schema = batch(["", ""]).schema();
    let format = ColumnFormat::ArrowStream;
    let mut stream = Columnar::new(format, &schema, Default::default()).unwrap();
    let mut bytes = Vec::new();
    for rows in batches() {
        stream.add(&rows, &mut bytes).unwrap();
    }
    stream.finish(&mut bytes).unwrap();
    let read = StreamReader::try_new(Cursor::new(bytes), None).unwrap();
    let columns: Vec<ArrayRef> = read.map(|rows| values(rows.unwrap().column(0))).collect();
    let columns: Vec<&dyn Array> = columns.iter().map(|column| &**column).collect();
    assert_eq!(&concat(&columns).unwrap(), &expected);
}

#[test]
fn a_descriptor_gets_a_stream_of_the_batches() {
    let folder = tempfile::tempdir().unwrap();
    let file = File::create_new(folder.path().join("rows")).unwrap();
    let numbers: Vec<Option<i64>> = (0..100).map(|n| (n % 7 != 0).then_some(n)).collect();
    let rows = columns(&numbers);
    let path = format!("/dev/fd/{}", file.as_raw_fd());
    assert_eq!(write_file(&rows, Write::new(path, WriteFormat::Arrow), 30, usize::MAX), 100);
    let bytes = fs::read(folder.path().join("rows")).unwrap();
    let reader = StreamReader::try_new(Cursor::new(bytes), None).unwrap();
    let schema = reader.schema();
    let batches: Vec<_> = reader.map(Result::unwrap).collect();
    assert_eq!(batches.len(), 4);
    check_equal(&concat_batches(&schema, &batches).unwrap(), &rows, true);
}

/// A row of values and a row of nulls.
fn texts_of_types(format: WriteFormat, columns: Vec<(&str, ArrayRef)>) -> String {
    let folder = tempfile::tempdir().unwrap();
    let columns = columns.into_iter().map(|(name, column)| (name, column, true));
    let rows = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
    let path = folder.path().join("rows");
    write_file(&rows, at(&path, format), 2, usize::MAX);
    fs::read_to_string(path).unwrap()
}

fn from_number(number: i64, wanted: &DataType) -> ArrayRef {
    cast(&Int64Array::from(vec![Some(number), None]), wanted).unwrap()
}

fn plain_columns() -> Vec<(&'static str, ArrayRef)> {
    let zone = Some(Arc::from("+02:00"));
    let mut fixed = FixedSizeBinaryBuilder::new(2);
    fixed.append_value([0, 255]).unwrap();
    fixed.append_null();
    let mut view = BinaryViewBuilder::new();
    view.append_value([1]);
    view.append_null();
    let dictionary: DictionaryArray<Int8Type> = [Some("d"), None].into_iter().collect();
    let millis = DataType::Timestamp(TimeUnit::Millisecond, None);
    let day = from_number(1, &DataType::Int32);
    vec![
        ("truth", Arc::new(BooleanArray::from(vec![Some(true), None]))),
        ("nan", Arc::new(Float64Array::from(vec![Some(f64::NAN), None]))),
        ("inf", Arc::new(Float64Array::from(vec![Some(f64::NEG_INFINITY), None]))),
        ("date", cast(&day, &DataType::Date32).unwrap()),
        ("time", from_number(1_500, &millis)),
        ("zoned", from_number(0, &DataType::Timestamp(TimeUnit::Second, zone))),
        ("took", from_number(90, &DataType::Duration(TimeUnit::Second))),
        ("price", from_number(7, &DataType::Decimal128(10, 2))),
        ("bytes", Arc::new(BinaryArray::from(vec![Some(&b"\x00\xab"[..]), None]))),
        ("fixed", Arc::new(fixed.finish())),
        ("view", Arc::new(view.finish())),
        ("word", Arc::new(dictionary)),
        ("none", Arc::new(NullArray::new(2))),
    ]
}

#[test]
fn csv_writes_every_plain_type() {
    assert_eq!(
        texts_of_types(WriteFormat::Csv, plain_columns()),
        "truth,nan,inf,date,time,zoned,took,price,bytes,fixed,view,word,none\n\
         true,NaN,-inf,1970-01-02,1970-01-01T00:00:01.500,1970-01-01T02:00:00+02:00,PT90S,7.00,\
         00ab,00ff,01,d,\n,,,,,,,,,,,,\n"
    );
}

#[test]
fn jsonl_writes_every_type() {
    let mut columns = plain_columns();
    let texts = StringArray::from(vec![Some("x\""), None]);
    let fields = Fields::from(vec![Field::new("text", DataType::Utf8, true)]);
    columns.push(("row", Arc::new(StructArray::new(fields, vec![Arc::new(texts)], None))));
    let mut map = MapBuilder::new(None, StringBuilder::new(), Int32Builder::new());
    map.keys().append_value("k");
    map.values().append_null();
    map.append(true).unwrap();
    map.append(false).unwrap();
    columns.push(("map", Arc::new(map.finish())));
    let mut list = ListBuilder::new(StringBuilder::new());
    list.append_value([Some("a"), None]);
    list.append_null();
    columns.push(("list", Arc::new(list.finish())));
    let ends = arrow_array::Int32Array::from(vec![1, 2]);
    let runs = RunArray::try_new(&ends, &Int64Array::from(vec![Some(5), None])).unwrap();
    columns.push(("run", Arc::new(runs)));
    let text = texts_of_types(WriteFormat::Jsonl, columns);
    let (values, nulls) = text.split_once('\n').unwrap();
    assert_eq!(
        values,
        "{\"truth\":true,\"nan\":null,\"inf\":null,\"date\":\"1970-01-02\",\
         \"time\":\"1970-01-01T00:00:01.500\",\"zoned\":\"1970-01-01T02:00:00+02:00\",\
         \"took\":\"PT90S\",\"price\":7.00,\"bytes\":\"00ab\",\"fixed\":\"00ff\",\"view\":\"01\",\
         \"word\":\"d\",\"none\":null,\"row\":{\"text\":\"x\\\"\"},\"map\":{\"k\":null},\
         \"list\":[\"a\",null],\"run\":5}"
    );
    let nulls: serde_json::Map<String, serde_json::Value> = serde_json::from_str(nulls).unwrap();
    assert_eq!(nulls.len(), 17);
    for (name, value) in nulls {
        let expected = match name.as_str() {
            "row" => serde_json::json!({ "text": null }),
            _ => serde_json::Value::Null,
        };
        assert_eq!(value, expected, "{name}");
    }
}
