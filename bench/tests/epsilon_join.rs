//! `epsilon-join` on the CPU and on the stand-in driver: all ways find the same pairs. The measured
//! times have no meaning here.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::process::{Command, Output};

use trommel_shim::{Form, StandIn};

fn run(arguments: &[&str]) -> Output {
    let driver = StandIn::new(Form::Plain).devices(1);
    let mut command: Command = driver.command(env!("CARGO_BIN_EXE_trommel-bench"));
    command.arg("epsilon-join").args(arguments).output().unwrap()
}

fn epsilon_join(arguments: &[&str]) -> String {
    let ended = run(&[&["--rounds", "1", "--samples", "9"], arguments].concat());
    let said = String::from_utf8(ended.stdout).unwrap();
    assert!(ended.status.success(), "{said}{}", String::from_utf8_lossy(&ended.stderr));
    // Without the blanks that align columns.
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    said.lines().map(words).collect::<Vec<_>>().join("\n")
}

#[test]
fn all_ways_of_the_processor_find_the_same_pairs() {
    let vectors = "uniform:900:3:0.1,clusters:500:2:0.02,correlated:400:8:0.1,topics:300:40:0.6";
    let said = epsilon_join(&["--only", "cpu", "--vectors", vectors]);
    for way in ["| directory |", "| nested loop |", "| operator, 1 cores |"] {
        assert_eq!(said.matches(way).count(), 4, "{said}");
    }
}

#[test]
fn all_ways_of_a_device_find_the_same_pairs() {
    let ways = "boxes,float,nested,directory";
    let vectors = ["--only", "device", "--ways", ways, "--vectors", "uniform:700:3:0.1"];
    let said = epsilon_join(&[&vectors[..], &["--room", "100000"]].concat());
    assert!(said.contains("uniform, 700 x 3, epsilon 0.1"), "{said}");
}

#[test]
fn streams_find_the_pairs_of_their_windows() {
    let said =
        epsilon_join(&["--only", "stream", "--stream", "uniform:2048:3:0.1", "--streamed", "4096"]);
    assert!(said.contains("| 1 | peak |") && said.contains("| 1 | 90 % |"), "{said}");
}

#[test]
fn the_figure_of_the_paper_is_drawn() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    let said = epsilon_join(&["--only", "figure", "--sizes", "300,600", "--figures", path]);
    assert_eq!(said.matches("| 600 |").count(), 3, "{said}");
    let drawn = std::fs::read_to_string(folder.path().join("epsilon-join-uniform.svg")).unwrap();
    assert!(drawn.contains("boxes, GPU"), "{drawn}");
}

#[test]
fn options_out_of_range_are_named() {
    for (option, value, allowed) in [
        ("--vectors", "uniform:0:8:0.1", "LEN is at least 1"),
        ("--vectors", "uniform:10:4097:0.1", "DIMS 1 to 4096"),
        ("--vectors", "uniform:10:0:0.1", "DIMS 1 to 4096"),
        ("--vectors", "uniform:10:8:-1", "EPSILON a number from 0"),
        ("--stream", "uniform:10:8:nan", "EPSILON a number from 0"),
        ("--vectors", "uniform:10:8", "SHAPE:LEN:DIMS:EPSILON"),
        ("--sizes", "300,0", "zero"),
        ("--rounds", "0", "zero"),
        ("--streamed", "0", "zero"),
    ] {
        let ended = run(&[option, value]);
        let said = String::from_utf8_lossy(&ended.stderr).into_owned();
        assert_eq!(ended.status.code(), Some(2), "{option} {value}: {said}");
        assert!(said.contains(allowed), "{option} {value}: {said}");
    }
}
