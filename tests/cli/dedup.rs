//! `dedup` compared with all pairs of rows.

use std::collections::HashSet;
use std::fs;

use serde_json::{Value, json};

use crate::support::{Files, repository, trommel};

/// Rows of the corpus in the repository.
fn corpus() -> Vec<Value> {
    let text = fs::read_to_string(repository().join("configs/data/corpus.jsonl")).expect("a file");
    text.lines().map(|line| serde_json::from_str(line).expect(line)).collect()
}

fn words(row: &Value) -> HashSet<&str> {
    row["text"].as_str().expect("a text").split(' ').collect()
}

/// Pairs of rows of which four fifths of all words are in both.
fn pairs(rows: &[Value]) -> Vec<(usize, usize)> {
    let is_similar = |one: &Value, other: &Value| {
        let (one, other) = (words(one), words(other));
        5 * one.intersection(&other).count() >= 4 * one.union(&other).count()
    };
    let all = (0..rows.len()).flat_map(|right| (0..right).map(move |left| (left, right)));
    all.filter(|&(left, right)| is_similar(&rows[left], &rows[right])).collect()
}

fn objects(lines: &str) -> Vec<Value> {
    lines.lines().map(|line| serde_json::from_str(line).expect(line)).collect()
}

#[test]
fn the_first_of_similar_rows_stays_whole() {
    let rows = corpus();
    let pairs = pairs(&rows);
    let dropped: HashSet<usize> = pairs.iter().map(|pair| pair.1).collect();
    assert!(dropped.len() > 5 && dropped.len() < 30, "{dropped:?}");
    let kept: Vec<Value> =
        (0..rows.len()).filter(|row| !dropped.contains(row)).map(|row| rows[row].clone()).collect();
    let files = Files::new();
    let found = files.path("pairs.csv");
    let arguments = [
        "dedup",
        "--by",
        "words(text)",
        "configs/data/corpus.jsonl",
        "--pairs",
        &found,
        "--id",
        "id",
        "--report",
    ];
    let ended = trommel(arguments).end();
    assert_eq!(objects(&ended.stdout), kept);
    let counts = json!({
        "rows": 60, "kept": kept.len(), "left_out": dropped.len(), "pairs": pairs.len() });
    assert!(ended.stderr.contains(&counts.to_string()), "{}", ended.stderr);
    let found = fs::read_to_string(found).expect("a file");
    let mut found: Vec<(usize, usize)> = found
        .lines()
        .skip(1)
        .map(|line| {
            let mut fields = line.split(',').map(|field| field.parse().unwrap_or(usize::MAX));
            (fields.next().expect("left"), fields.next().expect("right"))
        })
        .collect();
    found.sort_unstable_by_key(|&(left, right)| (right, left));
    assert_eq!(found, pairs);
    assert_eq!(objects(&trommel(["run", "configs/dedup-jsonl.json"]).end().ok()), kept);
}

#[test]
fn every_format_keeps_the_same_rows() {
    let text = "a b c\nx y\n\nc b a\n\nx z\n";
    let files = Files::new();
    let lines = files.write("rows.txt", text);
    // Empty lines have no words, and stay.
    assert_eq!(trommel(["dedup", "-q", &lines]).end().ok(), "a b c\nx y\n\n\nx z\n");
    assert_eq!(trommel(["dedup", "-q"]).input(text).end().ok(), "a b c\nx y\n\n\nx z\n");
    let table = files.write("rows.csv", "n,t\n1,a b\n2,\"b, a\"\n3,c\n");
    let by = ["--by", "words(t)"];
    let csv = trommel(["dedup", "-q", &table].into_iter().chain(by)).end().ok();
    assert_eq!(csv, "n,t\n1,a b\n3,c\n");
    let parquet = files.path("kept.parquet");
    trommel(["dedup", "-q", &table, "--output", &parquet].into_iter().chain(by)).end().ok();
    let again = trommel(["dedup", "-q", &parquet].into_iter().chain(by)).end().ok();
    assert_eq!(again, "{\"n\":1,\"t\":\"a b\"}\n{\"n\":3,\"t\":\"c\"}\n");
    let none = trommel(["dedup", "-q", "--threshold", "0.5", "--similarity", "dice", &lines]);
    assert_eq!(none.end().ok(), "a b c\nx y\n\n\n", "`x z` has half of the words of `x y`");
}

#[test]
fn mistakes_say_what_would_be_right() {
    let files = Files::new();
    let table = files.write("rows.csv", "t\na\n");
    for (arguments, said) in [
        (vec!["dedup", &table], "--by 'words(text)'"),
        (vec!["dedup", "--by", "words(t)", &table, "--output", "x.doc"], ".parquet"),
        (vec!["dedup", "--by", "words(x)", &table], "has no column `x`"),
        (vec!["dedup", "--threshold", "2", &table, "--by", "words(t)"], "threshold"),
        (vec!["dedup", "--by", "words(t)", "--format", "csv"], "--schema"),
    ] {
        let ended = trommel(&arguments).end();
        assert!(
            ended.status == 2 && ended.stderr.contains(said),
            "{arguments:?}: {}",
            ended.stderr
        );
    }
}
