//! `scaling` with small data and without peers: the command answers every question on one core and
//! on two with right answers, and the table has all rows. The measured times have no meaning here.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

use serde_json::Value;

/// The command beside the program of the bench. The tests of the whole workspace build the command;
/// for those of the bench alone, it may be missing.
fn command() -> PathBuf {
    let path = PathBuf::from(env!("CARGO_BIN_EXE_trommel-bench")).with_file_name("trommel");
    if !path.exists() {
        let mut cargo = Command::new(env!("CARGO"));
        let status = cargo.args(["build", "--locked", "-p", "trommel-cli"]).status().unwrap();
        assert!(status.success(), "cargo could not build the command");
    }
    path
}

fn scaling(arguments: &[&str]) -> Output {
    let mut bench = Command::new(env!("CARGO_BIN_EXE_trommel-bench"));
    bench.args(["scaling", "--quick", "--runs", "2", "--python", "/no/python"]);
    bench.arg("--trommel").arg(command()).args(arguments).output().unwrap()
}

#[test]
fn every_question_has_right_answers_on_each_number_of_cores() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tables.json");
    let cores = if std::thread::available_parallelism().unwrap().get() > 1 { "1,2" } else { "1" };
    let ended = scaling(&["--cores", cores, "--json", path.to_str().unwrap()]);
    let said = String::from_utf8(ended.stdout).unwrap();
    assert!(ended.status.success(), "{said}{}", String::from_utf8_lossy(&ended.stderr));
    let table: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    let rows = table["tables"][0].as_array().unwrap();
    let of = |way: &str| rows.iter().filter(|row| row["way"] == way).collect::<Vec<_>>();
    let questions: Vec<&str> =
        of("trommel, s").iter().map(|row| row["question"].as_str().unwrap()).collect();
    let counted = ["top --by words", "top --by field=1", "top, lines", "frequent items"];
    let joined = ["set join, .5", "pairs, 100", "vectors, 8 dims", "queries"];
    assert_eq!(questions, [counted, joined].concat());
    for way in ["trommel, s", "trommel, % of page cache", "page cache, s"] {
        let all = of(way);
        assert_eq!(all.len(), 8, "{way}: {said}");
        assert!(all.iter().all(|row| row["1 core"].as_f64() > Some(0.0)), "{way}: {said}");
    }
    for peer in ["duckdb, s", "polars, s"] {
        let all = of(peer);
        assert_eq!(all.len(), counted.len() + 1, "{peer}: {said}");
        assert!(all.iter().all(|row| row["1 core"] == "not installed"), "{peer}: {said}");
    }
}

#[test]
fn a_text_takes_the_place_of_the_log_and_files_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let text = folder.path().join("text.txt");
    let lines: String = (0..600).map(|at| format!("Line, {} of naïve\ttext.\n", at % 7)).collect();
    fs::write(&text, &lines).unwrap();
    let data = folder.path().join("data");
    let named = ["--text", text.to_str().unwrap(), "--data", data.to_str().unwrap()];
    let only = ["--only", "words,field,lines,integers", "--cores", "1"];
    for _ in 0..2 {
        let ended = scaling(&[&named[..], &only].concat());
        let said = String::from_utf8(ended.stdout).unwrap();
        assert!(ended.status.success(), "{said}{}", String::from_utf8_lossy(&ended.stderr));
        let is_made = said.contains("makes ");
        assert_ne!(is_made, fs::exists(data.join("made")).unwrap(), "{said}");
        fs::write(data.join("made"), "").unwrap();
    }
    assert_eq!(fs::metadata(data.join("integers-200000.u32")).unwrap().len(), 800_000);
}

#[test]
fn more_cores_than_there_are_and_a_missing_command_are_errors() {
    let said = |ended: Output| {
        assert!(!ended.status.success());
        String::from_utf8(ended.stdout).unwrap()
    };
    let many = said(scaling(&["--cores", "1,100000"]));
    assert!(many.contains("--cores 100000: this process may use "), "{many}");
    let mut bench = Command::new(env!("CARGO_BIN_EXE_trommel-bench"));
    let missing = said(bench.args(["scaling", "--trommel", "/no/trommel"]).output().unwrap());
    assert!(missing.contains("/no/trommel is missing: build it by `cargo build"), "{missing}");
}
