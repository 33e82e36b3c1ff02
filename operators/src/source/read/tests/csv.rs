//! Rows of comma-separated values.

use arrow_array::types::Float32Type;

use super::*;
use crate::source::read::csv::dialect::Dialect;
use crate::source::read::csv::labelled::{CsvColumns, LabelledRows};
use crate::source::read::csv::records::CsvLines;

type Rows = Vec<(u32, Vec<String>, Vec<f32>)>;

fn columns(texts: &[&str], vector: &[&str], dims: u32) -> CsvColumns {
    let owned = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
    CsvColumns { texts: owned(texts), vector: owned(vector), dims }
}

fn rows_of(batches: &[RecordBatch], dims: u32) -> Rows {
    let mut rows = Vec::new();
    for batch in batches {
        let ids = batch.column(0).as_primitive::<UInt32Type>().values();
        let texts = batch.num_columns() - 1 - usize::from(dims > 0);
        for (row, &id) in ids.iter().enumerate() {
            let text = |at| batch.column(1 + at).as_string::<i32>().value(row).to_owned();
            let vector = match dims {
                0 => Vec::new(),
                _ => {
                    let vectors = batch.column(1 + texts).as_fixed_size_list();
                    vectors.value(row).as_primitive::<Float32Type>().values().to_vec()
                }
            };
            rows.push((id, (0..texts).map(text).collect(), vector));
        }
    }
    rows
}

fn read_as(
    columns: CsvColumns,
    files: &[&[u8]],
    sizes: Sizes,
    on_error: OnError,
) -> Result<(Rows, Counters), OperatorError> {
    let dims = columns.dims;
    let format =
        CsvLines::new(LabelledRows::new(columns), Dialect::default(), sizes.line_bytes_max);
    let (batches, counters) = read_with(format, files, sizes, on_error)?;
    Ok((rows_of(&batches, dims), counters))
}

fn failure(columns: CsvColumns, file: &[u8]) -> String {
    read_as(columns, &[file], ROOMY, OnError::Fail).unwrap_err().to_string()
}

/// A field as RFC 4180 writes it.
fn quoted(field: &str) -> String {
    format!("\"{}\"", field.replace('"', "\"\""))
}

proptest! {
    #[test]
    fn records_match_what_was_written_at_all_boundaries(
        batch in 1_usize..9,
        block in 1_usize..50,
        step in 1_usize..50,
        rows in prop::collection::vec(("[a-c,\"\n é]{0,6}", any::<f32>()), 0..12),
        returns in any::<bool>(),
    ) {
        let end = if returns { "\r\n" } else { "\n" };
        let mut file = format!("x,skipped,name{end}");
        for (name, x) in &rows {
            file += &format!("{x:e},-,{}{end}", quoted(name));
        }
        let sizes = Sizes { batch, block, step, line_bytes_max: 1 << 10 };
        let wanted = columns(&["name"], &["x"], 1);
        let files = [file.as_bytes(), file.as_bytes()];
        let (read, _) = read_as(wanted, &files, sizes, OnError::Fail).unwrap();
        let twice = (0_u32..).zip(rows.iter().chain(&rows));
        let expected: Vec<_> =
            twice.map(|(id, (name, x))| (id, vec![name.clone()], x.to_bits())).collect();
        let read: Vec<_> = read.into_iter().map(|(id, name, x)| (id, name, x[0].to_bits())).collect();
        prop_assert_eq!(read, expected);
    }

    #[test]
    fn no_bytes_make_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
        let file = [b"x,y\n", &bytes[..]].concat();
        let (_, counters) =
            read_as(columns(&["y"], &["x"], 1), &[&file, &bytes], ROOMY, OnError::Skip).unwrap();
        prop_assert!(counters.len() > 2);
    }
}

#[test]
fn columns_are_found_by_name_in_each_file() {
    let files: [&[u8]; 2] =
        [b"\xef\xbb\xbfname,x0,x1\nBonn,1,2\n", b" x1 ,name,x0\n4,Ulm,3\n\n5,,6"];
    for vector in [&["x0", "x1"][..], &["x*"]] {
        let wanted = columns(&["name"], vector, 2);
        let (read, _) = read_as(wanted, &files, ROOMY, OnError::Fail).unwrap();
        let second = if vector.len() == 2 {
            [vec![3.0, 4.0], vec![6.0, 5.0]]
        } else {
            [vec![4.0, 3.0], vec![5.0, 6.0]]
        };
        let texts = |name: &str| vec![name.to_owned()];
        let [a, b] = second;
        assert_eq!(
            read,
            [(0, texts("Bonn"), vec![1.0, 2.0]), (1, texts("Ulm"), a), (2, texts(""), b)]
        );
    }
    let only = columns(&["name"], &[], 0);
    let (read, _) = read_as(only, &files[..1], ROOMY, OnError::Fail).unwrap();
    assert_eq!(read, [(0, vec!["Bonn".to_owned()], vec![])]);
}

#[test]
fn faults_are_located() {
    let xy = || columns(&[], &["x", "y"], 2);
    let name = || columns(&["name"], &["x"], 1);
    let cases: [(CsvColumns, &[u8], &str); 9] = [
        (
            xy(),
            b"x,z\n1,2\n",
            "a.txt has 0 columns named `y`, expected one; its columns are `x`, `z`",
        ),
        (
            xy(),
            b"x,y,x\n1,2,3\n",
            "a.txt has 2 columns named `x`, expected one; its columns are `x`, `y`, `x`",
        ),
        (xy(), b"x,y\n1,2\n\n1,2,3\n", "a.txt:4: a record of 3 fields; the header has 2"),
        (xy(), b"x,y\n1,two\n", "a.txt:2: invalid number `two` in field 2"),
        (xy(), b"", ""),
        (
            name(),
            b"name,x\n\"two\nlines\",1\n\"x\ny\",\"\n",
            "a.txt:4: the record that begins here has a quote that is not closed",
        ),
        (name(), b"name,x\n\"two\nlines\",1\n\xff,1\n", "a.txt:4: field 1 is not valid UTF-8"),
        (columns(&[], &["*"], 3), b"x,y\n1,2\n", "a.txt has vectors of 2 coordinates; expected 3"),
        (name(), b"\xff,x\n", "a.txt:1: field 1 is not valid UTF-8"),
    ];
    for (wanted, file, expected) in cases {
        if file.is_empty() {
            assert_eq!(
                failure(wanted, file),
                "a.txt has no header; expected the names of its columns in the first line"
            );
        } else {
            assert_eq!(failure(wanted, file), expected);
        }
    }
}

#[test]
fn unusable_records_are_skipped_and_keep_their_numbers() {
    let long = "x".repeat(200);
    let file = format!("name,x\na,1\nb,-\nc\n\"{long}\n{long}\n{long}\",4\n{long}{long},5\nd,6\n");
    let sizes = Sizes { line_bytes_max: 300, ..ROOMY };
    let wanted = columns(&["name"], &["x"], 1);
    let (read, counters) =
        read_as(wanted.clone(), &[file.as_bytes()], sizes, OnError::Skip).unwrap();
    let texts = |name: &str| vec![name.to_owned()];
    assert_eq!(read, [(0, texts("a"), vec![1.0]), (5, texts("d"), vec![6.0])]);
    assert_eq!(skipped(&counters), 4);
    let error =
        read_as(wanted.clone(), &[&file.as_bytes()[..20]], sizes, OnError::Fail).unwrap_err();
    assert!(error.to_string().starts_with("a.txt:3: invalid number `-`"), "{error}");
    // A file that lacks the columns is left out as a whole.
    let files: [&[u8]; 2] = [b"other\n1\n2\n", b"name,x\na,1\n"];
    let (read, counters) = read_as(wanted, &files, ROOMY, OnError::Skip).unwrap();
    assert_eq!(read, [(0, texts("a"), vec![1.0])]);
    assert_eq!(
        counters.iter().find(|(name, _)| *name == "files_skipped"),
        Some(&("files_skipped", 1))
    );
}

#[test]
fn parameters_that_do_not_fit_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.csv").to_string_lossy().into_owned();
    fs::write(&path, "a;b\n1;2\n").unwrap();
    let read = || Read::new([path.clone()], ReadFormat::Csv);
    let batches =
        drain_source(&mut *bind_source(read().vector(["a", "b"]).delimiter(';'))).unwrap();
    assert_eq!(rows_of(&batches, 2), [(0, vec![], vec![1.0, 2.0])]);
    let blamed = |read: Read| bind(read, &[]).unwrap_err().parameter.unwrap();
    assert_eq!(blamed(read().columns(["a", "a"])), "columns");
    assert_eq!(blamed(read().columns(["vector"])), "columns");
    assert_eq!(blamed(read().vector(["a*"])), "dims");
    assert_eq!(blamed(read().columns(["a"]).dims(3)), "dims");
    assert_eq!(blamed(read().vector(["a"]).delimiter('é')), "delimiter");
    assert_eq!(blamed(read().vector(["a"]).comment(',')), "comment");
    assert_eq!(blamed(read().vector(["a"]).delimiter('#').comment('#')), "comment");
    assert_eq!(blamed(read().vector(["a"]).delimiter('"')), "delimiter");
    assert_eq!(blamed(Read::new([path.clone()], ReadFormat::Lines).columns(["a"])), "columns");
}
