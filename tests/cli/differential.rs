//! Random pipelines of the five operators, run by the binary, against brute force.
//!
//! `TROMMEL_CASES` is the number of cases and `TROMMEL_SEED` the first seed; a failure names its
//! seed.
#![expect(clippy::cast_possible_truncation, reason = "the numbers of a case are small")]

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use crate::support::{Files, trommel};

const CASES: u64 = 500;

/// `SplitMix64`: the cases of a seed are the same everywhere.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ mixed >> 31
    }

    /// A number below `end`, often a small one.
    fn skewed(&mut self, end: u64) -> u64 {
        let bound = 1 + self.below(end);
        self.below(bound)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    fn of<'a, T: ?Sized>(&mut self, choices: &[&'a T]) -> &'a T {
        choices[usize::try_from(self.below(choices.len() as u64)).expect("an index")]
    }
}

type Set = BTreeSet<u64>;

/// A case: files, stages between `in` and `out`, and a check of the rows.
struct Case<'a> {
    random: Random,
    files: &'a Files,
    stages: Vec<Value>,
}

impl Case<'_> {
    fn read(&mut self, id: &str, content: impl AsRef<[u8]>, mut with: Map<String, Value>) {
        let path = self.files.write(id, content);
        with.insert("paths".to_owned(), json!([path]));
        with.insert("batch".to_owned(), json!(1 + self.random.skewed(200)));
        self.stages.push(json!({ "id": id, "operator": "read", "with": with }));
    }

    /// Lines of sets, some empty, with repeated numbers.
    fn sets(&mut self, id: &str, most: u64) -> Vec<Set> {
        let (count, alphabet) = (self.random.skewed(most), 1 + self.random.skewed(60));
        let mut text = String::new();
        let sets: Vec<Set> = (0..count)
            .map(|_| {
                let len = self.random.skewed(14);
                let tokens: Vec<u64> = (0..len).map(|_| self.random.skewed(alphabet)).collect();
                let words: Vec<String> = tokens.iter().map(u64::to_string).collect();
                text.push_str(&words.join(" "));
                text.push('\n');
                tokens.into_iter().collect()
            })
            .collect();
        self.read(id, text, with(&[("format", json!("sets"))]));
        sets
    }

    /// Adds the operator and a sink, and runs the pipeline; returns its rows.
    fn rows(&mut self, operator: &str, inputs: &[&str], with: &Map<String, Value>) -> Vec<Value> {
        let join = json!({ "id": "it", "operator": operator, "inputs": inputs, "with": with });
        let out = json!({ "id": "out", "operator": "write", "inputs": ["it"] });
        let placement = self.random.of(&["auto", "fused"]);
        let stages: Vec<_> = self.stages.drain(..).chain([join, out]).collect();
        let pipeline = json!({ "placement": placement, "stages": stages }).to_string();
        let isa = self.random.of(&["scalar", "portable", ""]);
        let mut command = trommel(["run", "-q", "-"]).input(pipeline);
        if !isa.is_empty() {
            command = command.env("TROMMEL_ISA", isa);
        }
        let text = command.end().ok();
        text.lines().map(|line| serde_json::from_str(line).expect("a row")).collect()
    }
}

fn with(parameters: &[(&str, Value)]) -> Map<String, Value> {
    parameters.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect()
}

/// The whole numbers of some columns of each row, sorted.
fn numbers<const N: usize>(rows: &[Value], columns: [&str; N]) -> Vec<[u64; N]> {
    let number = |row: &Value, column| row[column].as_u64().expect("a number");
    let mut found: Vec<_> =
        rows.iter().map(|row| columns.map(|column| number(row, column))).collect();
    found.sort_unstable();
    found
}

/// Counts of lines: exact with enough counters, within their bounds with few.
fn frequent_items(case: &mut Case<'_>) {
    let (count, alphabet) = (case.random.skewed(2_000), 1 + case.random.skewed(120));
    let name = |n: u64| {
        format!("{}{n}", ["", "é", "長い名前の", "long ".repeat(30).as_str()][n as usize % 4])
    };
    let items: Vec<String> = (0..count).map(|_| name(case.random.skewed(alphabet))).collect();
    let text: String = items.iter().flat_map(|item| [item.as_str(), "\n"]).collect();
    case.read("in", text, with(&[("format", json!("lines"))]));
    let mut exact: BTreeMap<&str, u64> = BTreeMap::new();
    items.iter().for_each(|item| *exact.entry(item).or_default() += 1);
    let counters = 1 + case.random.skewed(200);
    let algorithm = case.random.of(&["auto", "sieve", "space_saving"]);
    let parameters = with(&[
        ("item", json!("line")),
        ("counters", json!(counters)),
        ("algorithm", json!(algorithm)),
        ("n", json!(1_000)),
    ]);
    let rows = case.rows("frequent_items", &["in"], &parameters);
    let mut last = u64::MAX;
    for row in &rows {
        let (count, error) = (
            row["count"].as_u64().expect("as the case was made"),
            row["error"].as_u64().expect("as the case was made"),
        );
        let right = exact
            .remove(row["item"].as_str().expect("as the case was made"))
            .expect("an item, once");
        assert!(count - error <= right && right <= count, "{row}: {right}");
        assert!(error <= items.len() as u64 / counters, "{row} of {counters} counters");
        assert!(count <= last, "{row} after {last}");
        last = count;
        assert!(error == 0 || (exact.len() + rows.len()) as u64 > counters, "{row}");
    }
    // Every item above the bound is there.
    let most = exact.values().max().copied().unwrap_or(0);
    assert!(most <= items.len() as u64 / counters, "{most} of an item that is missing");
}

fn is_similar(similarity: &str, [a, b, overlap]: [u64; 3], [num, den]: [u64; 2]) -> bool {
    match similarity {
        _ if overlap == 0 => false,
        "jaccard" => overlap * den >= num * (a + b - overlap),
        "dice" => 2 * overlap * den >= num * (a + b),
        "cosine" => overlap * overlap * den * den >= num * num * a * b,
        _ => overlap >= num,
    }
}

fn set_similarity_join(case: &mut Case<'_>) {
    let left = case.sets("left", 120);
    let right = (case.random.below(3) == 0).then(|| case.sets("right", 80));
    let similarity = case.random.of(&["jaccard", "dice", "cosine", "overlap"]);
    let den = 1 + case.random.below(12);
    let num = 1 + case.random.below(den);
    let (num, den) =
        if similarity == "overlap" { (1 + case.random.below(6), 1) } else { (num, den) };
    let threshold = if den == 1 { json!(num) } else { json!(format!("{num}/{den}")) };
    let algorithm =
        case.random.of(&["auto", "all_pairs", "pp_join", "group_join", "pp_join_bitmap"]);
    let is_count = case.random.below(4) == 0;
    let mut parameters = with(&[
        ("similarity", json!(similarity)),
        ("threshold", threshold),
        ("algorithm", json!(algorithm)),
    ]);
    if is_count {
        parameters.insert("output".to_owned(), json!("count"));
    }
    let inputs: &[&str] = if right.is_some() { &["left", "right"] } else { &["left"] };
    let rows = case.rows("set_similarity_join", inputs, &parameters);
    let mut pairs = Vec::new();
    for (l, a) in (0_u64..).zip(&left) {
        for (r, b) in (0_u64..).zip(right.as_ref().unwrap_or(&left)) {
            let overlap = a.intersection(b).count() as u64;
            let sizes = [a.len() as u64, b.len() as u64, overlap];
            if (right.is_some() || l < r) && is_similar(similarity, sizes, [num, den]) {
                pairs.push([l, r, overlap]);
            }
        }
    }
    if is_count {
        assert_eq!(numbers(&rows, ["count"]), [[pairs.len() as u64]]);
    } else {
        assert_eq!(numbers(&rows, ["left", "right", "overlap"]), pairs);
    }
}

fn frequent_pairs(case: &mut Case<'_>) {
    let baskets = case.sets("in", 150);
    let support = 1 + case.random.skewed(10);
    let layout = case.random.of(&["auto", "batmap", "bitmap", "sparse", "sliced"]);
    let is_triple = case.random.below(4) == 0;
    let mut parameters = with(&[("support", json!(support))]);
    if is_triple {
        parameters.insert("itemset".to_owned(), json!(3));
    } else {
        parameters.insert("layout".to_owned(), json!(layout));
    }
    let rows = case.rows("frequent_pairs", &["in"], &parameters);
    let mut counts: BTreeMap<Vec<u64>, u64> = BTreeMap::new();
    for basket in &baskets {
        let items: Vec<u64> = basket.iter().copied().collect();
        for (i, &a) in items.iter().enumerate() {
            for (j, &b) in items.iter().enumerate().skip(i + 1) {
                if is_triple {
                    items[j + 1..]
                        .iter()
                        .for_each(|&c| *counts.entry(vec![a, b, c]).or_default() += 1);
                } else {
                    *counts.entry(vec![a, b]).or_default() += 1;
                }
            }
        }
    }
    counts.retain(|_, count| *count >= support);
    let columns: &[&str] = if is_triple { &["left", "right", "third"] } else { &["left", "right"] };
    let found: BTreeMap<Vec<u64>, u64> = rows
        .iter()
        .map(|row| {
            let mut items: Vec<u64> =
                columns.iter().map(|c| row[c].as_u64().expect("as the case was made")).collect();
            items.sort_unstable();
            (items, row["support"].as_u64().expect("as the case was made"))
        })
        .collect();
    assert_eq!((found.len(), found), (rows.len(), counts));
}

fn conjunctive_query(case: &mut Case<'_>) {
    let documents = case.sets("documents", 200);
    let queries = case.sets("queries", 60);
    let is_count = case.random.below(3) == 0;
    let output = if is_count { "count" } else { "documents" };
    let batch = 1 + case.random.skewed(40);
    let parameters = with(&[("output", json!(output)), ("batch_queries", json!(batch))]);
    let mut rows = case.rows("conjunctive_query", &["documents", "queries"], &parameters);
    rows.sort_by_key(|row| row["query"].as_u64());
    assert_eq!(rows.len(), queries.len());
    for ((number, query), row) in (0_u64..).zip(&queries).zip(&rows) {
        let has = |document: &Set| query.is_subset(document);
        let found: Vec<u64> =
            (0..).zip(&documents).filter(|(_, document)| has(document)).map(|(id, _)| id).collect();
        // A query without terms asks for nothing.
        let found = if query.is_empty() { Vec::new() } else { found };
        let answer = if is_count { json!(found.len()) } else { json!(found) };
        assert_eq!((&row["query"], &row[output]), (&json!(number), &answer), "{query:?}");
    }
}

fn epsilon_join(case: &mut Case<'_>) {
    let dims = 1 + case.random.skewed(20);
    let count = case.random.skewed(150);
    let grid = 1 + case.random.skewed(12);
    let coordinate = |random: &mut Random| random.below(grid) as f32 * 0.25;
    let rows: Vec<Vec<f32>> =
        (0..count).map(|_| (0..dims).map(|_| coordinate(&mut case.random)).collect()).collect();
    let bytes: Vec<u8> = rows.iter().flatten().flat_map(|x| x.to_le_bytes()).collect();
    case.read("in", bytes, with(&[("format", json!("f32le")), ("dims", json!(dims))]));
    let epsilon = case.random.skewed(12) as f64 * 0.25;
    let algorithm = case.random.of(&["auto", "nested_loop", "directory"]);
    let output = case.random.of(&["pairs", "count", "partners", "first"]);
    let parameters = with(&[
        ("epsilon", json!(epsilon)),
        ("algorithm", json!(algorithm)),
        ("output", json!(output)),
    ]);
    let found = case.rows("epsilon_join", &["in"], &parameters);
    let mut pairs = Vec::new();
    for (l, a) in (0_u64..).zip(&rows) {
        for (r, b) in
            (0_u64..).zip(&rows).skip(usize::try_from(l).expect("as the case was made") + 1)
        {
            let difference = |(x, y): (&f32, &f32)| (f64::from(*x) - f64::from(*y)).powi(2);
            if a.iter().zip(b).map(difference).sum::<f64>() <= epsilon * epsilon {
                pairs.push([l, r]);
            }
        }
    }
    let ids = 0..count;
    match output {
        "pairs" => assert_eq!(numbers(&found, ["left", "right"]), pairs),
        "count" => assert_eq!(numbers(&found, ["count"]), [[pairs.len() as u64]]),
        "partners" => {
            let of = |id| pairs.iter().filter(|pair| pair.contains(&id)).count() as u64;
            let expected: Vec<_> = ids.map(|id| [id, of(id)]).collect();
            assert_eq!(numbers(&found, ["id", "partners"]), expected);
        }
        _ => {
            let first = ids.filter(|id| !pairs.iter().any(|[_, right]| right == id));
            assert_eq!(numbers(&found, ["id"]), first.map(|id| [id]).collect::<Vec<_>>());
        }
    }
}

#[test]
fn random_pipelines_answer_as_brute_force() {
    let number = |name: &str, default: u64| {
        std::env::var(name).map_or(default, |text| text.parse().expect("a number"))
    };
    let (first, cases) = (number("TROMMEL_SEED", 1), number("TROMMEL_CASES", CASES));
    let checks: [fn(&mut Case<'_>); 5] =
        [frequent_items, set_similarity_join, frequent_pairs, conjunctive_query, epsilon_join];
    for seed in first..first + cases {
        let files = Files::new();
        let mut case = Case { random: Random(seed), files: &files, stages: Vec::new() };
        let check = checks[usize::try_from(seed % 5).expect("as the case was made")];
        let checked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| check(&mut case)));
        assert!(checked.is_ok(), "seed {seed}: TROMMEL_SEED={seed} TROMMEL_CASES=1 repeats it");
    }
}
