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

/// Components of the pairs by marking: the smallest row of that of each row in a pair.
fn clusters(pairs: &[(usize, usize)], rows: usize) -> Vec<usize> {
    let mut smallest: Vec<usize> = (0..rows).collect();
    loop {
        let before = smallest.clone();
        for &(left, right) in pairs {
            let least = smallest[left].min(smallest[right]);
            (smallest[left], smallest[right]) = (least, least);
        }
        if before == smallest {
            return smallest;
        }
    }
}

#[test]
fn clusters_name_the_rows_that_stay() {
    let rows = corpus();
    let pairs = pairs(&rows);
    let cluster_of = clusters(&pairs, rows.len());
    let dropped: HashSet<usize> = pairs.iter().map(|pair| pair.1).collect();
    let mut expected = Vec::new();
    for cluster in 0..rows.len() {
        let members: Vec<usize> =
            (0..rows.len()).filter(|&row| cluster_of[row] == cluster).collect();
        if members.len() > 1 {
            expected.extend(members.iter().map(|row| {
                let kept = !dropped.contains(row);
                json!({ "id": row, "cluster": cluster, "size": members.len(), "kept": kept })
            }));
        }
    }
    assert!(expected.len() > 10);
    let files = Files::new();
    // The file has the column `id`, which is the position; of 32 bits, in the other order.
    let reversed: Vec<Value> = rows
        .iter()
        .map(|row| json!({ "id": 1_000 - row["id"].as_u64().expect("a number"), "text": row["text"] }))
        .collect();
    let lines: String = reversed.iter().map(|row| format!("{row}\n")).collect();
    let narrow = files.write("narrow.jsonl", &lines);
    let found = files.path("clusters.jsonl");
    let by = ["dedup", "--by", "words(text)", "--report", "--clusters", &found];
    let ended = trommel(by.into_iter().chain(["configs/data/corpus.jsonl"])).end();
    assert_eq!(objects(&fs::read_to_string(&found).expect("a file")), expected);
    let names: HashSet<&Value> = expected.iter().map(|row| &row["cluster"]).collect();
    assert!(ended.stderr.contains(&format!("\"clusters\":{}", names.len())), "{}", ended.stderr);
    let schema = ["--schema", "{\"id\": \"u32\", \"text\": \"text\"}", &narrow];
    assert_eq!(trommel(by.into_iter().chain(schema)).end().status, 0);
    let found = objects(&fs::read_to_string(&found).expect("a file"));
    let row_of = |row: &Value| 1_000 - row["id"].as_u64().expect("a number");
    let kept = |rows: &[Value], row_of: &dyn Fn(&Value) -> u64| -> HashSet<(u64, bool)> {
        rows.iter().map(|row| (row_of(row), row["kept"] == true)).collect()
    };
    let by_id = |row: &Value| row["id"].as_u64().expect("a number");
    assert_eq!(kept(&found, &row_of), kept(&expected, &by_id));
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
        (vec!["dedup", "--by", "words(x)", "--clusters", "c.csv", &table], "has no column `x`"),
        (vec!["dedup", "--threshold", "2", &table, "--by", "words(t)"], "threshold"),
        (vec!["dedup", "--by", "words(t)", "--format", "csv"], "--schema"),
    ] {
        let ended = trommel(&arguments).end();
        assert!(
            ended.status == 2 && ended.stderr.matches(said).count() == 1,
            "{arguments:?}: {}",
            ended.stderr
        );
    }
}
