//! Files that grow, are rotated, truncated, or appear later.

use arrow_schema::DataType;
use serde_json::{Value, json};

use super::super::following::follow::{FollowSource, Times, named};
use super::jsonl::{rows_of, schema_of};
use super::*;
use crate::source::read::csv::dialect::Dialect;
use crate::source::read::csv::records::CsvLines;
use crate::source::read::csv::typed::TypedRows;
use crate::source::read::following::growing::Growing;
use crate::source::read::text::records::{Beginning, Joined};

/// Intervals that search for files in every call and wait for nothing.
const AT_ONCE: Times = Times {
    poll: Duration::ZERO,
    look: Duration::ZERO,
    quiet: Duration::from_secs(1000),
    complete: Duration::ZERO,
};

struct Log {
    folder: tempfile::TempDir,
    source: FollowSource<TextLines>,
}

impl Log {
    fn new(pattern: &str, times: Times, on_error: OnError) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let paths = [folder.path().join(pattern)];
        let named = named(&paths, false).unwrap();
        let lines = LineBuffer::of_file(Isa::selected().unwrap(), 1 << 16);
        let inputs = Inputs::none(on_error);
        let lines = lines.skipping_zeros();
        let source = FollowSource::new(inputs, named, TextLines::new(), 100, lines);
        Self { folder, source: source.times(times) }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn append(&self, name: &str, text: &str) {
        let mut file = fs::File::options().append(true).create(true).open(self.path(name)).unwrap();
        file.write_all(text.as_bytes()).unwrap();
    }

    /// All lines written since the last call.
    fn read(&mut self) -> Vec<String> {
        let (mut out, mut batches) = (Output::new(), Vec::new());
        loop {
            let flow = self.source.next(&mut out).unwrap();
            batches.extend(out.drain_sent().map(|(_, sent)| sent.into_records()));
            match flow {
                SourceFlow::HaveOutput => {}
                SourceFlow::Idle(_) => return lines_of(&batches),
                other => panic!("a followed file has no end, but it said {other:?}"),
            }
        }
    }

    fn counter(&self, name: &str) -> usize {
        counter(&self.source.counters(), name)
    }
}

#[test]
fn lines_come_when_they_are_complete() {
    let mut log = Log::new("a.log", AT_ONCE, OnError::Fail);
    assert_eq!(log.read(), [""; 0]);
    log.append("a.log", "\u{feff}one\ntw");
    assert_eq!(log.read(), ["one"]);
    assert_eq!(log.read(), [""; 0]);
    log.append("a.log", "o");
    assert_eq!(log.read(), [""; 0]);
    log.append("a.log", "\nthree\nf");
    assert_eq!(log.read(), ["two", "three"]);
    assert_eq!(log.source.progress().bytes, 3 + 4 + 4 + 6);
    let position = (text(&log.path("a.log")).into(), 3 + 4 + 4 + 6);
    assert_eq!(log.source.named_inputs().positions, [position]);
    let mut out = Output::new();
    assert_eq!(log.source.stop(&mut out).unwrap(), SourceFlow::Finished);
    assert_eq!((out.drain_sent().count(), log.counter("unfinished_bytes")), (0, 1));
}

#[test]
fn what_is_written_after_a_rotation_is_read_from_both_files() {
    // The renamed file matches no pattern any more, or matches under its new name.
    for pattern in ["a.log", "a.log*"] {
        let mut log = Log::new(pattern, AT_ONCE, OnError::Fail);
        log.append("a.log", "1\n2\nhalf ");
        assert_eq!(log.read(), ["1", "2"]);
        let mut writer = fs::File::options().append(true).open(log.path("a.log")).unwrap();
        fs::rename(log.path("a.log"), log.path("a.log.1")).unwrap();
        writer.write_all(b"a line\n3\n").unwrap();
        log.append("a.log", "4\n");
        let mut lines = log.read();
        lines.sort();
        assert_eq!(lines, ["3", "4", "half a line"], "{pattern}");
        writer.write_all(b"late\n").unwrap();
        log.append("a.log", "5\n");
        let mut lines = log.read();
        lines.sort();
        assert_eq!(lines, ["5", "late"]);
        assert_eq!((log.counter("files"), log.counter("files_followed")), (2, 2));
    }
}

#[test]
fn a_file_that_is_gone_and_quiet_is_closed_with_its_last_line() {
    let mut log = Log::new("a.log", Times { quiet: Duration::ZERO, ..AT_ONCE }, OnError::Fail);
    log.append("a.log", "1\nno line end");
    assert_eq!(log.read(), ["1"]);
    fs::rename(log.path("a.log"), log.path("other")).unwrap();
    assert_eq!(log.read(), ["no line end"]);
    assert_eq!((log.counter("files_followed"), log.counter("files_closed")), (0, 1));
    // When the file returns, it is a new file.
    fs::rename(log.path("other"), log.path("a.log")).unwrap();
    assert_eq!(log.read(), ["1"]);
}

#[test]
fn a_file_that_was_emptied_is_read_from_its_beginning() {
    let mut log = Log::new("a.log", AT_ONCE, OnError::Fail);
    log.append("a.log", "one\ntwo\nthree\nbroken off");
    assert_eq!(log.read(), ["one", "two", "three"]);
    fs::File::options().write(true).open(log.path("a.log")).unwrap().set_len(0).unwrap();
    log.append("a.log", "four\n");
    assert_eq!(log.read(), ["four"]);
    assert_eq!(log.counter("files_truncated"), 1);
}

#[test]
fn files_that_appear_later_are_read_once() {
    let mut log = Log::new("**/*.log", AT_ONCE, OnError::Fail);
    assert_eq!(log.read(), [""; 0]);
    log.append("b.log", "b\n");
    fs::create_dir(log.path("sub")).unwrap();
    log.append("sub/c.log", "c\n");
    fs::hard_link(log.path("b.log"), log.path("a.log")).unwrap();
    assert_eq!(log.read(), ["b", "c"]);
    assert_eq!(log.read(), [""; 0]);
}

/// Writers append, rotate and truncate while the files are read in small steps. Every line arrives
/// once, and the lines of a file arrive in order.
#[test]
fn no_line_is_lost_or_doubled() {
    let mut log = Log::new("*.log", AT_ONCE, OnError::Fail);
    let (mut written, mut read) = (Vec::new(), Vec::new());
    for round in 0..200_usize {
        let file = format!("{}.log", round % 3);
        for i in 0..round % 40 {
            let line = format!("{round} {i} {}", "x".repeat((round * 7919 + i) % 3000));
            let (head, tail) = line.split_at(line.len() / 2);
            log.append(&file, head);
            if i % 5 == 0 {
                read.extend(log.read());
            }
            log.append(&file, &format!("{tail}\n"));
            written.push(line);
        }
        match round % 11 {
            3 => fs::rename(log.path(&file), log.path(&format!("{file}.old"))).unwrap_or(()),
            7 => {
                // Truncation loses unread lines, so all lines are read before.
                read.extend(log.read());
                fs::write(log.path(&file), "").unwrap();
            }
            _ => {}
        }
    }
    read.extend(log.read());
    written.sort();
    read.sort();
    assert!(written == read, "{} written, {} read", written.len(), read.len());
}

#[test]
fn long_lines_and_many_blocks_pass() {
    let mut log = Log::new("*.log", AT_ONCE, OnError::Skip);
    // The file is longer than a turn, and has a line in the middle that is too long.
    log.append("a.log", &"0123456789abcde\n".repeat(600_000));
    log.append("a.log", &"y".repeat(1_000_000));
    log.append("b.log", "b\n");
    let lines = log.read();
    assert_eq!((lines.len(), log.counter("skipped")), (600_001, 1));
    assert!(lines.iter().position(|line| line == "b").unwrap() < 600_000, "b has had its turn");
    log.append("a.log", "yyy\nafter\n");
    assert_eq!(log.read(), ["after"]);
}

#[test]
fn what_cannot_be_followed_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let packed = text(&folder.path().join("a.gz"));
    fs::write(&packed, gzip(b"x")).unwrap();
    let missing = text(&folder.path().join("missing"));
    let message = |spec: Read| {
        let error = bind(spec.follow(), &[]).unwrap_err();
        (error.parameter.unwrap(), error.to_string())
    };
    let read = |path: &str, format| Read::new([path], format);
    for (spec, parameter, said) in [
        (read("-", ReadFormat::Lines), "follow", "only files can be followed"),
        (
            read(&missing, ReadFormat::U32le),
            "follow",
            "`format` must be `lines`, `sets`, `csv`, `jsonl` or `log`",
        ),
        (read("/dev/null", ReadFormat::Lines), "paths", "`follow` supports regular files only"),
        (read(&packed, ReadFormat::Lines), "paths", "`follow` does not support compressed files"),
        (
            read("a[", ReadFormat::Lines),
            "paths",
            "there is no file `a[`, and it is no pattern either: ",
        ),
    ] {
        let (found, text) = message(spec);
        assert_eq!(found, parameter);
        assert!(text.contains(said), "{text}");
    }
    let plain = text(&folder.path().join("plain"));
    fs::write(&plain, "").unwrap();
    for format in [ReadFormat::U32le, ReadFormat::Files, ReadFormat::Paragraphs] {
        assert_eq!(message(read(&plain, format)).0, "follow");
    }

    // A pattern leaves such files out, and each file is named once.
    let mut log = Log::new("*", AT_ONCE, OnError::Skip);
    fs::copy(&packed, log.path("a.gz")).unwrap();
    log.append("a.log", "x\n");
    fs::write(log.path("utf16"), b"\xff\xfex\0").unwrap();
    assert_eq!((log.read(), log.read()), (vec!["x".to_owned()], vec![]));
    assert_eq!(log.counter("files_skipped"), 2);
    // Another file of the same name is followed, even if the earlier file was left out.
    fs::remove_file(log.path("utf16")).unwrap();
    log.append("utf8", "y\n");
    fs::rename(log.path("utf8"), log.path("utf16")).unwrap();
    assert_eq!(log.read(), ["y"]);
}

#[test]
fn a_file_with_other_content_is_read_from_its_beginning() {
    for (old, new, expected) in [
        ("one\ntwo\n", "six\nsix\n", &["six", "six"][..]),
        ("one\ntwo\n", "a longer one\nand more\n", &["a longer one", "and more"]),
        ("one\ntwo\nhal", "zero\none\ntwo\nhalf\n", &["zero", "one", "two", "half"]),
    ] {
        let mut log = Log::new("a.log", AT_ONCE, OnError::Fail);
        log.append("a.log", old);
        assert_eq!(log.read().len(), 2);
        // The file is emptied and written at once, so that no look sees the shorter file.
        fs::write(log.path("a.log"), new).unwrap();
        assert_eq!(log.read(), expected);
        assert_eq!(log.counter("files_truncated"), 1);
        log.append("a.log", "more\n");
        assert_eq!(log.read(), ["more"]);
    }
    // The beginning is the same; the end of the bytes that were read differs.
    let same = "the same line\n".repeat(100);
    let mut log = Log::new("a.log", AT_ONCE, OnError::Fail);
    log.append("a.log", &format!("{same}old\n"));
    assert_eq!(log.read().len(), 101);
    fs::write(log.path("a.log"), format!("{same}new\nnewer\n")).unwrap();
    assert_eq!(log.read().len(), 102);
}

#[test]
fn zeros_that_a_truncation_leaves_are_no_text() {
    use std::os::unix::fs::FileExt as _;
    let mut log = Log::new("a.log", AT_ONCE, OnError::Fail);
    // The writer continues at its old place.
    let writer = fs::File::create(log.path("a.log")).unwrap();
    for (round, place) in [9_u64, 300, 3 << 20].into_iter().enumerate() {
        writer.set_len(place).unwrap();
        let lines = log.read();
        assert!(lines.iter().all(|line| line.is_empty()), "{}", lines.len());
        let line = format!("line {round}\n");
        writer.write_all_at(line.as_bytes(), place).unwrap();
        assert_eq!(log.read(), [line.trim_end()]);
        writer.set_len(0).unwrap();
    }
}

#[test]
fn what_a_pattern_finds_and_cannot_be_followed_never_ends_a_run() {
    let mut log = Log::new("a.*", AT_ONCE, OnError::Fail);
    log.append("a.log", "1\n");
    assert_eq!(log.read(), ["1"]);
    fs::write(log.path("a.log.1.gz"), gzip(b"x")).unwrap();
    fs::create_dir(log.path("a.folder")).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        log.path("a.fifo"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
        0,
    )
    .unwrap();
    fs::write(log.path("a.wide"), b"\xff\xfex\0").unwrap();
    log.append("a.log", "2\n");
    assert_eq!((log.read(), log.read()), (vec!["2".to_owned()], vec![]));
    assert_eq!(log.counter("files_skipped"), 3, "folders are no files");
    assert_eq!(log.counter("files_followed"), 1);
}

#[test]
fn a_file_that_could_not_be_opened_is_tried_again() {
    let mut log = Log::new("a.log", AT_ONCE, OnError::Skip);
    // A link to itself has no metadata.
    std::os::unix::fs::symlink("a.log", log.path("a.log")).unwrap();
    assert_eq!((log.read().len(), log.read().len(), log.counter("files_skipped")), (0, 0, 1));
    fs::remove_file(log.path("a.log")).unwrap();
    log.append("a.log", "1\n");
    assert_eq!((log.read(), log.counter("files_skipped")), (vec!["1".to_owned()], 1));
}

#[test]
fn files_are_read_from_their_end_on_request() {
    for (old, expected) in [
        ("old\n", &["new"][..]),
        ("old\nhalf ", &["half new"]),
        ("half ", &["half new"]),
        ("", &["new"]),
    ] {
        let mut log = Log::new("*.log", AT_ONCE, OnError::Fail);
        log.source = log.source.beginning_at_end();
        log.append("a.log", old);
        assert_eq!(log.read(), [""; 0]);
        log.append("a.log", "new\n");
        assert_eq!(log.read(), expected);
        log.append("b.log", "all of a later file\n");
        assert_eq!(log.read(), ["all of a later file"]);
    }
    let mut log = Log::new("a.log", AT_ONCE, OnError::Fail);
    log.source = log.source.beginning_at_end();
    log.append("a.log", &"x".repeat(100_000));
    assert_eq!(log.read(), [""; 0]);
    log.append("a.log", "the rest of a long line\nnew\n");
    assert_eq!(log.read(), ["new"]);
}

#[test]
fn a_file_that_is_not_there_yet_is_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.log");
    let spec = |follow: bool| {
        let read = Read::new([path.clone()], ReadFormat::Lines);
        if follow { read.follow() } else { read }
    };
    assert!(bind(spec(false), &[]).is_err());
    bind(spec(true), &[]).unwrap();
    let error = bind(spec(false).from(ReadFrom::End), &[]).unwrap_err();
    assert_eq!(error.parameter, Some("from"));
    let error = bind(spec(true).quiet_seconds(-1.0), &[]).unwrap_err();
    assert_eq!(error.parameter, Some("quiet_seconds"));
    assert!(bind(spec(true).encoding("utf-16"), &[]).is_err());
}

#[test]
fn a_file_that_the_system_makes_for_each_reader_is_left_out_with_the_reason() {
    let path = PathBuf::from("/proc/uptime");
    let source = |on_error| {
        let named = named(std::slice::from_ref(&path), false).unwrap();
        let lines = LineBuffer::of_file(Isa::selected().unwrap(), 1 << 16).skipping_zeros();
        FollowSource::new(Inputs::none(on_error), named, TextLines::new(), 100, lines)
            .times(AT_ONCE)
    };
    let error = source(OnError::Fail).next(&mut Output::new()).unwrap_err().to_string();
    assert!(error.starts_with("cannot open /proc/uptime: the system makes its content"), "{error}");
    let mut left_out = source(OnError::Skip);
    for _ in 0..2 {
        let flow = left_out.next(&mut Output::new()).unwrap();
        assert!(matches!(flow, SourceFlow::Idle(_)), "{flow:?}");
    }
    assert_eq!(counter(&left_out.counters(), "files_skipped"), 1);
}

/// A followed file, and the rows of the texts that the test appends.
struct Table<F: Growing> {
    path: PathBuf,
    source: FollowSource<F>,
    _folder: tempfile::TempDir,
}

impl<F: Growing> Table<F> {
    fn new(format: F, times: Times) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.log");
        let named = named(std::slice::from_ref(&path), false).unwrap();
        let lines = LineBuffer::of_file(Isa::selected().unwrap(), 1 << 16).skipping_zeros();
        let source = FollowSource::new(Inputs::none(OnError::Skip), named, format, 3, lines);
        Self { path, source: source.times(times), _folder: folder }
    }

    /// Appends a text and reads the complete rows.
    fn append(&mut self, text: &str) -> Vec<Value> {
        let mut file = fs::File::options().append(true).create(true).open(&self.path).unwrap();
        file.write_all(text.as_bytes()).unwrap();
        self.rows()
    }

    fn rows(&mut self) -> Vec<Value> {
        let mut out = Output::new();
        while self.source.next(&mut out).unwrap() == SourceFlow::HaveOutput {}
        let batches: Vec<_> = out.drain_sent().map(|(_, sent)| sent.into_records()).collect();
        rows_of(&batches)
    }

    fn position(&self) -> u64 {
        self.source.named_inputs().positions[0].1
    }

    fn skipped(&self) -> usize {
        counter(&self.source.counters(), "skipped")
    }
}

fn csv_table(record_bytes_max: usize) -> CsvLines<TypedRows> {
    let columns = schema_of(json!({"a": "i8", "b": "text"}));
    let rows = TypedRows::new(columns, vec![String::new()]).unwrap();
    CsvLines::new(rows, Dialect::default(), record_bytes_max)
}

#[test]
fn a_header_is_read_once_and_again_after_a_rotation() {
    let mut table = Table::new(csv_table(1 << 16), AT_ONCE);
    let row = |a: i64, b: &str| json!({"a": a, "b": b});
    assert_eq!(table.append("b,x"), [] as [Value; 0]);
    assert_eq!(table.append(",a\n"), [] as [Value; 0]);
    assert_eq!(table.append("p,,1\nq,,2\nhalf"), [row(1, "p"), row(2, "q")]);
    assert_eq!(table.append(",,3\n\"two\nlines"), [row(3, "half")]);
    // A record that has begun is read again from its first line.
    assert_eq!(table.position(), 24);
    assert_eq!(table.append(""), [] as [Value; 0]);
    assert_eq!(table.append(" and\n"), [] as [Value; 0]);
    assert_eq!(table.append("a third\",,4\n"), [row(4, "two\nlines and\na third")]);
    // Another file of this name has its own columns.
    fs::rename(&table.path, table.path.with_extension("1")).unwrap();
    assert_eq!(table.append("a,b\n5,r\n"), [row(5, "r")]);
    // The file is emptied here.
    fs::write(&table.path, "").unwrap();
    assert_eq!(table.rows(), [] as [Value; 0]);
    assert_eq!(table.append("b,a\ns,6\n"), [row(6, "s")]);
    assert_eq!(table.skipped(), 0);
}

#[test]
fn files_that_take_turns_have_headers_of_their_own() {
    let mut log = Table::new(csv_table(1 << 16), AT_ONCE);
    let other = log.path.with_file_name("b.log");
    let paths = [log.path.clone(), other.clone()];
    let lines = LineBuffer::of_file(Isa::selected().unwrap(), 1 << 16);
    let named = named(&paths, false).unwrap();
    let inputs = Inputs::none(OnError::Skip);
    log.source = FollowSource::new(inputs, named, csv_table(1 << 16), 3, lines).times(AT_ONCE);
    fs::write(&other, "b,a\n").unwrap();
    assert_eq!(log.append("a,b\n1,\"x\n"), [] as [Value; 0]);
    let mut file = fs::File::options().append(true).open(&other).unwrap();
    file.write_all(b"y,2\n\"").unwrap();
    assert_eq!(log.rows(), [json!({"a": 2, "b": "y"})]);
    assert_eq!(log.append("\"\n3,z\n"), [json!({"a": 1, "b": "x\n"}), json!({"a": 3, "b": "z"})]);
}

#[test]
fn a_record_that_is_too_long_is_left_out_once() {
    let mut table = Table::new(csv_table(10), AT_ONCE);
    assert_eq!(table.append("a,b\n1,\"long text\n"), [] as [Value; 0]);
    assert_eq!(table.append("more\n"), [] as [Value; 0]);
    assert_eq!(table.skipped(), 1);
    assert_eq!(table.append("and more\"\n2,x\n"), [json!({"a": 2, "b": "x"})]);
    assert_eq!(table.skipped(), 1);
    let later = Times { complete: Duration::from_secs(1_000), ..AT_ONCE };
    let mut lines = Table::new(joined(10), later);
    assert_eq!(lines.append("1 a\n long text\n"), [] as [Value; 0]);
    assert_eq!(lines.append(" more\n"), [] as [Value; 0]);
    assert_eq!(lines.append("2 b\n3 c\n"), [json!({"line": "2 b"})]);
    assert_eq!(lines.skipped(), 1);
}

fn joined(bytes_max: usize) -> Joined<TextLines> {
    Joined::new(TextLines::new(), Beginning::new("^[0-9]").unwrap(), bytes_max)
}

#[test]
fn a_record_of_several_lines_is_complete_with_the_next_one_or_when_nothing_more_comes() {
    let later = Times { complete: Duration::from_secs(1_000), ..AT_ONCE };
    let mut log = Table::new(joined(1 << 16), later);
    let line = |line: &str| json!({ "line": line });
    assert_eq!(log.append("1 a\n  at x\n"), [] as [Value; 0]);
    assert_eq!((log.append("  at y"), log.position()), (vec![], 0));
    assert_eq!(log.append("\n2 b\n"), [line("1 a\n  at x\n  at y")]);
    assert_eq!(log.position(), 18);
    let mut log = Table::new(joined(1 << 16), AT_ONCE);
    // The search after the first turn finds that the file has not grown.
    assert_eq!(log.append("1 a\n  at x\n"), [line("1 a\n  at x")]);
    assert_eq!(log.position(), 11);
    // An incomplete line waits for its end, and the record before that line waits, too.
    assert_eq!(log.append("2 b\n  at"), [] as [Value; 0]);
    assert_eq!(log.append(" y\n"), [line("2 b\n  at y")]);
}

#[test]
fn an_end_is_read_from_after_the_header() {
    let mut table = Table::new(csv_table(1 << 16), AT_ONCE);
    let named = named(std::slice::from_ref(&table.path), false).unwrap();
    let lines = LineBuffer::of_file(Isa::selected().unwrap(), 1 << 16);
    let inputs = Inputs::none(OnError::Skip);
    let source = FollowSource::new(inputs, named, csv_table(1 << 16), 3, lines);
    table.source = source.times(AT_ONCE).beginning_at_end();
    fs::write(&table.path, "b,a\nold,1\n").unwrap();
    assert_eq!(table.rows(), [] as [Value; 0]);
    assert_eq!(table.append("new,2\n"), [json!({"a": 2, "b": "new"})]);
}

#[test]
fn columns_of_followed_files_are_those_of_the_rows_that_are_there() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.log");
    fs::write(&path, "a=1 b=x\n").unwrap();
    let read = Read::new([&path], ReadFormat::Log).pattern("logfmt").follow();
    let fragment = bind(read, &[]).unwrap();
    assert_eq!(fragment.outputs[0].field(0).data_type(), &DataType::Int64);
    fs::write(&path, "n,m\n1.5,2\n").unwrap();
    let read = Read::new([&path], ReadFormat::Csv).follow();
    let fragment = bind(read, &[]).unwrap();
    assert_eq!(fragment.outputs[0].field(0).data_type(), &DataType::Float64);
    let mut source = bind_source(Read::new([&path], ReadFormat::Csv).columns(["m"]).follow());
    let mut out = Output::new();
    while source.next(&mut out).unwrap() == SourceFlow::HaveOutput {}
    let batches: Vec<_> = out.drain_sent().map(|(_, sent)| sent.into_records()).collect();
    assert_eq!(batches[0].column(1).as_string::<i32>().value(0), "2");
}
