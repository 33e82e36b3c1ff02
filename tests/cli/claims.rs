//! Inputs that are outputs, and inputs that can be read only once.

use std::fs;
use std::io::Write as _;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::{Files, shell, trommel};

/// A pipeline of one stage that reads each of `inputs`, and one that writes all rows to `output`.
fn copying(inputs: &[&Value], output: &Value) -> String {
    let id = |index: usize| format!("in {index}");
    let reads = inputs
        .iter()
        .enumerate()
        .map(|(index, with)| json!({ "id": id(index), "operator": "read", "with": with }));
    let ids: Vec<_> = (0..inputs.len()).map(id).collect();
    let write = json!({ "id": "out", "operator": "write", "inputs": ids, "with": output });
    json!({ "stages": reads.chain([write]).collect::<Vec<_>>() }).to_string()
}

fn run(pipeline: String, files: &Files) -> (String, String) {
    let config = files.write("pipeline.json", pipeline);
    let checked = trommel(["check", &config]).end().refused(2);
    (trommel(["run", &config]).end().refused(2), checked)
}

#[test]
fn an_input_that_is_an_output_is_refused_before_it_is_touched() {
    let files = Files::new();
    let path = files.write("access.csv", "a\nb\n");
    fs::hard_link(&path, files.path("twin.csv")).expect("the same folder");
    for name in ["access.csv", "twin.csv", "./access.csv"] {
        for output in [
            json!({ "path": files.path(name) }),
            json!({ "path": files.path(name), "append": true }),
            json!({ "path": files.path(name), "rotate": { "bytes": 100 } }),
        ] {
            let read = json!({ "paths": [path] });
            let said = run(copying(&[&read], &output), &files);
            let name = files.path(name);
            let expected = format!(
                "{name} is an input, of `paths` of stage `in 0`, which would be overwritten"
            );
            assert!(said.0.contains(&expected) && said.1.contains(&expected), "{said:?}");
        }
    }
    assert_eq!(files.read("access.csv"), "a\nb\n");
}

#[test]
fn the_file_of_standard_output_is_no_input() {
    let files = Files::new();
    let path = files.write("z.txt", "1\n2\n");
    for follow in [false, true] {
        let read = json!({ "paths": [path], "follow": follow });
        let config = files.write("pipeline.json", copying(&[&read], &json!({})));
        let said = trommel(["run", &config]).append_to(&path).end().refused(2);
        assert!(said.contains("standard output is an input, of `paths` of stage `in 0`"), "{said}");
    }
    assert_eq!(files.read("z.txt"), "1\n2\n");
}

#[test]
fn an_output_that_a_pattern_matches_is_left_out() {
    let files = Files::new();
    files.write("a.txt", "1\n2\n");
    let path = files.write("z.txt", "old\n");
    let read = json!({ "paths": [files.path("*.txt")] });
    let config = files.write("pipeline.json", copying(&[&read], &json!({})));
    let report = files.path("report.json");
    let ended = trommel(["run", "-q", &config, "--report", &report]).append_to(&path).end();
    assert_eq!((ended.status, ended.stdout.as_str()), (0, ""), "{}", ended.stderr);
    assert!(ended.stderr.contains(&format!("left out: {path} is an output of this run")));
    assert_eq!(files.read("z.txt"), "old\n{\"line\":\"1\"}\n{\"line\":\"2\"}\n");
    let report: Value = serde_json::from_str(&files.read("report.json")).expect("JSON");
    assert_eq!(report["stages"][0]["files_skipped"], 1, "{report}");
}

#[test]
fn outputs_that_appear_later_are_not_followed() {
    let files = Files::new();
    let log = files.write("a.log", "1\n");
    let read = json!({ "paths": [files.path("*")], "follow": true });
    // Each row begins a new file under the old name.
    let write =
        json!({ "path": files.path("out.log"), "rotate": { "bytes": 1 }, "flush_seconds": 0 });
    let config = Files::new();
    let path = config.write("pipeline.json", copying(&[&read], &write));
    let mut live = trommel(["run", "-q", &path]).start();
    let out = files.path("out.log");
    let left_out = |line: String| assert!(line.contains("is an output of this run"), "{line}");
    left_out(live.error_line());
    for number in 2..=3 {
        let mut log = fs::File::options().append(true).open(&log).expect("a file");
        log.write_all(format!("{number}\n").as_bytes()).expect("room");
        left_out(live.error_line());
    }
    assert!(fs::exists(out).expect("a folder"));
    live.signal(Signal::INT);
    assert_eq!(live.end().status, 130);
    let names = fs::read_dir(files.path("")).expect("a folder").flatten();
    let mut rows: Vec<_> = names
        .filter(|entry| entry.file_name() != "a.log")
        .map(|entry| fs::read_to_string(entry.path()).expect("text"))
        .collect();
    rows.sort();
    let row = |number: u64| format!("{{\"line\":\"{number}\"}}\n");
    assert_eq!(rows, [row(1), row(2), row(3)]);
}

#[test]
fn an_input_that_can_be_read_once_is_read_by_one_stage() {
    let files = Files::new();
    let fifo = files.fifo("pipe");
    let pattern = files.path("pip?");
    for (first, second) in [
        ("-", "-"),
        ("-", "/dev/stdin"),
        ("/dev/stdin", "/proc/self/fd/0"),
        (fifo.as_str(), fifo.as_str()),
        (fifo.as_str(), pattern.as_str()),
    ] {
        let (first, second) = (json!({ "paths": [first] }), json!({ "paths": [second] }));
        let said = run(copying(&[&first, &second], &json!({})), &files);
        let expected = "is also read by `paths` of stage `in 0`, and it can be read only once";
        assert!(said.0.contains(expected) && said.1.contains(expected), "{said:?}");
    }
    // A regular file can be read by several stages, and `/dev/null` too.
    let path = files.write("rows.txt", "1\n");
    let (read, null) = (json!({ "paths": [path] }), json!({ "paths": ["/dev/null"] }));
    let config = files.write("pipeline.json", copying(&[&read, &read, &null, &null], &json!({})));
    assert_eq!(trommel(["run", &config]).end().ok(), "{\"line\":\"1\"}\n".repeat(2));
}

#[test]
fn files_of_the_command_itself_are_neither_overwritten_nor_read() {
    let files = Files::new();
    files.write("in", "1\n2\n");
    files.write("pipeline", crate::support::reading("in", "lines"));
    let (input, pipeline) = (files.read("in"), files.read("pipeline"));
    for line in [
        "run -q pipeline --set stages.out.with.path=pipeline",
        "run -q pipeline --set stages.out.with.path=./pipeline --set stages.out.with.append=true",
        "run -q pipeline --report in",
        "run -q pipeline --report pipeline",
        "run -q pipeline --report out --set stages.out.with.path=out",
        "top -q in --save in",
        "top -q in >> in",
        "top -q < in >> in",
    ] {
        let ended = shell(&files, &format!("trommel {line}"));
        assert_eq!(ended.status, 2, "{line}: {}", ended.stderr);
        assert!(ended.stderr.contains("output") || ended.stderr.contains("written"), "{line}");
        assert_eq!((files.read("in"), files.read("pipeline")), (input.clone(), pipeline.clone()));
    }
    // A state is read and replaced.
    shell(&files, "trommel top -q in --save state > out").ok();
    let twice = shell(&files, "trommel top -q in --load state --save state").ok();
    assert!(twice.contains("1         2"), "{twice}");
}
