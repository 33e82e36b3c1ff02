//! Outputs: files that are replaced, files that grow, and standard output.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, symlink};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::fs::{CWD, FileType, Mode, OFlags, fcntl_getfl, fcntl_setfl, mknodat};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::{Files, trommel};

fn stage(id: &str, operator: &str, inputs: &[&str], with: &Value) -> Value {
    json!({ "id": id, "operator": operator, "inputs": inputs, "with": with })
}

/// A pipeline of these stages as text.
fn pipeline(stages: &[Value]) -> String {
    let mut stages = stages.to_vec();
    for stage in &mut stages {
        if stage["inputs"] == json!([]) {
            stage.as_object_mut().expect("a stage").remove("inputs");
        }
    }
    json!({ "stages": stages }).to_string()
}

fn items(id: &str, items: u64) -> Value {
    stage(id, "generate", &[], &json!({ "items": items, "alphabet": 10 }))
}

/// Counts lines of standard input in windows, and appends to a file.
fn windows(path: &str, seconds: f64) -> String {
    let read = json!({ "paths": ["-"], "format": "lines" });
    let top = json!({ "item": "line", "window": { "seconds": seconds }, "counters": 10 });
    let write = json!({ "path": path, "append": true, "flush_seconds": 0 });
    pipeline(&[
        stage("in", "read", &[], &read),
        stage("top", "frequent_items", &["in"], &top),
        stage("out", "write", &["top"], &write),
    ])
}

fn fifo(files: &Files, name: &str) -> String {
    let path = files.path(name);
    mknodat(CWD, path.as_str(), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("a pipe");
    path
}

/// Waits until a condition holds, with a generous limit.
#[track_caller]
fn wait_until(is_so: impl Fn() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < Duration::from_secs(30), "it does not come about");
        std::thread::yield_now();
    }
}

#[test]
fn states_are_saved_through_links_and_never_in_place_of_pipes_and_devices() {
    let files = Files::new();
    fs::create_dir(files.path("real")).unwrap();
    let state = files.write("real/x.state", "old");
    let link = files.path("latest");
    symlink("real/x.state", &link).unwrap();
    for path in [link.as_str(), "/dev/null"] {
        let saved = trommel(["top", "--save", path]).input("a\nb\n").end();
        assert!(saved.ok().contains("a"));
    }
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert!(fs::read(&state).unwrap().starts_with(b"trommel\x1a"));
    assert!(fs::metadata("/dev/null").unwrap().file_type().is_char_device());
    let pipe = fifo(&files, "pipe");
    let mut reader = File::options().read(true).write(true).open(&pipe).unwrap();
    // A state that fits into the pipe: nobody reads it before the program has ended.
    let top = ["top", "-k", "30", "--save", &pipe];
    assert!(trommel(top).input("a\nb\n").end().ok().contains("a"));
    let mut begin = [0; 8];
    reader.read_exact(&mut begin).unwrap();
    assert_eq!(&begin, b"trommel\x1a");
    assert!(fs::metadata(&pipe).unwrap().file_type().is_fifo());
}

#[test]
fn a_state_that_cannot_be_saved_takes_no_row_along() {
    let files = Files::new();
    // The pipe has no reader: nothing can be written at the end.
    let pipe = fifo(&files, "pipe");
    let ended = trommel(["top", "--save", &pipe]).input("a\nb\na\n").end();
    assert_eq!(ended.status, 1);
    let rows: Vec<&str> = ended.stdout.lines().skip(2).map(str::trim).collect();
    assert_eq!(rows, ["1  a         2      0", "2  b         1      0"]);
    let reason = format!("cannot write {pipe}: no process reads this pipe\n");
    assert!(ended.stderr.contains("the state was not saved") && ended.stderr.ends_with(&reason));
    for algorithm in ["space_saving", "sieve", "parallel_filter"] {
        let rows = files.path("rows.jsonl");
        let report = files.path("report.json");
        let top = json!({ "snapshot": pipe, "counters": 30, "algorithm": algorithm });
        let text = pipeline(&[
            items("items", 1_000),
            stage("top", "frequent_items", &["items"], &top),
            stage("out", "write", &["top"], &json!({ "path": rows })),
        ]);
        let ended = trommel(["run", "-", "--report", &report]).input(text).end();
        assert_eq!(ended.status, 1, "{algorithm}");
        assert_eq!(files.read("rows.jsonl").lines().count(), 10, "{algorithm}");
        let report: Value = serde_json::from_str(&files.read("report.json")).unwrap();
        assert!(report["error"].as_str().unwrap().contains("the state was not saved"), "{report}");
        fs::remove_file(rows).unwrap();
    }
}

#[test]
fn stages_that_write_the_same_file_are_refused_with_their_place() {
    let files = Files::new();
    fs::create_dir(files.path("sub")).unwrap();
    symlink("rows", files.path("link")).unwrap();
    let rows = files.path("rows");
    let refused = |first: &Value, second: &Value| {
        let text = pipeline(&[
            items("a", 10),
            stage("one", "write", &["a"], first),
            stage("top", "frequent_items", &["a"], second),
            stage("end", "discard", &["top"], &json!({})),
        ]);
        trommel(["check", "-"]).input(text).end().refused(2)
    };
    for name in ["rows", "link", "sub/../rows"] {
        let said = refused(&json!({ "path": rows }), &json!({ "snapshot": files.path(name) }));
        let place = "stages[2].with.snapshot: ";
        assert!(said.contains(place) && said.contains("by `path` of stage `one`"), "{said}");
    }
    let two = |path: &str| {
        let write = json!({ "path": path });
        let text = pipeline(&[
            items("a", 10),
            stage("one", "write", &["a"], &write),
            stage("two", "write", &["a"], &write),
        ]);
        trommel(["run", "-"]).input(text).end()
    };
    for (path, name) in [(rows.as_str(), rows.as_str()), ("-", "standard output")] {
        let said = two(path).refused(2);
        let message = format!("{name} is also written by `path` of stage `one`");
        assert!(said.contains("stages[2].with") && said.contains(&message), "{said}");
    }
    assert!(!fs::exists(&rows).unwrap());
    assert_eq!(two("/dev/null").ok(), "");
}

#[test]
fn a_report_is_written_at_the_end_and_not_over_what_a_stage_writes() {
    let files = Files::new();
    let report = files.write("report", "old");
    let change = format!("stages.print.with.path={report}");
    let common = ["run", "configs/top-items.json", "--report", &report];
    let said = trommel(common.into_iter().chain(["--set", &change])).end().refused(2);
    assert!(said.contains("`path` of stage `print`") && said.contains("report"), "{said}");
    let mut live = trommel(["run", "configs/zipf-live.json", "--report", &report]).start();
    live.line();
    assert_eq!(files.read("report"), "old", "until the run has ended");
    live.signal(Signal::INT);
    assert_eq!(live.end().status, 130);
    let written: Value = serde_json::from_str(&files.read("report")).unwrap();
    assert_eq!(written["pipeline"], "zipf-live");
}

#[test]
fn two_processes_that_write_the_same_file_leave_one_of_them_whole() {
    let files = Files::new();
    let path = files.path("rows.jsonl");
    let write = stage("out", "write", &["items"], &json!({ "path": path }));
    let text = |count| pipeline(&[items("items", count), write.clone()]);
    let runs = [60_000, 70_000].map(|count| trommel(["run", "-"]).input(text(count)).start());
    for run in runs {
        assert_eq!(run.end().ok(), "");
    }
    let rows = files.read("rows.jsonl").lines().count();
    assert!([60_000, 70_000].contains(&rows), "{rows}");
    assert_eq!(fs::read_dir(files.path("")).unwrap().count(), 1, "nothing is left beside it");
}

#[test]
fn appended_rows_are_there_at_once_and_stay_when_the_run_fails() {
    let files = Files::new();
    let path = files.path("out.jsonl");
    let lines = fifo(&files, "lines");
    let config = |lines: &str| windows(&path, 0.1).replace("\"-\"", &format!("{lines:?}"));
    let report = files.path("report.json");
    let first = files.write("config.json", config(&lines));
    let live = trommel(["run", &first, "--report", &report]).start();
    let mut input = File::options().write(true).open(&lines).unwrap();
    io::Write::write_all(&mut input, b"a\nb\na\n").unwrap();
    let has_rows =
        |count| fs::read_to_string(&path).is_ok_and(|rows| rows.lines().count() == count);
    wait_until(|| has_rows(2));
    io::Write::write_all(&mut input, b"not \xff text\n").unwrap();
    let ended = live.end();
    assert_eq!(ended.status, 1, "{}", ended.stderr);
    assert!(has_rows(2), "what was written stays");
    let report: Value = serde_json::from_str(&files.read("report.json")).unwrap();
    assert_eq!(report["stages"][2]["rows_written"], 2, "{report}");
    // The next run appends to it.
    let config = config(&files.write("more", "c\n"));
    assert_eq!(trommel(["run", "-"]).input(config).end().ok(), "");
    assert!(
        has_rows(3)
            && files.read("out.jsonl").ends_with("\"item\":\"c\",\"count\":1,\"error\":0}\n")
    );
}

#[test]
fn a_window_that_is_cut_is_marked() {
    let files = Files::new();
    let path = files.path("out.jsonl");
    let config = files.write("config.json", windows(&path, 3600.0));
    assert_eq!(trommel(["run", &config]).input("a\n").end().ok(), "");
    let row: Value = serde_json::from_str(&files.read("out.jsonl")).unwrap();
    assert_eq!((&row["complete"], &row["item"]), (&json!(false), &json!("a")));
    for border in ["window_start", "window_end"] {
        let border = row[border].as_str().unwrap();
        assert!(border.contains(":00:00"), "a full hour: {border}");
    }
}

#[test]
fn a_reader_that_leaves_ends_a_run_quietly() {
    let mut live = trommel(["run", "configs/zipf-live.json"]).start();
    live.line();
    live.close_stdout();
    assert_eq!(live.end().ok(), "");
    let files = Files::new();
    let text: String = (0..60_000).map(|number| format!("{number}\n")).collect();
    let path = files.write("numbers", text);
    let mut live = trommel(["top", "-n", "50000", "-k", "100000", &path]).start();
    live.line();
    live.close_stdout();
    assert_eq!(live.end().ok(), "");
}

#[test]
fn other_sinks_get_all_rows_when_the_reader_leaves() {
    let files = Files::new();
    let path = files.path("rows.jsonl");
    let text = pipeline(&[
        items("items", 300_000),
        stage("print", "write", &["items"], &json!({})),
        stage("file", "write", &["items"], &json!({ "path": path })),
    ]);
    let mut live = trommel(["run", "-"]).input(text).start();
    live.line();
    live.close_stdout();
    assert_eq!(live.end().ok(), "");
    assert_eq!(files.read("rows.jsonl").lines().count(), 300_000);
}

#[test]
fn a_standard_output_that_is_full_is_an_error() {
    let full = File::options().write(true).open("/dev/full").unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_trommel"));
    command.args(["top", "Cargo.toml"]).current_dir(crate::support::repository());
    let ended = command.stdout(full).output().unwrap();
    assert_eq!(ended.status.code(), Some(1));
    let said = String::from_utf8(ended.stderr).unwrap();
    assert_eq!(
        said,
        "error: cannot write standard output: No space left on device (os error 28)\n"
    );
}

#[test]
fn a_standard_output_that_is_non_blocking_gets_all_rows() {
    let files = Files::new();
    let write = stage("out", "write", &["items"], &json!({}));
    let config = files.write("config.json", pipeline(&[items("items", 100_000), write]));
    let (mut reader, writer) = io::pipe().unwrap();
    let writer = OwnedFd::from(writer);
    fcntl_setfl(&writer, fcntl_getfl(&writer).unwrap() | OFlags::NONBLOCK).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_trommel"));
    command.args(["run", &config, "-q"]).stdin(Stdio::null()).stdout(writer);
    let mut child = command.spawn().unwrap();
    // Drops the writing end.
    drop(command);
    let mut rows = 0;
    let mut block = vec![0; 4096];
    loop {
        let read = reader.read(&mut block).unwrap();
        rows += block[..read].iter().filter(|&&byte| byte == b'\n').count();
        if read == 0 {
            break;
        }
        std::thread::yield_now();
    }
    assert_eq!(rows, 100_000);
    assert!(child.wait().unwrap().success());
}
