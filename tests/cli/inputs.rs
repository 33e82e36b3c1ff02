//! Inputs in an unexpected format.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};

use crate::support::{Ended, Files, reading, trommel};

/// Runs `read` in this format over a file with this content.
fn read(content: &[u8], format: &str, changes: &[&str]) -> (Ended, String) {
    let files = Files::new();
    let path = files.write("input", content);
    let mut arguments = vec!["run", "-"];
    arguments.extend(changes.iter().flat_map(|change| ["--set", change]));
    (trommel(arguments).input(reading(&path, format)).end(), path)
}

#[track_caller]
fn check_failed(content: &[u8], format: &str, message: &str) {
    let (ended, path) = read(content, format, &[]);
    assert_eq!(ended.status, 1, "{}", ended.stderr);
    assert_eq!(ended.stderr, format!("error: stage `in` (read): {path}{message}\n"));
}

#[track_caller]
fn check_skipped(content: &[u8], format: &str, rows: usize) {
    let (ended, _) = read(content, format, &["stages.in.with.on_error=skip"]);
    assert_eq!((ended.status, ended.stdout.lines().count()), (0, rows), "{}", ended.stderr);
    let warnings: Vec<_> = ended.stderr.lines().collect();
    assert!(matches!(warnings[..], [one] if one.starts_with(" WARN left out: ")), "{warnings:?}");
}

#[test]
fn integers_that_are_cut_off() {
    let content = [1, 0, 0, 0, 2, 0, 0, 0, 3, 0];
    check_failed(&content, "u32le", ": incomplete item at byte 8: 2 of 4 bytes");
    check_skipped(&content, "u32le", 2);
}

#[test]
fn lines_that_are_not_text() {
    check_failed(b"one\ntw\xff\n", "lines", ":2: byte 2 of the line is not valid UTF-8");
    check_skipped(b"one\ntw\xff\nthree\n", "lines", 2);
}

#[test]
fn sets_with_tokens_that_are_no_items() {
    for token in ["-1", "4294967296", "abc"] {
        let message = format!(
            ":2: invalid item `{token}` of a set; \
             expected whole numbers from 0 to 4294967295, separated by blanks"
        );
        let content = format!("1 2 3\n4 {token} 5\n6\n");
        check_failed(content.as_bytes(), "sets", &message);
        check_skipped(content.as_bytes(), "sets", 2);
    }
}

#[test]
fn an_empty_file_is_an_empty_stream() {
    for format in ["lines", "u32le", "u64le", "sets"] {
        let (ended, _) = read(b"", format, &[]);
        assert_eq!(ended.ok(), "", "{format}");
    }
}

#[test]
fn a_line_longer_than_the_limit() {
    let (ended, path) = read(b"short\nlonger\n", "lines", &["stages.in.with.line_bytes_max=5"]);
    assert_eq!(ended.status, 1);
    let message = "2: the line is longer than 5 bytes (`line_bytes_max`)";
    assert_eq!(ended.stderr, format!("error: stage `in` (read): {path}:{message}\n"));
}

#[test]
fn files_that_cannot_be_read_are_mistakes_of_the_configuration() {
    let place = "standard input:2:66: stages[0].with.paths: `paths`: ";
    for (path, message) in [
        ("no/such/file", "cannot open no/such/file: No such file or directory (os error 2)"),
        ("configs", "configs is a directory; `configs/*` names the files in it"),
        ("no/such/*.log", "no file matches the pattern `no/such/*.log`"),
    ] {
        let said = trommel(["run", "-"]).input(reading(path, "lines")).end().refused(2);
        assert_eq!(said.lines().next(), Some(format!("{place}{message}").as_str()));
    }
}

#[test]
fn standard_input_holds_the_pipeline_or_the_data() {
    for path in ["-", "/dev/stdin"] {
        let said = trommel(["run", "-"]).input(reading(path, "lines")).end().refused(2);
        assert_eq!(
            said,
            "error: stage `in` reads standard input, where the pipeline came from; \
             put the pipeline into a file\n"
        );
    }
    let files = Files::new();
    let pipeline = files.write("pipeline.json", reading("-", "lines"));
    let printed = trommel(["run", &pipeline]).input("data\n").end().ok();
    assert_eq!(printed, "{\"line\":\"data\"}\n");
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).expect("written to memory");
    encoder.finish().expect("written to memory")
}

#[test]
fn top_counts_what_it_can_read_and_names_the_rest() {
    let files = Files::new();
    let good = files.write("a.log", "x\n".repeat(1000));
    let packed = gzip(&b"y\nz\n".repeat(100));
    let cut = files.write("b.gz", &packed[..packed.len() - 4]);
    let garbage = files.write("c.gz", [&packed, &b"garbage"[..]].concat());
    let state = files.path("state");
    let ended = trommel(["top", "--save", &state, &good, &cut, &garbage]).end();
    assert_eq!(ended.status, 1);
    assert_eq!(
        ended.stderr,
        format!(
            " WARN left out: cannot read {cut}: unexpected end of file\n \
             WARN left out: cannot read {garbage}: unexpected bytes after the gzip data\n\
             left out, wholly or from the damage on: 2 files; see the warnings\n"
        )
    );
    let counts: Vec<&str> =
        ended.stdout.lines().skip(2).map(|row| row.split_whitespace().nth(2).unwrap()).collect();
    assert_eq!(counts, ["1000", "200", "200"]);
    assert!(std::path::Path::new(&state).exists());
}

#[test]
fn many_files_that_cannot_be_read_are_named_in_part() {
    let files = Files::new();
    let paths: Vec<String> = (0..25).map(|i| files.path(&i.to_string())).collect();
    let ended = trommel(["top"].into_iter().chain(paths.iter().map(String::as_str))).end();
    assert_eq!((ended.status, ended.stdout.as_str()), (1, ""));
    let warnings: Vec<&str> = ended.stderr.lines().filter(|l| l.starts_with(" WARN ")).collect();
    assert_eq!((warnings.len(), warnings[20]), (21, " WARN left out: 5 more files"));
}

#[test]
fn packed_standard_input_is_recognised() {
    for input in [gzip(b"a\nb\na\n"), zstd::encode_all(&b"a\nb\na\n"[..], 1).unwrap()] {
        let table = trommel(["top"]).input(input).end().ok();
        assert_eq!(table.lines().nth(2).unwrap().split_whitespace().nth(2), Some("2"));
    }
}

#[test]
fn files_are_followed_until_the_run_is_stopped() {
    let files = Files::new();
    let log = files.write("app.log", "one\n");
    let append = |text: &str| {
        let mut file =
            std::fs::File::options().append(true).create(true).open(&log).expect("a file");
        file.write_all(text.as_bytes()).expect("room");
    };
    let report = files.path("report.json");
    let arguments = ["run", "-", "-q", "--set", "stages.in.with.follow=true", "--report", &report];
    let mut live = trommel(arguments).input(reading(&log, "lines")).start();
    assert_eq!(live.line(), "{\"line\":\"one\"}\n");
    append("two\nthr");
    assert_eq!(live.line(), "{\"line\":\"two\"}\n");
    std::fs::rename(&log, files.path("app.log.1")).expect("the same folder");
    append("four\n");
    assert_eq!(live.line(), "{\"line\":\"four\"}\n");
    live.signal(rustix::process::Signal::INT);
    let ended = live.end();
    assert_eq!((ended.status, ended.stdout.as_str()), (130, ""));
    let report: Value = serde_json::from_str(&files.read("report.json")).expect("JSON");
    let position = |bytes: u64| json!({ "path": log, "bytes": bytes });
    assert_eq!(report["stages"][0]["positions"], json!([position(8), position(5)]));
}

#[test]
fn the_report_names_the_files_that_were_left_out() {
    let files = Files::new();
    let (good, missing) = (files.write("a", "1\n"), files.path("b"));
    let report = files.path("report.json");
    let paths = format!("stages.in.with.paths=[\"{good}\", \"{missing}\"]");
    let skip = ["--set", "stages.in.with.on_error=skip", "--set", &paths, "--report", &report];
    let arguments = ["run", "-q", "-"].into_iter().chain(skip);
    let ended = trommel(arguments).input(reading(&good, "lines")).end();
    assert_eq!((ended.status, ended.stdout.as_str()), (0, "{\"line\":\"1\"}\n"));
    let report: Value = serde_json::from_str(&files.read("report.json")).expect("JSON");
    let stage = &report["stages"][0];
    assert_eq!((&stage["files"], &stage["files_skipped"]), (&json!(1), &json!(1)));
    let reason = stage["left_out"][0].as_str().expect("a text");
    assert!(reason.starts_with(&format!("cannot open {missing}: ")), "{reason}");
}

#[test]
fn the_memory_of_a_pipeline_has_a_limit() {
    let files = Files::new();
    let pipeline = format!(
        r#"{{ "memory_max": 2000000, "stages": [
            {{ "id": "in", "operator": "read", "with": {{ "paths": ["{}"] }} }},
            {{ "id": "top", "operator": "frequent_items", "inputs": ["in"],
               "with": {{ "item": "line", "item_bytes_max": 1000000 }} }},
            {{ "id": "out", "operator": "write", "inputs": ["top"] }} ] }}"#,
        files.write(
            "lines",
            (10..60).map(|i| format!("{}{i}\n", "x".repeat(100_000))).collect::<String>()
        )
    );
    let said = trommel(["run", "-q", "-"]).input(pipeline.as_str()).end().refused(1);
    assert!(said.contains("stage `top") && said.contains("raise `memory_max`"), "{said}");
    let enough = ["run", "-q", "-", "--set", "stages.top.with.item_bytes_max=100"];
    assert_eq!(trommel(enough).input(pipeline.as_str()).end().ok().lines().count(), 50);
    let little = ["run", "-q", "-", "--set", "memory_max=1000"];
    let said = trommel(little).input(pipeline.as_str()).end().refused(2);
    assert!(said.contains("memory_max"), "{said}");
}
