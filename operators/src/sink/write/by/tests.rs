use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, Int64Array, ListArray, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use proptest::prelude::*;
use trommel_engine::batch::{Batch, Origin, Payload};
use trommel_engine::graph::Graph;
use trommel_engine::memory::MemoryBudget;
use trommel_engine::operator::{Body, Counters, Flow, Operator, OperatorSpec as _, Output};
use trommel_engine::runtime::RunOptions;

use super::*;
use crate::Memory;
use crate::testing::{bind, run_operator};

/// A value and a number in each row.
type Row = (Option<String>, i64);

fn batch(rows: &[Row]) -> RecordBatch {
    let schema = Schema::new(vec![
        Field::new("v", DataType::Utf8, true),
        Field::new("n", DataType::Int64, false),
    ]);
    let values = StringArray::from_iter(rows.iter().map(|row| row.0.as_deref()));
    let numbers = Int64Array::from_iter_values(rows.iter().map(|row| row.1));
    let columns: Vec<ArrayRef> = vec![Arc::new(values), Arc::new(numbers)];
    RecordBatch::try_new(Arc::new(schema), columns).unwrap()
}

fn rows(values: &[&str]) -> Vec<Row> {
    values.iter().zip(0..).map(|(value, number)| (Some((*value).to_owned()), number)).collect()
}

/// The operator, with a budget of `memory` bytes.
fn operator(spec: Write, input: &RecordBatch, memory: usize) -> Box<dyn Operator> {
    let context = BindContext::new(0).memory(MemoryBudget::new(memory));
    let mut parts = Box::new(spec).bind(&[input.schema()], context).unwrap().parts;
    match parts.remove(0).body {
        Body::Operator(operator) => operator,
        Body::Source(_) => unreachable!("a sink"),
    }
}

fn write(spec: Write, batches: Vec<RecordBatch>, memory: usize) -> Counters {
    let mut operator = operator(spec, &batches[0], memory);
    run_operator(&mut *operator, batches).unwrap();
    operator.counters()
}

fn payload(records: RecordBatch) -> Payload {
    let origin = Origin { sequence: 0, entered: Instant::now() };
    Payload::Batch(Batch { records, origin })
}

fn counter(counters: &Counters, name: &str) -> u64 {
    counters.iter().find(|counter| counter.0 == name).unwrap().1
}

/// All files in a folder and in its folders.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found.sort_unstable();
    found
}

/// Decodes `%XX`, as a reader of Hive does.
fn decoded(name: &str) -> Option<String> {
    if name == "__HIVE_DEFAULT_PARTITION__" {
        return None;
    }
    let mut bytes = Vec::new();
    let mut rest = name.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let digits = [rest.next().unwrap(), rest.next().unwrap()];
            bytes.push(u8::from_str_radix(str::from_utf8(&digits).unwrap(), 16).unwrap());
        } else {
            bytes.push(byte);
        }
    }
    Some(String::from_utf8(bytes).unwrap())
}

/// Numbers by value, in order.
fn by_value(rows: &[Row]) -> BTreeMap<Option<String>, Vec<i64>> {
    let mut numbers = BTreeMap::<_, Vec<i64>>::new();
    rows.iter().for_each(|(value, number)| numbers.entry(value.clone()).or_default().push(*number));
    numbers
}

/// Rows of folders `v=VALUE` of Parquet, in the order of the numbers of their files.
fn read_hive(folder: &Path) -> BTreeMap<Option<String>, Vec<i64>> {
    let mut numbers = BTreeMap::<_, Vec<i64>>::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        let rows = numbers.entry(decoded(name.strip_prefix("v=").unwrap())).or_default();
        for part in 0..files(&path).len() {
            let file = File::open(path.join(format!("part-{part}.parquet"))).unwrap();
            for batch in ParquetRecordBatchReaderBuilder::try_new(file).unwrap().build().unwrap() {
                let batch = batch.unwrap();
                assert_eq!(batch.schema().fields().len(), 1, "the folder has the value");
                rows.extend(batch.column(0).as_primitive::<Int64Type>().values());
            }
        }
    }
    numbers
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn each_value_has_its_rows_in_order(
        found in prop::collection::vec(
            (prop::option::weighted(0.9, "[a-c%/. ]{0,3}|ä|\\PC{0,4}"), any::<i64>()), 1..200),
        cut in 1_usize..50,
    ) {
        let folder = tempfile::tempdir().unwrap();
        let path = format!("{}/{{v}}.csv", folder.path().display());
        let batches: Vec<RecordBatch> = found.chunks(cut).map(batch).collect();
        let spec = Write::new(path, WriteFormat::Csv).by("v").columns(["n"]);
        let counters = write(spec, batches, 1 << 30);
        let mut read = BTreeMap::new();
        for path in files(folder.path()) {
            let name = path.file_name().unwrap().to_str().unwrap();
            let text = fs::read_to_string(&path).unwrap();
            let numbers = text.strip_prefix("n\n").unwrap().lines();
            let numbers: Vec<i64> = numbers.map(|line| line.parse().unwrap()).collect();
            read.insert(decoded(name.strip_suffix(".csv").unwrap()), numbers);
        }
        prop_assert_eq!(counter(&counters, "files"), read.len() as u64);
        prop_assert_eq!(read, by_value(&found));
        let hive = tempfile::tempdir().unwrap();
        let path = format!("{}/new/", hive.path().display());
        let batches: Vec<RecordBatch> = found.chunks(cut).map(batch).collect();
        write(Write::new(path, WriteFormat::Parquet).by("v"), batches, 1 << 30);
        prop_assert_eq!(read_hive(&hive.path().join("new")), by_value(&found));
    }
}

/// Batches whose rows have 700 values in turn, more values than files may be open.
fn many_values() -> (Vec<Row>, Vec<RecordBatch>) {
    let found: Vec<Row> =
        (0..40_000).map(|n| (Some(format!("value {}", n * 11 % 700)), n)).collect();
    let batches = found.chunks(5_000).map(batch).collect();
    (found, batches)
}

#[test]
fn more_values_than_open_files_are_written_whole() {
    let (found, batches) = many_values();
    let folder = tempfile::tempdir().unwrap();
    let path = format!("{}/{{v}}/rows.jsonl", folder.path().display());
    let spec = || Write::new(&path, WriteFormat::Jsonl).by("v").columns(["n"]);
    for append in [false, true] {
        let spec = if append { spec().append() } else { spec() };
        // The rows of two batches do not fit into a quarter of the memory.
        let counters = write(spec, batches.clone(), 1 << 20);
        assert!(counter(&counters, "files_reopened") > 400, "{counters:?}");
        assert_eq!(counter(&counters, "rows_written"), 40_000);
        let times = if append { 2 } else { 1 };
        for (value, numbers) in by_value(&found) {
            let name = value.unwrap().replace(' ', "%20");
            let text = fs::read_to_string(folder.path().join(name).join("rows.jsonl")).unwrap();
            let expected: String = numbers.iter().map(|n| format!("{{\"n\":{n}}}\n")).collect();
            assert_eq!(text, expected.repeat(times));
        }
        assert_eq!(files(folder.path()).len(), 700);
    }
}

#[test]
fn further_files_of_columns_hold_the_rest_and_replace_those_of_earlier_runs() {
    let (found, batches) = many_values();
    let folder = tempfile::tempdir().unwrap();
    let path = format!("{}/", folder.path().display());
    let spec = || Write::new(&path, WriteFormat::Parquet).by("v");
    let counters = write(spec(), batches, 600 << 10);
    assert!(counter(&counters, "files") >= 1_400, "{counters:?}");
    assert_eq!(read_hive(folder.path()), by_value(&found));
    // Now one file suffices for each value.
    let first: Vec<Row> = found[..100].to_vec();
    write(spec(), vec![batch(&first)], 1 << 30);
    let mut expected = by_value(&found);
    expected.extend(by_value(&first));
    assert_eq!(read_hive(folder.path()), expected);
}

#[test]
fn a_further_file_never_takes_the_name_of_another_value() {
    let folder = tempfile::tempdir().unwrap();
    let names = Names::new(&format!("{}/{{v}}.parquet", folder.path().display()), "v", "parquet");
    let (names, mut paths) = (names.unwrap(), std::collections::HashSet::new());
    let mut taken = Vec::new();
    for value in ["a", "a.part-1"] {
        let mut sheet = sheet::Sheet::new(names.first(Some(value)).unwrap());
        for _ in 0..3 {
            sheets::take_path(&mut paths, &names, &mut sheet);
            taken.push(sheet.path.clone());
            sheet.part += 1;
            sheet.path = names.further(&sheet.first, sheet.part);
        }
    }
    let different: std::collections::HashSet<_> = taken.iter().collect();
    assert_eq!((taken.len(), different.len()), (6, 6), "{taken:?}");
}

#[test]
fn a_run_that_fails_leaves_what_was_there() {
    let (_, batches) = many_values();
    let folder = tempfile::tempdir().unwrap();
    let old = folder.path().join("value%201.jsonl");
    fs::write(&old, "old").unwrap();
    let path = format!("{}/{{v}}.jsonl", folder.path().display());
    let spec = Write::new(path, WriteFormat::Jsonl).by("v");
    let mut writer = operator(spec, &batches[0], 2 << 20);
    let mut out = Output::new();
    for records in batches {
        writer.process(0, payload(records), &mut out).unwrap();
    }
    assert!(files(folder.path()).len() > 400, "closed files have temporary names");
    while writer.finish(&mut out).unwrap() == Flow::HaveOutput {}
    drop(writer);
    drop(out);
    assert_eq!(files(folder.path()), std::slice::from_ref(&old));
    assert_eq!(fs::read_to_string(&old).unwrap(), "old");
}

#[test]
fn rows_of_files_that_grow_stay_when_the_run_fails() {
    let folder = tempfile::tempdir().unwrap();
    let path = format!("{}/{{v}}/x.csv", folder.path().display());
    let spec = Write::new(path, WriteFormat::Csv).by("v").append();
    let first = batch(&rows(&["a", "b", "a"]));
    let mut writer = operator(spec, &first, 1 << 30);
    writer.process(0, payload(first), &mut Output::new()).unwrap();
    drop(writer);
    let text = fs::read_to_string(folder.path().join("a/x.csv")).unwrap();
    assert_eq!(text, "v,n\na,0\na,2\n");
}

#[test]
fn an_expression_names_its_values() {
    let folder = tempfile::tempdir().unwrap();
    let path = format!("{}/", folder.path().display());
    let spec = Write::new(path, WriteFormat::Jsonl).by("n % 2 = 0 as even");
    write(spec, vec![batch(&rows(&["a", "b", "c"]))], 1 << 30);
    let text = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
    assert_eq!(text("even=false/part-0.jsonl"), "{\"v\":\"b\",\"n\":1}\n");
    assert_eq!(text("even=true/part-0.jsonl").lines().count(), 2);
}

#[test]
fn what_does_not_go_together_is_refused() {
    let schema = batch(&rows(&["a"])).schema();
    let refused = |spec: Write| {
        let error = bind(spec.by("v"), &[Arc::clone(&schema)]).unwrap_err();
        format!("{}: {error}", error.parameter.unwrap())
    };
    let jsonl = |path: &str| Write::new(path, WriteFormat::Jsonl);
    let cases = [
        (jsonl("-"), "path: ", "`{v}` stands for the value"),
        (jsonl("out.jsonl"), "path: ", "out/v=VALUE/part-0.jsonl"),
        (jsonl("{v}.jsonl").rotate(super::super::Rotate::bytes(9)), "rotate: ", "do not rotate"),
        (jsonl("{v}.jsonl").flush_seconds(1.0), "flush_seconds: ", "set `append`"),
        (jsonl("{v}.jsonl").sort(["v"]), "sort: ", "only a `table`"),
        (Write::new("{v}", WriteFormat::Table), "by: ", "a table is one text"),
        (Write::new("{v}", WriteFormat::Parquet).append(), "append: ", "complete at its end"),
        (jsonl("/").columns(["v"]), "columns: ", "another column"),
        (jsonl("/dev/null/{v}"), "path: ", "not a directory"),
    ];
    for (spec, parameter, reason) in cases {
        let error = refused(spec);
        assert!(error.starts_with(parameter) && error.contains(reason), "{error}");
    }
    let lists = ListArray::from_iter_primitive::<Int64Type, _, _>([Some([Some(1)])]);
    let lists = RecordBatch::try_from_iter([("v", Arc::new(lists) as ArrayRef)]).unwrap();
    let error = bind(jsonl("{v}").by("v"), &[lists.schema()]).unwrap_err().to_string();
    assert!(error.contains("a text, a number"), "{error}");
}

#[test]
fn too_many_values_are_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = format!("{}/{{n}}.jsonl", folder.path().display());
    let first = batch(&(0..100_001).map(|n| (None, n)).collect::<Vec<Row>>());
    let spec = Write::new(path, WriteFormat::Jsonl).by("n");
    let error = run_operator(&mut *operator(spec, &first, 1 << 30), [first]).unwrap_err();
    assert!(error.to_string().contains("more than 100000 different values"), "{error}");
    assert_eq!(files(folder.path()), Vec::<PathBuf>::new());
}

#[test]
fn the_file_of_a_value_is_not_that_of_another_stage() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().display();
    let run = |other: Write| -> String {
        let mut graph = Graph::new();
        let found =
            graph.add("rows", Memory::new(batch(&[]).schema(), vec![batch(&rows(&["a", "b"]))]));
        let values = Write::new(format!("{folder}/{{v}}.jsonl"), WriteFormat::Jsonl).by("v");
        graph.add_after(found, "values", values);
        graph.add_after(found, "other", other);
        match graph.build() {
            Ok(topology) => topology.run(RunOptions::new()).unwrap_err().to_string(),
            Err(errors) => errors.to_string(),
        }
    };
    let error = run(Write::new(format!("{folder}/b.jsonl"), WriteFormat::Jsonl));
    assert!(error.contains("also written by another stage"), "{error}");
    let error = run(Write::new(format!("{folder}/{{n}}.csv"), WriteFormat::Csv).by("n"));
    assert!(error.contains("also written by `path` of stage `values`"), "{error}");
}

#[test]
fn values_of_all_plain_types_have_names() {
    let names: HashMap<&str, ArrayRef> = HashMap::from([
        ("-1.5", Arc::new(arrow_array::Float64Array::from(vec![-1.5])) as ArrayRef),
        ("2000-01-01", Arc::new(arrow_array::Date32Array::from(vec![10_957])) as ArrayRef),
        ("1970-01-01T00%3A00%3A01", Arc::new(arrow_array::TimestampSecondArray::from(vec![1]))),
        ("true", Arc::new(arrow_array::BooleanArray::from(vec![true]))),
    ]);
    for (name, column) in names {
        let folder = tempfile::tempdir().unwrap();
        let rows = RecordBatch::try_from_iter([("v", column)]).unwrap();
        let path = format!("{}/{{v}}.jsonl", folder.path().display());
        write(Write::new(path, WriteFormat::Jsonl).by("v"), vec![rows], 1 << 30);
        assert_eq!(files(folder.path()), [folder.path().join(format!("{name}.jsonl"))]);
    }
}
