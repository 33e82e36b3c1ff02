//! Peers that are crates give the answers of ours: each table compares them. The measured times
//! have no meaning here.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::process::Command;

const NEEDED: &str = "TROMMEL_PEERS";

fn bench(arguments: &[&str]) -> String {
    assert!(std::env::var_os(NEEDED).is_some(), "{NEEDED} names no program");
    let mut command = Command::new(env!("CARGO_BIN_EXE_trommel-bench"));
    let ended = command.args(arguments).args(["--rust-peers", "--rounds", "1"]).output().unwrap();
    let said = String::from_utf8(ended.stdout).unwrap();
    assert!(ended.status.success(), "{said}{}", String::from_utf8_lossy(&ended.stderr));
    said
}

#[test]
#[ignore = "it needs the program of bench/peers, which TROMMEL_PEERS names"]
fn engines_have_our_sum() {
    let said = bench(&["engine", "--only", "table", "--items", "50000", "--batch", "512"]);
    let names = ["| timely, 1 ", "| timely, 2 ", "| renoir, fused, 1 ", "| renoir, one hop "];
    for name in names {
        assert_eq!(said.matches(name).count(), 2, "{name}: {said}");
    }
}

#[test]
#[ignore = "it needs the program of bench/peers, which TROMMEL_PEERS names"]
fn summaries_name_the_most_frequent_items() {
    let said = bench(&["frequent-items", "--quick", "--only", "table", "--skews", "1,2"]);
    for name in ["datasketches", "topk", "heavykeeper"] {
        assert_eq!(said.matches(&format!("| crate {name} ")).count(), 4, "{name}: {said}");
    }
}

#[test]
#[ignore = "it needs the program of bench/peers, which TROMMEL_PEERS names"]
fn indexes_have_our_counts() {
    let indexes = ["--indexes", "300:66000:30000,60:300:2000", "--queries", "50"];
    let said = bench(&[&["conjunctive-query", "--only", "counts"], &indexes[..]].concat());
    for name in ["roaring", "croaring", "tantivy"] {
        assert_eq!(said.matches(&format!("| one core, {name}")).count(), 4, "{name}: {said}");
    }
}

#[test]
#[ignore = "it needs the program of bench/peers, which TROMMEL_PEERS names"]
fn a_tree_has_our_pairs() {
    let vectors = ["--vectors", "uniform:900:3:0.1,clusters:500:2:0.02", "--samples", "9"];
    let said = bench(&[&["epsilon-join", "--only", "cpu"], &vectors[..]].concat());
    assert_eq!(said.matches("| kiddo |").count(), 2, "{said}");
    assert_eq!(said.matches("(+0 -0)").count(), 2, "{said}");
}
