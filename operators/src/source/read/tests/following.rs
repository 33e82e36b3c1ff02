//! Files that grow, are rotated, truncated, or appear later.

use super::follow::{FollowSource, Times, named};
use super::*;

/// Searches for files in every call and waits for nothing.
const AT_ONCE: Times =
    Times { poll: Duration::ZERO, look: Duration::ZERO, quiet: Duration::from_secs(1000) };

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

/// Writers append, rotate and truncate while the files are read in small steps: every line comes
/// once, lines of a file in order.
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
                // Truncation loses unread lines, so they are read before.
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
    // More than a turn, and a line that is too long in the middle.
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
            "`format` must be `lines`, `sets` or `jsonl`",
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

    // Such files of a pattern are left out and named once.
    let mut log = Log::new("*", AT_ONCE, OnError::Skip);
    fs::copy(&packed, log.path("a.gz")).unwrap();
    log.append("a.log", "x\n");
    fs::write(log.path("utf16"), b"\xff\xfex\0").unwrap();
    assert_eq!((log.read(), log.read()), (vec!["x".to_owned()], vec![]));
    assert_eq!(log.counter("files_skipped"), 2);
    // Another file of the same name is followed, even if the last one was left out.
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
        // Emptied and written at once, so that no look sees the shorter file.
        fs::write(log.path("a.log"), new).unwrap();
        assert_eq!(log.read(), expected);
        assert_eq!(log.counter("files_truncated"), 1);
        log.append("a.log", "more\n");
        assert_eq!(log.read(), ["more"]);
    }
    // The beginning is the same, and the end of what was read is not.
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
    // A writer that goes on at its old place.
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
