//! Error messages for invalid pipelines.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::support::{Files, reading, trommel};

/// Mistakes: a misspelt key, a value of the wrong type, one out of range, a misspelt choice, and
/// an unknown input.
const MISTAKEN: &str = r#"{
  "name": "mistaken",
  "stages": [
    { "id": "text", "operator": "read", "with": { "paths": "a.txt", "formt": "lines" } },
    { "id": "words", "operator": "tokenize", "inputs": ["texts"], "with": { "by": "word" } },
    { "id": "top", "operator": "frequent_items", "inputs": ["words"], "with": { "counters": 0 } },
    { "id": "print", "operator": "wirte", "inputs": ["top"] }
  ]
}
"#;

/// All mistakes of [`MISTAKEN`], in order.
const SAID: &str = include_str!("mistaken.txt");

#[test]
fn every_mistake_is_said_at_once_with_its_place() {
    let files = Files::new();
    let path = files.write("mistaken.json", MISTAKEN);
    for command in ["check", "run", "explain"] {
        let said = trommel([command, &path]).end().refused(2);
        assert_eq!(said.replace(&path, "mistaken.json"), SAID);
    }
}

/// Stages that have several mistakes each, none of which the schema knows.
const UNFIT: &str = include_str!("unfit.json");

/// The parameters of each stage of [`UNFIT`] that are blamed.
const BLAMED: [(&str, &[&str]); 14] = [
    ("file", &["comment", "delimiter", "from", "paths", "paths"]),
    ("followed", &["columns", "encoding", "start"]),
    ("random", &["clusters", "dims", "size_min"]),
    ("cut", &["carry", "column", "delimiter", "q"]),
    ("top", &["every", "item", "state_bytes_max", "weight"]),
    ("similar", &["algorithm", "carry", "id", "set"]),
    ("pairs", &["layout", "set", "window"]),
    ("search", &["carry", "index", "set"]),
    ("near", &["carry", "id", "snapshot", "vector"]),
    ("some", &["where"]),
    ("few", &["columns", "columns", "columns"]),
    ("all", &["fill", "fill", "fill", "fill"]),
    ("hot", &["item"]),
    ("rows", &["columns", "columns", "flush_seconds", "row_group_bytes"]),
];

/// A second round would tell nothing more, and no error follows from another one.
#[test]
fn all_parameters_of_a_stage_that_do_not_fit_are_said_at_once() {
    let stages: Value = serde_json::from_str(UNFIT).unwrap();
    let id = |number: usize| stages["stages"][number]["id"].as_str().unwrap();
    let said = trommel(["check", "-"]).input(UNFIT).end().refused(2);
    let mut blamed: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (_, place) in said.lines().filter_map(|line| line.split_once(": stages[")) {
        let (number, place) = place.split_once("].with.").expect(place);
        let parameter = place.split(['.', '[', ':']).next().unwrap();
        blamed.entry(id(number.parse().unwrap())).or_default().push(parameter);
    }
    blamed.values_mut().for_each(|parameters| parameters.sort_unstable());
    let expected = BLAMED.map(|(stage, parameters)| (stage, parameters.to_vec()));
    assert_eq!(blamed, BTreeMap::from(expected), "{said}");
}

#[test]
fn a_pipeline_on_standard_input_is_read_and_named() {
    let said = trommel(["check", "-"]).input("{").end().refused(2);
    assert!(said.starts_with("standard input:1:"), "{said}");
    let checked = trommel(["check", "-"]).input(reading("Cargo.toml", "lines")).end();
    assert_eq!(checked.ok(), "-: ok\n");
}

#[test]
fn all_files_are_checked() {
    let files = Files::new();
    let bad = files.write("bad.json", "[]");
    let ended = trommel([
        "check",
        "configs/top-items.json",
        &bad,
        "no-such.json",
        "configs/zipf-live.json",
    ]);
    let ended = ended.end();
    assert_eq!(ended.status, 2);
    assert_eq!(ended.stdout, "configs/top-items.json: ok\nconfigs/zipf-live.json: ok\n");
    let said: Vec<&str> = ended.stderr.lines().collect();
    assert!(said[0].starts_with(&format!("{bad}:1:1: ")), "{said:?}");
    let missing = "error: cannot read no-such.json: No such file or directory (os error 2)";
    assert_eq!(said.last(), Some(&missing));
}

#[test]
fn a_file_that_is_not_text_is_refused() {
    let files = Files::new();
    let path = files.write("binary.json", b"{\xff}");
    let said = trommel(["run", &path]).end().refused(2);
    assert_eq!(said, format!("error: cannot read {path}: stream did not contain valid UTF-8\n"));
}

#[test]
fn a_change_on_the_command_line_is_checked_like_the_file() {
    let run = |change: &str| trommel(["run", "configs/top-items.json", "--set", change]).end();
    let said = run("stages.top.with.counters=none").refused(2);
    assert_eq!(
        said,
        "--set stages.top.with.counters=none: stages[1].with.counters: \"none\" is not an integer\n"
    );
    let said = run("stages.tip.with.n=1").refused(2);
    assert!(said.contains("there is no element `tip` here"), "{said}");
    let said = run("no value").refused(2);
    assert!(said.contains("not of the form PATH=VALUE, such as stages.top.with.n=5"), "{said}");
}

#[test]
fn an_unknown_instruction_set_is_refused_with_the_choices() {
    let bogus =
        |arguments: &[&str]| trommel(arguments).env("TROMMEL_ISA", "bogus").end().refused(2);
    let choices =
        "unknown instruction-set level \"bogus\"; allowed are scalar, portable, avx2, avx512\n";
    assert_eq!(bogus(&["devices"]), format!("error: {choices}"));
    let said = bogus(&["run", "configs/top-items.json"]);
    assert!(said.contains(choices.trim_end()), "{said}");
}
