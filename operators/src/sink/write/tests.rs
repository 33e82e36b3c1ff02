use std::fs;
use std::io;
use std::sync::Arc;

use arrow_array::builder::{ListBuilder, UInt32Builder};
use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray, UInt64Array};
use arrow_schema::{DataType, Field, Schema};
use trommel_engine::batch::{Batch, Origin, Payload};
use trommel_engine::operator::Output;

use super::*;
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

/// What a new file holds after these batches were written to it.
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
    assert!(error.to_string().contains("csv has no lists"), "{error}");
}

#[test]
fn a_table_is_aligned_and_says_what_it_leaves_out() {
    let spec = |path: &str| Write::new(path, WriteFormat::Table).rows_max(4);
    let text = written(spec, vec![words(), words()]);
    assert_eq!(text, TABLE);
    let text = written(spec, vec![sets()]);
    assert_eq!(text, "set\n────────\n[1, 2]\n[]\n");
}

const TABLE: &str = " rank  item            share
──────────────────────────────
    1  the               0.5
    2                   0.25
12345  a,\"b\"\\n\\u{1b}é   1e-9
    1  the               0.5
… and 2 more rows
";

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
    let origin = Origin { sequence: 0, entered: std::time::Instant::now() };
    let mut out = Output::new();
    for _ in 0..20_000 {
        let batch = Batch { records: words(), origin };
        writer.process(0, Payload::Batch(batch), &mut out).unwrap();
    }
    let parts = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap());
    let part = parts.into_iter().find(|entry| entry.file_name() != "out").expect("a part");
    assert!(part.file_name().to_str().unwrap().ends_with(".part"), "{part:?}");
    assert!(part.metadata().unwrap().len() > 0, "several buffers were written");
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
