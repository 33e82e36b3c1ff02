//! Bad lines that go to the output `rejected`.

use arrow_array::types::UInt64Type;
use arrow_schema::{DataType, Field};

use super::*;

/// Path, line, offset, column, reason and bytes of a rejected row.
type Rejected = (Option<String>, Option<u64>, Option<u64>, Option<String>, String, String);

fn rejected_of(batch: &RecordBatch) -> Vec<Rejected> {
    let text = |column: usize, row: usize| {
        let texts = batch.column(column).as_string::<i32>();
        texts.is_valid(row).then(|| texts.value(row).to_owned())
    };
    let number = |column: usize, row: usize| {
        let numbers = batch.column(column).as_primitive::<UInt64Type>();
        numbers.is_valid(row).then(|| numbers.value(row))
    };
    (0..batch.num_rows())
        .map(|row| {
            let (reason, bytes) = (text(4, row).unwrap(), text(5, row).unwrap());
            (text(0, row), number(1, row), number(2, row), text(3, row), reason, bytes)
        })
        .collect()
}

/// Number of rows, and the rejected rows, with the path shortened to its last part.
fn drain(read: Read) -> (usize, Vec<Rejected>, Counters, Vec<String>) {
    let mut source = bind_source(read);
    let (mut out, mut rows, mut rejected) = (Output::new(), 0, Vec::new());
    loop {
        let flow = source.next(&mut out).unwrap();
        for (port, payload) in out.drain_sent() {
            let records = payload.into_records();
            match port {
                0 => rows += records.num_rows(),
                _ => rejected.extend(rejected_of(&records)),
            }
        }
        if flow == SourceFlow::Finished {
            let named = source.named_inputs().left_out.iter().map(ToString::to_string).collect();
            return (rows, rejected, source.counters(), named);
        }
    }
}

#[track_caller]
fn check(read: impl Fn(&Path) -> Read, file: &[u8], rows: usize, expected: &[Rejected]) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.txt");
    fs::write(&path, file).unwrap();
    let read = read(&path).on_error(OnError::Reject);
    for batch in [1, 1_000] {
        let (found, rejected, counters, named) = drain(read.clone().batch(batch));
        let mut expected = expected.to_vec();
        let name = Some(path.display().to_string());
        expected.iter_mut().for_each(|row| row.0.clone_from(&name));
        assert_eq!((found, &rejected), (rows, &expected));
        assert_eq!(counter(&counters, "rejected"), expected.len());
        assert_eq!(counter(&counters, "skipped"), 0);
        assert_eq!(named.len(), expected.len().min(20));
    }
}

fn row(line: u64, offset: u64, column: Option<&str>, reason: &str, bytes: &str) -> Rejected {
    let column = column.map(str::to_owned);
    (None, Some(line), Some(offset), column, reason.to_owned(), bytes.to_owned())
}

#[test]
fn a_bad_line_is_sent_with_its_place_and_its_bytes() {
    let lines = |path: &Path| Read::new([path], ReadFormat::Lines);
    let expected = [row(2, 8, None, "byte 1 of the line is not valid UTF-8", "b\\xffc")];
    check(lines, b"\xef\xbb\xbfone\r\nb\xffc\nthree", 2, &expected);
    let sets = |path: &Path| Read::new([path], ReadFormat::Sets);
    let reason = "invalid item `x` of a set; expected whole numbers from 0 to 4294967295, \
                  separated by blanks";
    check(sets, b"1 2\n3 x\n4\n", 2, &[row(2, 4, None, reason, "3 x")]);
    let csv = |path: &Path| Read::new([path], ReadFormat::Csv).columns(["t"]).vector(["x"]);
    let expected = [
        row(3, 8, None, "a record of 1 fields; the header has 2", "7"),
        row(4, 10, None, "invalid number `y` in field 2", "\"a\nb\",y"),
    ];
    check(csv, b"t,x\na,1\n7\n\"a\nb\",y\nc,2\n", 2, &expected);
    let schema = Schema::new(vec![Field::new("n", DataType::Int8, true)]);
    let json = |path: &Path| Read::new([path], ReadFormat::Jsonl).schema(&schema);
    let expected = [
        row(2, 8, Some("n"), "column `n` is i8; found the number 300", "{\"n\":300}"),
        row(4, 19, None, "not an object of JSON: expected value at byte 1", "x"),
    ];
    check(json, b"{\"n\":1}\n{\"n\":300}\n\nx\n{\"n\":2}\n", 2, &expected);
}

#[test]
fn many_bad_lines_are_counted_and_the_first_are_named() {
    let sets = |path: &Path| Read::new([path], ReadFormat::Sets);
    let reason = "invalid item `x` of a set; expected whole numbers from 0 to 4294967295, \
                  separated by blanks";
    let expected: Vec<_> = (0..50).map(|n| row(n + 1, n * 2, None, reason, "x")).collect();
    check(sets, "x\n".repeat(50).as_bytes(), 0, &expected);
}

#[test]
fn a_line_that_is_too_long_is_sent_without_its_bytes_where_they_are_gone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.txt");
    fs::write(&path, [b"a\n".as_slice(), &[b'x'; 1 << 20], b"\nb\n"].concat()).unwrap();
    let read = Read::new([&path], ReadFormat::Lines).line_bytes_max(10);
    let (rows, rejected, ..) = drain(read.on_error(OnError::Reject));
    assert_eq!(rows, 2);
    let reason = "the line is longer than 10 bytes (`line_bytes_max`)".to_owned();
    let path = Some(path.display().to_string());
    assert_eq!(rejected, [(path, Some(2), None, None, reason, String::new())]);
}

#[test]
fn a_file_that_cannot_be_read_is_sent_as_its_reason() {
    let read = Read::new(["/nowhere/a.txt"], ReadFormat::Lines).on_error(OnError::Reject);
    let (rows, rejected, counters, named) = drain(read);
    assert_eq!((rows, counter(&counters, "files_skipped")), (0, 1));
    let reason = "cannot open /nowhere/a.txt: No such file or directory (os error 2)";
    assert_eq!(rejected, [(None, None, None, None, reason.to_owned(), String::new())]);
    assert_eq!(named, [reason]);
}

#[test]
fn formats_without_lines_have_no_rejected_rows() {
    use trommel_engine::operator::OperatorSpec as _;
    let read = |format| Read::new(["a"], format);
    let error = bind(read(ReadFormat::U32le).on_error(OnError::Reject), &[]).unwrap_err();
    assert_eq!(error.parameter, Some("on_error"));
    for (format, on_error, rejects) in [
        (ReadFormat::Jsonl, None, true),
        (ReadFormat::Lines, Some(OnError::Skip), false),
        (ReadFormat::U32le, None, false),
    ] {
        let mut read = read(format);
        read.on_error = on_error;
        assert_eq!(read.reject(), rejects);
        assert_eq!(read.output_ports().len(), if rejects { 2 } else { 0 });
    }
}

#[test]
fn rejected_records_have_the_line_ends_of_the_file() {
    let schema = Schema::new(vec![
        Field::new("a", DataType::Int64, true),
        Field::new("b", DataType::Utf8, true),
    ]);
    let read = |path: &Path| Read::new([path], ReadFormat::Csv).schema(&schema);
    let file = b"a,b\r\n1,\"x\r\ny\"\r\nz,\"x\r\ny\"\r\n";
    let reason = "column `a` is i64; found `z`";
    check(read, file, 1, &[row(4, 15, Some("a"), reason, "z,\"x\r\ny\"")]);
}
