//! Inputs that are not what the pipeline expects.

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
    assert_eq!(ended.ok().lines().count(), rows);
}

#[test]
fn integers_that_are_cut_off() {
    let content = [1, 0, 0, 0, 2, 0, 0, 0, 3, 0];
    check_failed(&content, "u32le", ": 2 of 4 bytes of an item are left over at byte 8");
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
            ":2: `{token}` is not an item of a set; \
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
