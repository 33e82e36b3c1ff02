//! Error messages for invalid pipelines.

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
