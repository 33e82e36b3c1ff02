use std::fs;
use std::io;
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use arrow_array::builder::{ListBuilder, UInt32Builder};
use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray, UInt64Array};
use arrow_schema::{DataType, Field, Schema};
use trommel_engine::batch::{Batch, Origin, Payload};
use trommel_engine::graph::Graph;
use trommel_engine::operator::Output;
use trommel_engine::runtime::RunOptions;

use super::*;
use crate::Memory;
use crate::testing::{bind, bind_operator, run_operator};

fn words() -> RecordBatch {
    let schema = Schema::new(vec![
        Field::new("rank", DataType::UInt64, false),
        Field::new("item", DataType::Utf8, true),
        Field::new("share", DataType::Float64, false),
    ]);
    let columns: Vec<ArrayRef> = vec![
        Arc::new(UInt64Array::from(vec![1, 2, 12_345])),
        Arc::new(StringArray::from(vec![Some("the"), None, Some("a,\"b\"\n\u{1b}é")])),
        Arc::new(Float64Array::from(vec![0.5, 0.25, 1e-9])),
    ];
    RecordBatch::try_new(Arc::new(schema), columns).unwrap()
}

fn sets() -> RecordBatch {
    let mut set = ListBuilder::new(UInt32Builder::new());
    set.append_value([Some(1), Some(2)]);
    set.append_value([]);
    let set = set.finish();
    let field = Field::new("set", arrow_array::Array::data_type(&set).clone(), false);
    RecordBatch::try_new(Arc::new(Schema::new(vec![field])), vec![Arc::new(set)]).unwrap()
}

/// Content of a new file after these batches were written.
fn written(spec: impl Fn(&str) -> Write, batches: Vec<RecordBatch>) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out");
    let schema = batches[0].schema();
    let mut writer = bind_operator(spec(path.to_str().unwrap()), &schema);
    run_operator(&mut *writer, batches).unwrap();
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left beside the file");
    fs::read_to_string(path).unwrap()
}

#[test]
fn jsonl_writes_an_object_a_line() {
    let text =
        written(|path| Write::new(path, WriteFormat::Jsonl), vec![words(), words().slice(0, 1)]);
    let first = r#"{"rank":1,"item":"the","share":0.5}"#;
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!((lines[0], lines[3], lines.len()), (first, first, 4));
    assert_eq!(lines[1], r#"{"rank":2,"item":null,"share":0.25}"#);
    assert_eq!(lines[2], r#"{"rank":12345,"item":"a,\"b\"\n\u001bé","share":1.0e-9}"#);
    let text = written(|path| Write::new(path, WriteFormat::Jsonl), vec![sets()]);
    assert_eq!(text, "{\"set\":[1,2]}\n{\"set\":[]}\n");
}

#[test]
fn csv_writes_the_header_once() {
    let text = written(
        |path| Write::new(path, WriteFormat::Csv),
        vec![words().slice(0, 2), words().slice(0, 1)],
    );
    assert_eq!(text, "rank,item,share\n1,the,0.5\n2,,0.25\n1,the,0.5\n");
    let text = written(|path| Write::new(path, WriteFormat::Csv), vec![words().slice(2, 1)]);
    assert_eq!(text, "rank,item,share\n12345,\"a,\"\"b\"\"\n\u{1b}é\",1e-9\n");
}

#[test]
fn rows_that_several_workers_encode_are_written_in_order() {
    let sizes = [1_usize, 700, 3, 64, 1, 2000, 5];
    let mut numbers = 0_u64..;
    let batches: Vec<RecordBatch> = sizes
        .iter()
        .cycle()
        .take(60)
        .map(|&rows| {
            let texts = numbers.by_ref().take(rows).map(|n| format!("a \"{n}\""));
            let texts: ArrayRef = Arc::new(StringArray::from_iter_values(texts));
            RecordBatch::try_from_iter([("text", texts)]).unwrap()
        })
        .collect();
    let rows: u64 = batches.iter().map(|batch| batch.num_rows() as u64).sum();
    let run = |format, append: bool, workers: usize| {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        let mut graph = Graph::new();
        let memory = Memory::new(batches[0].schema(), batches.clone());
        let texts = graph.add("texts", memory);
        let write = Write { append, ..Write::new(path.to_str().unwrap(), format) };
        let write = graph.add_after(texts, "write", write);
        graph.workers(write, workers);
        let metrics = graph.build().unwrap().run(RunOptions::new()).unwrap();
        let stage = metrics.stage("write").unwrap();
        assert_eq!((stage.workers(), stage.items_in()), (workers, rows));
        assert_eq!(stage.counter("rows_written"), rows);
        fs::read_to_string(path).unwrap()
    };
    for append in [false, true] {
        let line = |n| format!("a \"{n}\"\n");
        let csv = |n| format!("\"a \"\"{n}\"\"\"\n");
        let jsonl = |n| format!("{{\"text\":\"a \\\"{n}\\\"\"}}\n");
        for workers in [1, 2, 3, 8] {
            let lines: String = (0..rows).map(line).collect();
            assert_eq!(run(WriteFormat::Lines, append, workers), lines);
            let records: String = (0..rows).map(csv).collect();
            assert_eq!(run(WriteFormat::Csv, append, workers), format!("text\n{records}"));
            let objects: String = (0..rows).map(jsonl).collect();
            assert_eq!(run(WriteFormat::Jsonl, append, workers), objects);
        }
    }
}

#[test]
fn a_stream_without_rows_makes_a_file() {
    for (format, expected) in [(WriteFormat::Jsonl, ""), (WriteFormat::Csv, "rank,item,share\n")] {
        let text = written(|path| Write::new(path, format), vec![words().slice(0, 0)]);
        assert_eq!(text, expected);
    }
}

#[test]
fn csv_refuses_lists_when_it_is_bound() {
    let error = bind(Write::new("-", WriteFormat::Csv), &[sets().schema()]).unwrap_err();
    assert_eq!(error.parameter, Some("format"));
    assert!(error.to_string().contains("csv does not support lists"), "{error}");
}

#[test]
fn a_table_is_aligned_and_says_what_it_leaves_out() {
    let spec = |path: &str| Write::new(path, WriteFormat::Table).rows_max(4);
    let text = written(spec, vec![words(), words()]);
    assert_eq!(text, TABLE);
    let text = written(spec, vec![sets()]);
    assert_eq!(text, "set\n──────\n[1, 2]\n[]\n");
}

const TABLE: &str = " rank  item            share
────────────────────────────
    1  the               0.5
    2                   0.25
12345  a,\"b\"\\n\\u{1b}é   1e-9
    1  the               0.5
… and 2 more rows
";

#[test]
fn a_table_is_sorted_and_equal_rows_stay_in_order() {
    let texts = ["b", "a", "c", "a"].map(Some).into_iter().chain([None]);
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("text", Arc::new(StringArray::from_iter(texts))),
        ("share", Arc::new(Float64Array::from(vec![0.5, 0.25, 0.5, 0.5, 0.75]))),
        ("-n", Arc::new(UInt64Array::from(vec![0, 1, 2, 3, 4]))),
    ];
    let columns = columns.into_iter().map(|(name, column)| (name, column, true));
    let rows = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
    let order = |sort: &[&str], rows_max: usize| {
        let spec = |path: &str| {
            let sort = sort.iter().copied();
            Write::new(path, WriteFormat::Table).sort(sort).rows_max(rows_max)
        };
        let text = written(spec, vec![rows.slice(0, 2), rows.slice(2, 3)]);
        let lines = text.lines().skip(2).filter(|line| !line.starts_with('…'));
        let numbers = lines.map(|line| line.split_whitespace().last().unwrap().parse().unwrap());
        numbers.collect::<Vec<u64>>()
    };
    assert_eq!(order(&[], 9), [0, 1, 2, 3, 4]);
    assert_eq!(order(&["-share"], 9), [4, 0, 2, 3, 1]);
    assert_eq!(order(&["-share", "text"], 9), [4, 3, 0, 2, 1]);
    assert_eq!(order(&["text", "-n"], 9), [1, 3, 0, 2, 4], "nulls last, and a name with a sign");
    assert_eq!(order(&["-text"], 9), [2, 0, 1, 3, 4]);
    assert_eq!(order(&["-share"], 3), [0, 2, 1], "the rows that were kept");
    let refused = |spec: Write, input: &RecordBatch, said: &str| {
        let error = bind(spec, &[input.schema()]).unwrap_err();
        assert_eq!(error.parameter, Some("sort"), "{error}");
        assert!(error.to_string().contains(said), "{error}");
    };
    let table = || Write::new("-", WriteFormat::Table);
    refused(table().sort(["-shares"]), &rows, "share");
    refused(table().sort(["set"]), &sets(), "a plain value");
    refused(Write::new("-", WriteFormat::Csv).sort(["text"]), &rows, "only a `table`");
}

#[test]
fn columns_are_chosen_and_cells_are_cut() {
    let spec = |format| move |path: &str| Write::new(path, format).columns(["share", "rank"]);
    let text = written(spec(WriteFormat::Jsonl), vec![words().slice(0, 1)]);
    assert_eq!(text, "{\"share\":0.5,\"rank\":1}\n");
    let text = written(spec(WriteFormat::Csv), vec![words().slice(0, 1)]);
    assert_eq!(text, "share,rank\n0.5,1\n");
    let cut = |characters| {
        let spec = move |path: &str| {
            Write::new(path, WriteFormat::Table).columns(["item"]).cell_max(characters)
        };
        let text = written(spec, vec![words()]);
        text.lines().skip(2).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(cut(14), ["the", "", "a,\"b\"\\n\\u{1b}é"]);
    assert_eq!(cut(13), ["the", "", "a,\"b\"\\n\\u{1b…"]);
    assert_eq!(cut(3), ["the", "", "a,…"]);
    assert_eq!(cut(2), ["t…", "", "a…"]);
    assert_eq!(cut(1), ["…", "", "…"]);
    let refused = |spec: Write| bind(spec, &[words().schema()]).unwrap_err().parameter.unwrap();
    assert_eq!(refused(Write::new("-", WriteFormat::Table).columns(["shares"])), "columns");
    assert_eq!(refused(Write::new("-", WriteFormat::Table).columns([""; 0])), "columns");
    assert_eq!(refused(Write::new("-", WriteFormat::Csv).columns(["rank", "rank"])), "columns");
    assert_eq!(refused(Write::new("-", WriteFormat::Table).cell_max(0)), "cell_max");
}

#[test]
fn rows_not_shown_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out");
    let spec = Write::new(path.to_str().unwrap(), WriteFormat::Table).rows_max(2);
    let mut writer = bind_operator(spec, &words().schema());
    run_operator(&mut *writer, [words()]).unwrap();
    assert_eq!(writer.counters(), [("rows_not_shown", 1)]);
}

#[test]
fn a_file_appears_only_when_it_is_complete() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out");
    fs::write(&path, "before").unwrap();
    let spec = Write::new(path.to_str().unwrap(), WriteFormat::Jsonl);
    let mut writer = bind_operator(spec, &words().schema());
    let origin = Origin { sequence: 0, entered: Instant::now() };
    let mut out = Output::new();
    for _ in 0..20_000 {
        let batch = Batch { records: words(), origin };
        writer.process(0, Payload::Batch(batch), &mut out).unwrap();
    }
    assert!(writer.counters()[0].1 > 0, "several buffers were written");
    drop(writer);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    assert_eq!(fs::read_to_string(&path).unwrap(), "before");
}

#[test]
fn a_link_and_a_device_stay_what_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let (file, link) = (folder.path().join("file"), folder.path().join("link"));
    fs::write(&file, "before").unwrap();
    std::os::unix::fs::symlink(&file, &link).unwrap();
    for path in [link.to_str().unwrap(), "/dev/null"] {
        let mut writer = bind_operator(Write::new(path, WriteFormat::Csv), &words().schema());
        run_operator(&mut *writer, [words()]).unwrap();
    }
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert!(fs::read_to_string(&file).unwrap().starts_with("rank,"));
    assert!(!fs::metadata("/dev/null").unwrap().is_file());
}

#[test]
fn paths_are_checked_when_it_is_bound() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("no/out");
    for path in [folder.path(), &missing] {
        let spec = Write::new(path.to_str().unwrap(), WriteFormat::Jsonl);
        let error = bind(spec, &[words().schema()]).unwrap_err();
        assert_eq!(error.parameter, Some("path"));
        assert!(error.to_string().contains(path.to_str().unwrap()), "{error}");
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "binding creates no file");
}

#[test]
fn the_operating_systems_error_is_reachable() {
    let spec = Write::new("/dev/full", WriteFormat::Jsonl);
    let mut writer = bind_operator(spec, &words().schema());
    let error = run_operator(&mut *writer, [words()]).unwrap_err();
    assert!(error.to_string().starts_with("cannot write /dev/full: "), "{error}");
    let source = error.source().and_then(|source| source.downcast_ref::<io::Error>());
    assert_eq!(source.unwrap().kind(), io::ErrorKind::StorageFull);
}

/// Files of a folder with their content, by name.
fn files(folder: &Path) -> Vec<(String, String)> {
    let entry = |entry: io::Result<fs::DirEntry>| {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        (name, fs::read_to_string(path).unwrap())
    };
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(entry).collect();
    files.sort();
    files
}

fn numbers(range: std::ops::Range<u64>) -> RecordBatch {
    let column: ArrayRef = Arc::new(UInt64Array::from_iter_values(range));
    RecordBatch::try_from_iter([("n", column)]).unwrap()
}

/// Numbers in the rows of these CSV files, which all have a header.
fn rows_of(files: &[(String, String)]) -> Vec<u64> {
    let mut rows = Vec::new();
    for (name, content) in files {
        let mut lines = content.lines();
        assert_eq!(lines.next(), Some("n"), "{name} begins with its header");
        rows.extend(lines.map(|line| line.parse::<u64>().unwrap()));
    }
    rows
}

fn process(writer: &mut dyn Operator, records: RecordBatch) {
    let origin = Origin { sequence: 0, entered: Instant::now() };
    let batch = Payload::Batch(Batch { records, origin });
    writer.process(0, batch, &mut Output::new()).unwrap();
}

#[test]
fn appending_goes_on_behind_what_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.csv");
    let spec = || Write::new(path.to_str().unwrap(), WriteFormat::Csv).append();
    let schema = numbers(0..0).schema();
    for range in [0..3, 3..3, 3..5] {
        run_operator(&mut *bind_operator(spec(), &schema), [numbers(range)]).unwrap();
    }
    assert_eq!(fs::read_to_string(&path).unwrap(), "n\n0\n1\n2\n3\n4\n", "one header");
    // The last run ended in the middle of a row, because its machine failed.
    fs::write(&path, "n\n0\n1").unwrap();
    run_operator(&mut *bind_operator(spec(), &schema), [numbers(7..8)]).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "n\n0\n1\n7\n");
    for other in ["m\n1\n", "1\n"] {
        fs::write(&path, other).unwrap();
        let error = bind(spec(), &[SchemaRef::clone(&schema)]).unwrap_err();
        assert_eq!(error.parameter, Some("path"));
        assert!(error.to_string().contains("does not begin with `n`"), "{error}");
    }
}

#[test]
fn rows_of_a_growing_file_stay_when_the_run_fails_and_leave_in_time() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out");
    let spec = Write::new(path.to_str().unwrap(), WriteFormat::Jsonl).append().flush_seconds(60.0);
    let mut writer = bind_operator(spec, &numbers(0..0).schema());
    assert_eq!(writer.wake_at(), None);
    process(&mut *writer, numbers(0..1));
    assert_eq!(fs::read_to_string(&path).unwrap(), "", "it is kept back");
    let due = writer.wake_at().expect("a time to write it");
    assert!(due > Instant::now() + Duration::from_secs(50));
    writer.wake(due, &mut Output::new()).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "{\"n\":0}\n");
    assert_eq!(writer.wake_at(), None);
    process(&mut *writer, numbers(1..2));
    // The drop stands for a run that was aborted.
    drop(writer);
    assert_eq!(fs::read_to_string(&path).unwrap(), "{\"n\":0}\n{\"n\":1}\n");
    let spec = Write::new(path.to_str().unwrap(), WriteFormat::Jsonl).append().flush_seconds(0.0);
    let mut writer = bind_operator(spec, &numbers(0..0).schema());
    process(&mut *writer, numbers(2..3));
    assert!(fs::read_to_string(&path).unwrap().ends_with("{\"n\":2}\n"), "at once");
    let counters = [("rows_written", 1), ("files_rotated", 0), ("files_reopened", 0)];
    assert_eq!(writer.counters(), counters);
}

#[test]
fn rows_go_into_a_new_file_when_another_program_moves_or_removes_the_old_one() {
    let folder = tempfile::tempdir().unwrap();
    let (path, moved) = (folder.path().join("out.csv"), folder.path().join("out.csv.1"));
    let spec = Write::new(path.to_str().unwrap(), WriteFormat::Csv).append().flush_seconds(0.0);
    let mut writer = bind_operator(spec, &numbers(0..0).schema());
    process(&mut *writer, numbers(0..1));
    fs::rename(&path, &moved).unwrap();
    process(&mut *writer, numbers(1..2));
    assert_eq!(fs::read_to_string(&moved).unwrap(), "n\n0\n");
    assert_eq!(fs::read_to_string(&path).unwrap(), "n\n1\n");
    fs::remove_file(&path).unwrap();
    process(&mut *writer, numbers(2..3));
    assert_eq!(fs::read_to_string(&path).unwrap(), "n\n2\n");
    let counters = [("rows_written", 3), ("files_rotated", 0), ("files_reopened", 2)];
    assert_eq!(writer.counters(), counters);
}

#[test]
fn a_file_that_cannot_grow_says_how_much_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out");
    let spec = Write::new(path.to_str().unwrap(), WriteFormat::Jsonl);
    let spec = spec.rotate(Rotate::bytes(20)).flush_seconds(0.0);
    let mut writer = bind_operator(spec, &numbers(0..0).schema());
    process(&mut *writer, numbers(0..2));
    // The next file cannot be opened after this.
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    let origin = Origin { sequence: 0, entered: Instant::now() };
    let batch = Payload::Batch(Batch { records: numbers(2..9), origin });
    let error = writer.process(0, batch, &mut Output::new()).unwrap_err().to_string();
    assert!(
        error.starts_with("cannot write ") && error.ends_with("written before are kept"),
        "{error}"
    );
    assert!(error.contains("the 2 rows"), "{error}");
    // Another program has renamed the file. The file that now has the name is left alone.
    assert!(fs::metadata(&path).unwrap().is_dir());
}

#[test]
fn a_full_file_gives_way_to_the_next_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.csv");
    for (most, batch) in [(40_usize, 1), (40, 50), (1_000, 7), (100_000, 999), (3, 1)] {
        let spec = Write::new(path.to_str().unwrap(), WriteFormat::Csv);
        let spec = spec.rotate(Rotate::bytes(most as u64));
        let mut writer = bind_operator(spec, &numbers(0..0).schema());
        let batches = (0..300).step_by(batch);
        let batches = batches.map(|start| numbers(start..300.min(start + batch as u64)));
        run_operator(&mut *writer, batches).unwrap();
        let found = files(folder.path());
        let bytes: usize = found.iter().map(|(_, content)| content.len()).sum();
        let rotated = found.len() - 1;
        let counters =
            [("rows_written", 300), ("files_rotated", rotated as u64), ("files_reopened", 0)];
        assert_eq!(writer.counters(), counters);
        if most == 3 {
            assert_eq!(rotated, 299, "a row has room even if it is too large");
        } else {
            assert!(found.iter().all(|(_, content)| content.len() <= most));
            let fewest = bytes.div_ceil(most);
            assert!(found.len() >= fewest && found.len() <= 2 * fewest, "{}", found.len());
        }
        let (current, full): (Vec<_>, Vec<_>) =
            found.into_iter().partition(|(name, _)| name == "out.csv");
        for (name, _) in &full {
            let time = name.strip_prefix("out.").and_then(|name| name.strip_suffix(".csv"));
            let time = time.expect("the time stands before the extension");
            assert!(time.len() >= "20261122T053312.123Z".len() && time.contains('Z'), "{name}");
        }
        let mut rows = rows_of(&full);
        rows.extend(rows_of(&current));
        rows.sort_unstable();
        assert_eq!(rows, (0..300).collect::<Vec<_>>());
        files(folder.path()).iter().for_each(|(name, _)| {
            fs::remove_file(folder.path().join(name)).unwrap();
        });
    }
}

#[test]
fn a_file_ends_with_its_period_and_not_without_rows() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out");
    let spec = || {
        let spec = Write::new(path.to_str().unwrap(), WriteFormat::Jsonl);
        spec.rotate(Rotate::seconds(3600.0)).flush_seconds(1e4)
    };
    let mut writer = bind_operator(spec(), &numbers(0..0).schema());
    process(&mut *writer, numbers(0..0));
    let hour = writer.wake_at().expect("the next full hour");
    assert!(hour <= Instant::now() + Duration::from_secs(3600));
    writer.wake(hour, &mut Output::new()).unwrap();
    assert_eq!(files(folder.path()).len(), 1, "there is nothing to put away");
    process(&mut *writer, numbers(0..1));
    writer.wake(hour, &mut Output::new()).unwrap();
    assert_eq!(files(folder.path()).len(), 1);
    assert_eq!(files(folder.path())[0].1, "{\"n\":0}\n");
    assert!(files(folder.path())[0].0.starts_with("out.2"), "put away under a name with its time");
    process(&mut *writer, numbers(1..2));
    drop(writer);
    assert_eq!(files(folder.path()).len(), 2);
    // A file of an earlier period is rotated before rows are added.
    let ago = SystemTime::now() - Duration::from_secs(7200);
    fs::File::options().write(true).open(&path).unwrap().set_modified(ago).unwrap();
    run_operator(&mut *bind_operator(spec(), &numbers(0..0).schema()), [numbers(2..3)]).unwrap();
    assert_eq!(files(folder.path()).len(), 3);
    assert_eq!(fs::read_to_string(&path).unwrap(), "{\"n\":2}\n");
}

#[test]
fn the_newest_full_files_are_kept_and_other_files_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.jsonl");
    let (old, other) = ("out.20010101T000000.000Z.jsonl", "out.old.jsonl");
    for name in [old, other] {
        fs::write(folder.path().join(name), "").unwrap();
    }
    let spec = Write::new(path.to_str().unwrap(), WriteFormat::Jsonl);
    let mut writer = bind_operator(spec.rotate(Rotate::bytes(10).keep(3)), &numbers(0..0).schema());
    run_operator(&mut *writer, (1..9).map(|number| numbers(number..number + 1))).unwrap();
    let found = files(folder.path());
    let rows: Vec<&str> = found.iter().map(|(_, rows)| rows.as_str()).collect();
    let full = ["{\"n\":5}\n", "{\"n\":6}\n", "{\"n\":7}\n"];
    assert_eq!(rows[..3], full, "the names sort as the files were rotated");
    assert_eq!((found[3].0.as_str(), rows[3]), ("out.jsonl", "{\"n\":8}\n"));
    assert_eq!((found[4].0.as_str(), found.len()), (other, 5));
}

#[test]
fn what_makes_no_sense_for_a_growing_file_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out");
    let to = |path: &str, format| Write::new(path, format);
    let file = |format| to(path.to_str().unwrap(), format);
    let cases = [
        (file(WriteFormat::Table).append(), "append", "laid out at the end"),
        (file(WriteFormat::Table).rotate(Rotate::bytes(9)), "rotate", "laid out at the end"),
        (to("-", WriteFormat::Csv).append(), "append", "every batch at once"),
        (to("/dev/null", WriteFormat::Csv).rotate(Rotate::bytes(9)), "rotate", "it is not a file"),
        (file(WriteFormat::Csv).rotate(Rotate::default()), "rotate", "set `bytes` or `seconds`"),
        (file(WriteFormat::Csv).rotate(Rotate::bytes(0)), "rotate", "0 is not allowed"),
        (file(WriteFormat::Csv).rotate(Rotate::seconds(0.0)), "rotate", "0 is not allowed"),
        (file(WriteFormat::Csv).rotate(Rotate::bytes(9).keep(0)), "rotate", "0 is not allowed"),
        (file(WriteFormat::Csv).rotate(Rotate::bytes(9).delay_seconds(1.0)), "rotate", "`seconds`"),
        (
            file(WriteFormat::Csv).rotate(Rotate::seconds(2.0).delay_seconds(2.0)),
            "rotate",
            "more than `delay_seconds`",
        ),
        (file(WriteFormat::Csv).flush_seconds(1.0), "flush_seconds", "set `append` or `rotate`"),
        (file(WriteFormat::Csv).append().flush_seconds(-1.0), "flush_seconds", "-1 is not"),
        (to("/no such folder/x", WriteFormat::Csv).append(), "path", "there is no folder"),
    ];
    for (spec, parameter, message) in cases {
        let error = bind(spec, &[numbers(0..0).schema()]).unwrap_err();
        assert_eq!(error.parameter, Some(parameter), "{error}");
        assert!(error.to_string().contains(message), "{error}");
    }
    assert_eq!(files(folder.path()), []);
}

#[test]
fn a_long_table_is_laid_out_in_many_calls() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out");
    let spec = Write::new(path.to_str().unwrap(), WriteFormat::Table).rows_max(100_000);
    let mut writer = bind_operator(spec, &numbers(0..0).schema());
    for start in (0..50_000).step_by(10_000) {
        process(&mut *writer, numbers(start..start + 10_000));
    }
    let mut out = Output::new();
    let mut flow = writer.finish(&mut out).unwrap();
    let mut calls = 1;
    while flow == trommel_engine::operator::Flow::HaveOutput {
        flow = writer.resume(&mut out).unwrap();
        calls += 1;
    }
    assert!(calls > 50, "{calls}");
    assert!(!path.exists(), "it has no name before the run has ended well");
    out.drain_commits().for_each(|commit| commit().unwrap());
    let text = fs::read_to_string(&path).unwrap();
    assert_eq!(text.lines().nth(2), Some("    0"));
    assert_eq!((text.lines().last(), text.lines().count()), (Some("49999"), 50_002));
}

#[test]
fn one_long_value_does_not_widen_all_rows() {
    let texts: ArrayRef = Arc::new(StringArray::from(vec!["x".repeat(10_000), "short".to_owned()]));
    let counts: ArrayRef = Arc::new(UInt64Array::from(vec![1, 2]));
    let rows = RecordBatch::try_from_iter([("text", texts), ("n", counts)]).unwrap();
    let text = written(|path| Write::new(path, WriteFormat::Table), vec![rows]);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[2].len(), 10_000 + 3, "the whole value");
    assert_eq!(lines[3], format!("short{}2", " ".repeat(256 - 5 + 2)));
}

#[test]
fn a_table_reserves_the_memory_of_its_rows() {
    let long = "x".repeat(100_000);
    let batch = |rows: usize| {
        let texts: ArrayRef = Arc::new(StringArray::from_iter_values((0..rows).map(|_| &long)));
        RecordBatch::try_from_iter([("text", texts)]).unwrap()
    };
    let folder = tempfile::tempdir().unwrap();
    let run = |batches: Vec<RecordBatch>, rows_max: usize| {
        let mut graph = Graph::new();
        graph.memory_max(2_000_000);
        let rows = graph.add("rows", Memory::new(batches[0].schema(), batches));
        let path = folder.path().join("table");
        let table = Write::new(path.to_str().unwrap(), WriteFormat::Table).cell_max(3);
        graph.add_after(rows, "table", table.rows_max(rows_max));
        let topology = graph.build().unwrap();
        let memory = topology.memory().clone();
        let ended = topology.run(RunOptions::new()).map_err(|error| error.to_string());
        assert_eq!(memory.reserved(), 0);
        ended.map(|_| fs::read_to_string(&path).unwrap().lines().count())
    };
    let error = run(vec![batch(5); 5], 1_000).unwrap_err();
    assert!(error.contains("first 1000 rows, which a table keeps"), "{error}");
    assert!(error.contains("of 2000000 bytes are taken"), "{error}");
    // Rows that are only counted take no memory, nor do the other rows of a batch.
    assert_eq!(run(vec![batch(5); 5], 12), Ok(2 + 12 + 1));
    assert_eq!(run(vec![batch(60)], 9), Ok(2 + 9 + 1));
}

/// The names in a folder, ascending, and the content of each file after decompression.
fn contents(folder: &Path) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| {
            let path = entry.unwrap().path();
            let bytes = fs::read(&path).unwrap();
            let text = match path.extension().unwrap().to_str().unwrap() {
                "gz" => io::read_to_string(flate2::read::MultiGzDecoder::new(&bytes[..])).unwrap(),
                "zst" => String::from_utf8(zstd::decode_all(&bytes[..]).unwrap()).unwrap(),
                _ => String::from_utf8(bytes).unwrap(),
            };
            (path.file_name().unwrap().to_str().unwrap().to_owned(), text)
        })
        .collect();
    found.sort_unstable();
    found
}

#[test]
fn full_files_are_compressed_and_all_rows_are_in_them() {
    for (compression, extension) in
        [(RotateCompression::Gzip, ".gz"), (RotateCompression::Zstd, ".zst")]
    {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rows.jsonl");
        let spec = || {
            let rotate = Rotate::bytes(150).compress(compression);
            Write::new(path.to_str().unwrap(), WriteFormat::Jsonl).rotate(rotate)
        };
        let rows = words();
        // A file that a killed run left, and files of other programs.
        let left = folder.path().join("rows.20250102T030405.678Z.jsonl");
        fs::write(&left, "left\n").unwrap();
        let other = folder.path().join("rows.old.jsonl");
        fs::write(&other, "other\n").unwrap();
        let mut writer = bind_operator(spec(), &rows.schema());
        let batches = vec![rows; 100];
        run_operator(&mut *writer, batches).unwrap();
        let counters = writer.counters();
        drop(writer);
        let found = contents(folder.path());
        let compressed = found.iter().filter(|(name, _)| name.ends_with(extension)).count();
        assert_eq!(compressed, found.len() - 2, "all but the growing file and the other one");
        assert!(counters.contains(&("files_compressed", compressed as u64)), "{counters:?}");
        assert_eq!(
            found[0],
            (format!("rows.20250102T030405.678Z.jsonl{extension}"), "left\n".into())
        );
        let lines = |text: &str| text.lines().count();
        let rows: usize = found.iter().map(|(_, text)| lines(text)).sum();
        assert_eq!(rows, 300 + 2);
        assert_eq!(fs::read_to_string(&other).unwrap(), "other\n");
    }
}

#[test]
fn a_file_is_compressed_in_steps_while_rows_come() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rows.jsonl");
    let left = folder.path().join("rows.20250102T030405.678Z.jsonl");
    fs::write(&left, "x".repeat(3 << 20)).unwrap();
    let rotate = Rotate::bytes(1 << 30).compress(RotateCompression::Gzip);
    let spec = Write::new(path.to_str().unwrap(), WriteFormat::Jsonl).rotate(rotate);
    let mut writer = bind_operator(spec, &words().schema());
    let mut output = Output::new();
    process(&mut *writer, words());
    let mut steps = 0;
    while writer.wake_at().is_some_and(|at| at <= Instant::now()) {
        assert!(left.exists(), "the plain file stays until the compressed one is whole");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "which has no name before");
        writer.wake(Instant::now(), &mut output).unwrap();
        steps += 1;
    }
    assert!((12..=13).contains(&steps), "{steps} steps of 256 KiB");
    assert!(!left.exists());
    assert_eq!(contents(folder.path())[0].1.len(), 3 << 20);
}

#[test]
fn the_oldest_full_files_are_removed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rows.jsonl");
    let old = |name: &str| fs::write(folder.path().join(name), "old\n").unwrap();
    // One file in both forms: its run was killed before it removed the plain file.
    old("rows.20250102T030405.678Z.jsonl");
    old("rows.20250102T030405.678Z.jsonl.gz");
    old("rows.20250102T030405.679Z.jsonl.zst");
    old("rows.20260102T030405.678Z.jsonl");
    old("rows.bak.jsonl");
    let write = |rotate| {
        let spec = Write::new(path.to_str().unwrap(), WriteFormat::Jsonl).rotate(rotate);
        let mut writer = bind_operator(spec, &words().schema());
        run_operator(&mut *writer, vec![words()]).unwrap();
        writer.counters()
    };
    let names = || contents(folder.path()).into_iter().map(|(name, _)| name).collect::<Vec<_>>();
    let removed = |files| ("files_removed", files);
    // Nothing is compressed, so that the content of the files does not matter.
    assert!(write(Rotate::bytes(1 << 20).keep(4)).contains(&removed(0)));
    let removed_two = write(Rotate::bytes(1 << 20).keep(2));
    assert!(removed_two.contains(&removed(2)), "{removed_two:?}");
    fs::remove_file(folder.path().join("rows.20250102T030405.679Z.jsonl.zst")).unwrap();
    assert_eq!(names(), ["rows.20260102T030405.678Z.jsonl", "rows.bak.jsonl", "rows.jsonl"]);
    write(Rotate::bytes(1).keep(2));
    let names = names();
    assert_eq!(names.len(), 4, "two full files, the growing one and another one: {names:?}");
    assert!(!names[0].contains("20260102") && names.contains(&"rows.bak.jsonl".to_owned()));
}
