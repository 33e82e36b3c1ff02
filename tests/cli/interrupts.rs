//! Ctrl-C, termination, and readers that leave.

use std::time::Duration;

use rustix::process::Signal;

use crate::support::{Files, Live, trommel};

const STOPPING: &str = "stopping: everything that was read is processed; Ctrl-C aborts\n";

/// Endless stream whose five most frequent items are printed continuously.
fn endless() -> Live {
    let mut live = trommel([
        "run",
        "configs/zipf-live.json",
        "--set",
        "stages.top.with.every=1000",
        "--set",
        "stages.items.with.batch=1000",
    ])
    .start();
    assert!(live.line().starts_with("{\"rank\":1,"));
    live
}

#[test]
fn the_first_signal_drains_and_only_ctrl_c_is_in_the_exit_code() {
    for (signal, status) in [(Signal::INT, 130), (Signal::TERM, 0), (Signal::HUP, 0)] {
        let live = endless();
        live.signal(signal);
        let ended = live.end();
        assert_eq!((ended.status, ended.stderr.as_str()), (status, STOPPING));
        let last = ended.stdout.lines().last().unwrap();
        assert!(last.starts_with("{\"rank\":5,") && last.ends_with('}'), "{last}");
    }
}

#[test]
fn the_second_signal_aborts_a_run_that_does_not_drain() {
    let mut live = unread(&[]);
    live.signal(Signal::INT);
    assert_eq!(live.error_line(), STOPPING);
    // Simultaneous or different signals change nothing; nor do repeated ones.
    for signal in [Signal::INT, Signal::TERM, Signal::HUP, Signal::INT] {
        live.signal(signal);
    }
    std::thread::park_timeout(Duration::from_millis(1_100));
    assert!(live.is_running());
    live.signal(Signal::INT);
    assert_eq!(live.error_line(), "aborting: batches in flight are lost\n");
    let ended = live.end();
    assert_eq!(ended.status, 130, "{}", ended.stderr);
    assert!(ended.stderr.ends_with("aborted before the stage had finished\n"), "{}", ended.stderr);
}

/// A run whose rows exceed the buffer of the pipe and have no reader, so that it can neither end
/// nor drain.
fn unread(options: &[&str]) -> Live {
    let pipeline = r#"{ "stages": [
        { "id": "items", "operator": "generate", "with": { "items": 100000, "skew": 0 } },
        { "id": "top", "operator": "frequent_items", "inputs": ["items"], "with": { "counters": 100000 } },
        { "id": "print", "operator": "write", "inputs": ["top"] } ] }"#;
    let mut live = trommel(["run", "-"].iter().chain(options)).input(pipeline).start();
    assert!(live.line().starts_with("{\"rank\":1,"));
    live
}

#[test]
fn a_drain_that_another_signal_asked_for_is_aborted_by_one_ctrl_c_or_by_its_limit() {
    let mut live = unread(&[]);
    live.signal(Signal::TERM);
    assert_eq!(live.error_line(), STOPPING);
    std::thread::park_timeout(Duration::from_millis(1_100));
    assert!(live.is_running());
    live.signal(Signal::INT);
    assert_eq!(live.error_line(), "aborting: batches in flight are lost\n");
    assert_eq!(live.wait(), 130);
    let mut live = unread(&["--drain-seconds", "0.3"]);
    live.signal(Signal::TERM);
    assert_eq!(live.error_line(), STOPPING);
    assert_eq!(live.error_line(), "aborting: batches in flight are lost\n");
    assert_eq!(live.wait(), 1);
}

#[test]
fn a_pipe_that_nobody_reads_is_waited_for_and_a_limit_ends_the_wait() {
    let files = Files::new();
    let (input, pipe) = (files.fifo("in"), files.fifo("pipe"));
    let pipeline = crate::support::reading(&input, "lines");
    let set = format!("stages.out.with.path={pipe}");
    let start = |limit: &str| {
        let arguments = ["run", "-q", "-", "--set", &set, "--drain-seconds", limit];
        let live = trommel(arguments).input(pipeline.as_str()).start();
        live.wait_for_signals();
        let mut writer = std::fs::File::options().write(true).open(&input).unwrap();
        std::io::Write::write_all(&mut writer, b"a line\n").unwrap();
        while unread_bytes(&input) > 0 {
            std::thread::yield_now();
        }
        (live, writer)
    };
    let (mut live, _writer) = start("0.2");
    assert_eq!(live.error_line(), format!(" WARN {pipe} has no reader: waiting for one\n"));
    live.signal(Signal::TERM);
    assert_eq!(live.error_line(), STOPPING);
    assert_eq!(live.wait(), 1);
    let (live, _writer) = start("60");
    live.signal(Signal::TERM);
    assert_eq!(std::fs::read_to_string(&pipe).unwrap(), "{\"line\":\"a line\"}\n");
    assert_eq!(live.end().status, 0);
}

#[test]
fn a_pipe_without_a_writer_is_told_after_a_second() {
    let files = Files::new();
    let path = files.fifo("pipe");
    let mut live = trommel(["top", "-q", &path]).start();
    let said =
        format!(" WARN {path} is a pipe that has sent nothing yet: waiting for its writer\n");
    assert_eq!(live.error_line(), said);
    std::fs::write(&path, "a line\n").unwrap();
    assert!(live.end().ok().contains("a line"));
}

#[test]
fn top_shows_what_it_has_read_when_it_is_interrupted() {
    let files = Files::new();
    let path = files.path("pipe");
    make_fifo(&path);
    let live = trommel(["top", &path]).start();
    // Opening the other end waits until the pipe is read; keeping it open keeps the stream from
    // ending.
    let mut pipe = std::fs::File::options().write(true).open(&path).unwrap();
    // Far more than the pipe holds: most of it has been read when this returns.
    std::io::Write::write_all(&mut pipe, &b"seen\n".repeat(200_000)).unwrap();
    live.signal(Signal::INT);
    let ended = live.end();
    // The pipe has no other reader any more; this one finds the bytes that were not taken.
    let left = unread_bytes(&path);
    drop(pipe);
    assert_eq!((ended.status, ended.stderr.as_str()), (130, STOPPING));
    let row: Vec<&str> = ended.stdout.lines().nth(2).expect("a row").split_whitespace().collect();
    assert_eq!((row[1], row[3]), ("seen", "0"));
    // Every line that was taken is counted, except an incomplete one.
    let taken = 1_000_000 - left;
    assert_eq!(row[2].parse::<usize>().unwrap(), taken / 5, "{row:?}, {left} bytes left");
}

/// Unread bytes in a pipe.
fn unread_bytes(path: &str) -> usize {
    let flags = rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::NONBLOCK;
    let pipe = rustix::fs::open(path, flags, rustix::fs::Mode::empty()).expect("the pipe is there");
    usize::try_from(rustix::io::ioctl_fionread(&pipe).expect("the pipe is there"))
        .expect("the pipe is there")
}

fn make_fifo(path: &str) {
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, mode, 0)
        .expect("the pipe is there");
}

#[test]
fn one_signal_ends_a_run_whose_pipes_have_no_writer() {
    let files = Files::new();
    for name in ["plain", "packed.gz", "packed.zst"] {
        let path = files.path(name);
        make_fifo(&path);
        let live = trommel(["top", "-q", &path]).start();
        live.wait_for_open(&path);
        live.signal(Signal::TERM);
        let ended = live.end();
        assert_eq!((ended.status, ended.stdout.as_str()), (0, ""), "{name}: {}", ended.stderr);
    }
}

#[test]
fn a_signal_opens_a_file_that_was_renamed_again_by_its_name() {
    let files = Files::new();
    let (input, rows) = (files.fifo("in"), files.path("rows.jsonl"));
    let pipeline = crate::support::reading(&input, "lines");
    let set = [("append", "true"), ("flush_seconds", "0"), ("path", &rows)]
        .map(|(name, value)| format!("stages.out.with.{name}={value}"));
    let arguments = ["run", "-q", "-", "--set", &set[0], "--set", &set[1], "--set", &set[2]];
    let live = trommel(arguments).input(pipeline).start();
    let mut writer = std::fs::File::options().write(true).open(&input).unwrap();
    let mut send = |line: &str| std::io::Write::write_all(&mut writer, line.as_bytes()).unwrap();
    send("before\n");
    live.wait_for_signals();
    while !std::fs::read(&rows).is_ok_and(|rows| !rows.is_empty()) {
        std::thread::yield_now();
    }
    let old = files.path("rows.1.jsonl");
    std::fs::rename(&rows, &old).unwrap();
    live.signal(Signal::USR1);
    // No row comes: the signal alone makes the new file and closes the old one.
    live.wait_for_open(&rows);
    assert!(!live.has_open(&old));
    send("after\n");
    drop(writer);
    assert_eq!(live.end().ok(), "");
    assert_eq!(files.read("rows.1.jsonl"), "{\"line\":\"before\"}\n");
    assert_eq!(files.read("rows.jsonl"), "{\"line\":\"after\"}\n");
}

#[test]
fn pipes_on_one_thread_are_opened_in_any_order() {
    let files = Files::new();
    let (first, second) = (files.path("first"), files.path("second"));
    make_fifo(&first);
    make_fifo(&second);
    let pipeline = format!(
        r#"{{ "placement": "fused", "stages": [
            {{ "id": "x", "operator": "read", "with": {{ "paths": ["{first}"] }} }},
            {{ "id": "y", "operator": "read", "with": {{ "paths": ["{second}"] }} }},
            {{ "id": "top", "operator": "frequent_items", "inputs": ["x", "y"], "with": {{ "item": "line" }} }},
            {{ "id": "out", "operator": "write", "inputs": ["top"] }} ] }}"#
    );
    for order in [[&first, &second], [&second, &first]] {
        let live = trommel(["run", "-q", "-"]).input(pipeline.as_str()).start();
        let writers = order.map(|path| {
            let mut writer = std::fs::File::options().write(true).open(path).unwrap();
            std::io::Write::write_all(&mut writer, b"line\n").unwrap();
            writer
        });
        drop(writers);
        assert!(live.end().ok().contains("\"count\":2"));
    }
}

#[test]
fn a_reader_that_leaves_does_not_disturb_a_listing() {
    let mut live = trommel(["schema"]).start();
    live.close_stdout();
    assert_eq!(live.end().ok(), "");
}
