//! Tables of kernels on the stand-in driver: every kernel gives the answer of the processor. The
//! measured times have no meaning there.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::process::Command;

use trommel_shim::{Form, StandIn};

fn bench(arguments: &[&str]) -> String {
    let driver = StandIn::new(Form::Plain).devices(1);
    let mut command: Command = driver.command(env!("CARGO_BIN_EXE_trommel-bench"));
    let ended = command.args(arguments).output().unwrap();
    let said = String::from_utf8(ended.stdout).unwrap();
    assert!(ended.status.success(), "{said}{}", String::from_utf8_lossy(&ended.stderr));
    said
}

#[test]
fn every_unit_gives_the_supports_of_the_processor() {
    let matrices = ["--rounds", "1", "--matrices", "130:700:0.2:30,3:6600:0.01:1"];
    let said = bench(&[&["supports"], &matrices[..]].concat());
    assert_eq!(said.matches("| tensor cores ").count(), 2, "{said}");
    assert_eq!(said.matches("| integer units ").count(), 2, "{said}");
    assert_eq!(said.matches("batmaps: kernel ").count(), 2, "{said}");
}

#[test]
fn signatures_have_the_matches_of_postings() {
    let sets = ["--rounds", "2", "--sets", "300", "--sizes", "14", "--without", "scalar"];
    let said = bench(&[&["signatures", "--threads", "64,128"], &sets[..]].concat());
    for kernel in ["count", "matches"] {
        assert_eq!(said.matches(&format!("| GPU, {kernel}, ")).count(), 2, "{said}");
    }
    assert!(said.contains("signatures and their copy took "), "{said}");
}

#[test]
fn waves_have_the_overlaps_of_the_processor() {
    let said = bench(&["waves", "--devices", "cpu,cuda", "--pairs", "200", "--sizes", "14"]);
    for device in ["cpu", "cuda"] {
        assert_eq!(said.matches(&format!("| {device} ")).count(), 3, "{device}: {said}");
    }
}
