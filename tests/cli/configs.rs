//! Configurations shipped with Trommel: each fits the published schema, and each runs.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fs;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::{Files, repository, trommel};

fn config(name: &str) -> Value {
    let path = repository().join("configs").join(name);
    serde_json::from_str(&fs::read_to_string(path).expect(name)).expect(name)
}

/// JSON objects of these lines.
fn objects(lines: &str) -> Vec<Value> {
    lines.lines().map(|line| serde_json::from_str(line).expect(line)).collect()
}

#[test]
fn the_schema_in_the_repository_is_what_the_binary_prints() {
    let path = repository().join("configs/pipeline.schema.json");
    let printed = trommel(["schema"]).end().ok();
    assert!(
        fs::read_to_string(path).is_ok_and(|stored| stored == printed),
        "write it again: trommel schema > configs/pipeline.schema.json"
    );
}

#[test]
fn the_schema_accepts_every_config_and_refuses_broken_ones() {
    let schema = config("pipeline.schema.json");
    let validator = jsonschema::validator_for(&schema).expect("a schema");
    let mut names = Vec::new();
    for entry in fs::read_dir(repository().join("configs")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if name.ends_with(".json") && name != "pipeline.schema.json" {
            let config = config(&name);
            assert_eq!(config["$schema"], "pipeline.schema.json", "{name}");
            assert!(validator.is_valid(&config), "{name}");
            names.push(name);
        }
    }
    names.sort();
    // A new configuration needs a test here that runs it.
    assert_eq!(
        names,
        [
            "access-log.json",
            "baskets.json",
            "co-occurring-words.json",
            "dedup-jsonl.json",
            "deduplicate.json",
            "filter-cores.json",
            "frequent-pairs.json",
            "heavy-filter.json",
            "latency.json",
            "near-duplicates.json",
            "near-vectors.json",
            "owners.json",
            "quickstart.json",
            "search-text.json",
            "set-join.json",
            "similar-files.json",
            "top-items.json",
            "trending.json",
            "zipf-live.json"
        ]
    );
    let broken: [fn(&mut Value); 6] = [
        |config| config["stages"] = json!([]),
        |config| config["stagse"] = json!([]),
        |config| config["stages"][0]["operator"] = json!("reed"),
        |config| config["stages"][0]["with"] = json!({}),
        |config| config["stages"][1]["with"]["counters"] = json!(0),
        |config| config["stages"][2]["with"]["format"] = json!("tables"),
    ];
    for (index, breaks) in broken.iter().enumerate() {
        let mut config = config("top-items.json");
        breaks(&mut config);
        assert!(!validator.is_valid(&config), "case {index}");
    }
}

#[test]
fn quickstart_prints_the_words_of_the_repository() {
    let table = trommel(["run", "configs/quickstart.json"]).end().ok();
    let words: Vec<&str> =
        table.lines().skip(2).filter_map(|l| l.split_whitespace().nth(1)).collect();
    assert_eq!(words.len(), 20, "{table}");
    assert!(words.contains(&"the") && words.contains(&"fn"), "{table}");
}

/// Counts of the file of `top-items.json`: item r * 2654435761 mod 1000003 for r = 0..200, max(1,
/// 400 / (r + 1)) times each, taken in strides of 701, which is coprime to their number.
fn items() -> Vec<u32> {
    let copies = |rank: u64| {
        let item = u32::try_from(rank * 2_654_435_761 % 1_000_003).expect("below the modulus");
        vec![item; usize::try_from((400 / (rank + 1)).max(1)).expect("at most 400")]
    };
    let sorted: Vec<u32> = (0..200).flat_map(copies).collect();
    (0..sorted.len()).map(|index| sorted[index * 701 % sorted.len()]).collect()
}

#[test]
fn top_items_counts_the_items_of_the_file() {
    let stored = fs::read(repository().join("configs/data/items.u32le")).unwrap();
    let items = items();
    assert!(stored == items.iter().flat_map(|item| item.to_le_bytes()).collect::<Vec<u8>>());
    let mut counts: HashMap<u32, u64> = HashMap::new();
    for item in items {
        *counts.entry(item).or_insert(0) += 1;
    }
    let mut expected: Vec<(u64, u32)> =
        counts.into_iter().map(|(item, count)| (count, item)).collect();
    expected.sort_unstable_by(|a, b| b.cmp(a));
    let rows = objects(&trommel(["run", "configs/top-items.json"]).end().ok());
    assert_eq!(rows.len(), 10);
    for (row, (count, item)) in rows.iter().zip(expected) {
        assert_eq!(
            (&row["item"], &row["count"], &row["error"]),
            (&json!(item), &json!(count), &json!(0))
        );
    }
}

#[test]
fn baskets_names_the_items_that_are_bought_together() {
    let text = fs::read_to_string(repository().join("configs/data/baskets.jsonl")).unwrap();
    let baskets = objects(&text);
    let baskets: Vec<BTreeSet<&str>> = baskets
        .iter()
        .filter_map(|basket| basket["items"].as_array())
        .map(|items| items.iter().map(|item| item.as_str().expect("a text")).collect())
        .collect();
    let mut supports: HashMap<[&str; 2], usize> = HashMap::new();
    for basket in &baskets {
        for &left in basket {
            for &right in basket.iter().filter(|&&right| left < right) {
                *supports.entry([left, right]).or_insert(0) += 1;
            }
        }
    }
    supports.retain(|_, support| 10 * *support >= baskets.len());
    assert!(supports.len() > 3, "{supports:?}");
    let table = trommel(["run", "configs/baskets.json"]).end().ok();
    let rows: Vec<Vec<&str>> =
        table.lines().skip(2).map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows.len(), supports.len());
    assert!(rows.iter().all(|row| row[2] == supports[&[row[0], row[1]]].to_string()), "{table}");
    let support = |row: &Vec<&str>| row[2].parse::<usize>().expect("a number");
    assert!(rows.is_sorted_by_key(|row| std::cmp::Reverse(support(row))), "{table}");
}

#[test]
fn access_log_counts_the_paths_of_failed_requests() {
    // Line r has the path r * r modulo 7, and two of five rows have failed.
    let mut counts: HashMap<String, u64> = HashMap::new();
    for row in (0..120).filter(|row| row % 5 >= 3) {
        *counts.entry(format!("/p{}", row * row % 7)).or_insert(0) += 1;
    }
    let mut expected: Vec<u64> = counts.values().copied().collect();
    expected.sort_unstable_by(|a, b| b.cmp(a));
    let rows = objects(&trommel(["run", "configs/access-log.json"]).end().ok());
    let found: Vec<u64> = rows.iter().map(|row| row["count"].as_u64().expect("a count")).collect();
    assert_eq!(found, expected[..3]);
    for row in rows {
        let path = row["item"].as_str().expect("a path");
        assert_eq!(counts[path], row["count"]);
    }
}

#[test]
fn latency_has_the_requests_of_each_minute_and_service() {
    let path = repository().join("configs/data/requests.csv");
    let mut times: BTreeMap<(String, String), Vec<u64>> = BTreeMap::new();
    for line in fs::read_to_string(path).unwrap().lines().skip(1) {
        let [time, service, ms] = line.split(',').collect::<Vec<_>>()[..] else { panic!("{line}") };
        let minute = time[..16].to_owned();
        times.entry((minute, service.to_owned())).or_default().push(ms.parse().unwrap());
    }
    let rows = objects(&trommel(["run", "configs/latency.json"]).end().ok());
    assert_eq!(rows.len(), times.len());
    for (row, ((minute, service), times)) in rows.iter().zip(&times) {
        assert!(row["minute"].as_str().expect("a time").starts_with(minute), "{row}");
        assert_eq!(row["service"], *service);
        assert_eq!(row["requests"], times.len());
        let mean = times.iter().sum::<u64>() as f64 / times.len() as f64;
        assert!((row["mean"].as_f64().expect("a mean") - mean).abs() < 1e-9, "{row}");
        // 99 of 100 requests are not slower, and the largest of fewer than 100 is that one.
        assert!(times.len() < 100);
        let largest = *times.iter().max().unwrap() as f64;
        assert_eq!(row["p99"].as_f64(), Some(largest), "{row}");
    }
}

#[test]
fn owners_have_the_team_of_each_slow_request() {
    let lines = |name: &str| -> Vec<Vec<String>> {
        let text = fs::read_to_string(repository().join("configs/data").join(name)).unwrap();
        let lines = text.lines().skip(1).map(|line| line.split(',').map(str::to_owned).collect());
        lines.collect()
    };
    let teams: BTreeMap<String, (String, String)> = lines("teams.csv")
        .into_iter()
        .map(|line| (line[0].clone(), (line[1].clone(), line[2].clone())))
        .collect();
    let mut expected = Vec::new();
    for line in lines("requests.csv") {
        let ms: u64 = line[2].parse().unwrap();
        if ms >= 400 {
            expected.push((line[0].clone(), ms, teams.get(&line[1])));
        }
    }
    assert!(
        expected.iter().any(|row| row.2.is_some()) && expected.iter().any(|row| row.2.is_none())
    );
    let rows = objects(&trommel(["run", "configs/owners.json"]).end().ok());
    assert_eq!(rows.len(), expected.len());
    for (row, (time, ms, team)) in rows.iter().zip(expected) {
        assert_eq!(row["time"].as_str(), Some(&time[..]), "{row}");
        assert_eq!(row["ms"], ms);
        assert_eq!(row["team"].as_str(), team.map(|team| &team.0[..]));
        let phone = team.map(|team| team.1.parse::<u64>().unwrap());
        assert_eq!(row["phone"].as_u64(), phone);
    }
}

/// Items of the stream of `trending.json`, written by a pipeline of their own.
fn trending_items() -> Vec<u32> {
    let generate = &config("trending.json")["stages"][0];
    let write = json!({ "id": "rows", "operator": "write", "inputs": ["items"], "with": { "format": "csv" } });
    let pipeline = json!({ "stages": [generate, write] }).to_string();
    let rows = trommel(["run", "-"]).input(pipeline).end().ok();
    rows.lines().skip(1).map(|row| row.parse().expect(row)).collect()
}

#[test]
fn trending_counts_each_window() {
    let items = trending_items();
    let rows = objects(&trommel(["run", "configs/trending.json"]).end().ok());
    let number = |row: &Value, name: &str| row[name].as_u64().expect(name);
    assert_eq!(rows.len(), 25);
    for (window, rows) in rows.chunks(5).enumerate() {
        let end = (window + 1) * 100_000;
        let start = end.saturating_sub(200_000);
        let seen = &items[start..end];
        for (row, rank) in rows.iter().zip(1..) {
            let borders = (&row["window_start"], &row["window_end"], &row["rank"]);
            assert_eq!(borders, (&json!(start), &json!(end), &json!(rank)));
            assert_eq!(row["complete"], json!(end - start == 200_000));
            let truth = seen.iter().filter(|item| row["item"] == **item).count() as u64;
            let (count, error) = (number(row, "count"), number(row, "error"));
            assert!((count - error..=count).contains(&truth), "{row}: {truth}");
            assert!(error <= seen.len() as u64 / 1_000);
        }
    }
}

#[test]
fn heavy_filter_splits_the_stream_and_loses_nothing() {
    let files = Files::new();
    let path = files.path("report.json");
    let table = trommel(["run", "configs/heavy-filter.json", "--report", &path]).end().ok();
    let report: Value = serde_json::from_str(&files.read("report.json")).unwrap();
    let stages = report["stages"].as_array().unwrap();
    let stage = |id: &str| stages.iter().find(|stage| stage["id"] == id).unwrap();
    let counts = table.lines().skip(2).filter_map(|line| line.split_whitespace().nth(2));
    let taken_out: u64 = counts.map(|count| count.parse::<u64>().unwrap()).sum();
    assert_eq!(stage("heavy")["taken_out"], taken_out, "{table}");
    assert_eq!(stage("rest")["items_in"].as_u64().unwrap() + taken_out, 2_000_000);
    assert!(taken_out > 1_000_000, "more than half of this stream is hot");
}

#[test]
fn filter_cores_count_two_streams_together() {
    let streams = ["north", "south"].map(|id| {
        let stages = config("filter-cores.json")["stages"].take();
        let stages = stages.as_array().unwrap();
        let generate = stages.iter().find(|stage| stage["id"] == id).unwrap();
        let write = json!({ "id": "rows", "operator": "write", "inputs": [id], "with": { "format": "csv" } });
        trommel(["run", "-"]).input(json!({ "stages": [generate, write] }).to_string()).end().ok()
    });
    let items: Vec<&str> = streams.iter().flat_map(|rows| rows.lines().skip(1)).collect();
    let rows = objects(&trommel(["run", "configs/filter-cores.json"]).end().ok());
    assert_eq!(rows.len(), 10);
    for row in &rows {
        let item = row["item"].to_string();
        let truth = items.iter().filter(|other| **other == item).count() as u64;
        let [count, error] = ["count", "error"].map(|name| row[name].as_u64().expect(name));
        assert!((count - error..=count).contains(&truth), "{row}: {truth}");
        assert!(error <= items.len() as u64 / 1_000);
    }
}

#[test]
fn set_join_finds_the_similar_baskets() {
    let stored = fs::read_to_string(repository().join("configs/data/baskets.sets")).unwrap();
    let baskets: Vec<HashSet<&str>> =
        stored.lines().map(|line| line.split(' ').collect()).collect();
    let mut expected = Vec::new();
    for (right, b) in baskets.iter().enumerate() {
        for (left, a) in baskets[..right].iter().enumerate() {
            let overlap = a.intersection(b).count();
            if 5 * overlap >= 4 * (a.len() + b.len() - overlap) {
                expected.push((left, right, overlap));
            }
        }
    }
    expected.sort_unstable();
    assert!(expected.len() > 20);
    let rows = objects(&trommel(["run", "configs/set-join.json"]).end().ok());
    let number = |row: &Value, name: &str| usize::try_from(row[name].as_u64().expect(name));
    let mut found: Vec<(usize, usize, usize)> = rows
        .iter()
        .map(|row| ["left", "right", "overlap"].map(|name| number(row, name).expect("small")))
        .map(|[left, right, overlap]| (left, right, overlap))
        .collect();
    found.sort_unstable();
    assert_eq!(found, expected);
    assert!(rows.iter().all(|row| row["similarity"].as_f64().is_some_and(|s| s >= 0.8)));
}

#[test]
fn near_vectors_are_those_of_all_pairs() {
    let data = repository().join("configs/data");
    let names = fs::read_to_string(data.join("terms.txt")).unwrap();
    let names: Vec<&str> = names.lines().collect();
    let file = fs::read(data.join("terms.npy")).unwrap();
    // The header of NumPy's files is padded to a multiple of 64 bytes, and ends with a newline.
    let header = 10 + usize::from(u16::from_le_bytes([file[8], file[9]]));
    assert_eq!((header % 64, file[header - 1]), (0, b'\n'));
    let coordinates: Vec<f64> = file[header..]
        .chunks_exact(4)
        .map(|bytes| f64::from(f32::from_le_bytes(bytes.try_into().unwrap())))
        .collect();
    let vectors: Vec<&[f64]> = coordinates.chunks_exact(coordinates.len() / names.len()).collect();
    let mut expected = BTreeSet::new();
    for (right, y) in vectors.iter().enumerate() {
        for (left, x) in vectors[..right].iter().enumerate() {
            let square: f64 = x.iter().zip(*y).fold(0.0, |sum, (a, b)| sum + (a - b) * (a - b));
            if square <= 0.85 * 0.85 {
                let distance = square.sqrt().to_string();
                expected.insert([distance, names[left].to_owned(), names[right].to_owned()]);
            }
        }
    }
    assert!(expected.len() > 5);
    let json = ["--set", "stages.print.with.format=jsonl"];
    let rows = trommel(["run", "configs/near-vectors.json"].into_iter().chain(json)).end().ok();
    let rows = objects(&rows);
    let text = |row: &Value, name: &str| row[name].as_str().expect(name).to_owned();
    let found: BTreeSet<[String; 3]> = rows
        .iter()
        .map(|row| {
            let distance = row["distance"].as_f64().expect("a number").to_string();
            [distance, text(row, "left_name"), text(row, "right_name")]
        })
        .collect();
    assert_eq!((found, rows.len()), (expected.clone(), expected.len()));
}

#[test]
fn frequent_pairs_are_those_of_all_pairs() {
    let text = fs::read_to_string(repository().join("configs/data/baskets.sets")).unwrap();
    let baskets: Vec<BTreeSet<u32>> = text
        .lines()
        .map(|line| line.split_whitespace().map(|item| item.parse().unwrap()).collect())
        .collect();
    let holding = |items: &[u32]| {
        baskets.iter().filter(|basket| items.iter().all(|item| basket.contains(item))).count()
    };
    let json = ["--set", "stages.rows.with.format=jsonl"];
    let rows = trommel(["run", "configs/frequent-pairs.json"].into_iter().chain(json)).end().ok();
    let rows = objects(&rows);
    let number = |row: &Value, name: &str| u32::try_from(row[name].as_u64().expect(name)).unwrap();
    let found: BTreeSet<[u32; 3]> =
        rows.iter().map(|row| ["left", "right", "support"].map(|name| number(row, name))).collect();
    let items: BTreeSet<u32> = baskets.iter().flatten().copied().collect();
    let pairs = items.iter().flat_map(|&a| items.range(a + 1..).map(move |&b| [a, b]));
    let supports = pairs.map(|[a, b]| [a, b, u32::try_from(holding(&[a, b])).unwrap()]);
    let least = baskets.len().div_ceil(20);
    let expected: BTreeSet<[u32; 3]> =
        supports.filter(|[_, _, support]| *support as usize >= least).collect();
    assert!(expected.len() > 20);
    assert_eq!((found, rows.len()), (expected.clone(), expected.len()));
    for row in rows {
        let [left, right] = ["left", "right"].map(|name| number(&row, name));
        let [both, one, other] = [holding(&[left, right]), holding(&[left]), holding(&[right])];
        let is_near =
            |name: &str, value: f64| (row[name].as_f64().expect(name) - value).abs() < 1e-9;
        assert!(is_near("left_confidence", both as f64 / one as f64), "{row}");
        assert!(is_near("right_confidence", both as f64 / other as f64), "{row}");
        let lift = (both * baskets.len()) as f64 / (one * other) as f64;
        assert!(is_near("lift", lift), "{row}");
    }
}

#[test]
fn co_occurring_words_are_words_of_one_paragraph() {
    let json = ["--set", "stages.print.with.format=jsonl"];
    let rows =
        trommel(["run", "configs/co-occurring-words.json"].into_iter().chain(json)).end().ok();
    let rows = objects(&rows);
    assert!(rows.len() > 20);
    for row in &rows {
        let [left, right] = ["left", "right"].map(|name| row[name].as_str().expect(name));
        assert!(left < right && !left.contains(' ') && row["support"].as_u64() > Some(1), "{row}");
    }
    assert!(rows.iter().any(|row| row["left"] == "the" || row["right"] == "the"));
}

#[test]
fn near_duplicates_names_paragraphs_and_where_they_are() {
    let table = trommel(["run", "configs/near-duplicates.json"]).end().ok();
    assert!(table.lines().count() > 12, "{table}");
    let cells = table.lines().skip(2).flat_map(|line| line.split("  "));
    assert!(cells.map(|cell| cell.trim().chars().count()).all(|width| width <= 48), "{table}");
    let json = ["--set", "stages.print.with.format=jsonl"];
    let rows = trommel(["run", "configs/near-duplicates.json"].into_iter().chain(json)).end().ok();
    for row in objects(&rows) {
        assert!(row["similarity"].as_f64().is_some_and(|similarity| similarity >= 0.8), "{row}");
        for side in ["left", "right"] {
            let text = |name: &str| row[format!("{side}_{name}")].as_str().expect(name);
            let number = row[format!("{side}_line_number")].as_u64().expect("a number");
            let before = usize::try_from(number).expect("small") - 1;
            let stored = fs::read_to_string(repository().join(text("path"))).unwrap();
            let stored = stored.lines().skip(before).collect::<Vec<_>>().join("\n");
            assert!(stored.starts_with(text("text")), "{row}");
        }
    }
}

#[test]
fn similar_files_come_with_their_paths() {
    let table = trommel(["run", "configs/similar-files.json"]).end().ok();
    assert!(table.lines().count() > 2, "{table}");
    for row in table.lines().skip(2) {
        let [similarity, left, right] = row.split_whitespace().collect::<Vec<_>>()[..] else {
            panic!("{row}")
        };
        assert!(similarity.parse::<f64>().is_ok_and(|similarity| similarity >= 0.5), "{row}");
        assert!(left != right, "{row}");
        assert!(repository().join(left).exists() && repository().join(right).exists(), "{row}");
    }
}

#[test]
fn search_text_prints_the_paths_of_files_with_all_words() {
    let lines = "Trommel pipeline\nno such wordatall\n";
    let rows = objects(&trommel(["run", "configs/search-text.json"]).input(lines).end().ok());
    assert_eq!(rows.len(), 2);
    for row in &rows {
        let paths = row["documents"].as_array().expect("paths");
        let line = lines.lines().nth(usize::try_from(row["query"].as_u64().unwrap()).unwrap());
        assert_eq!(row["line"].as_str(), line);
        assert_eq!(paths.is_empty(), row["query"] == 1, "{row}");
        for path in paths {
            let text = fs::read_to_string(repository().join(path.as_str().unwrap())).unwrap();
            let text = text.to_lowercase();
            assert!(text.contains("trommel") && text.contains("pipeline"), "{path}");
        }
    }
}

#[test]
fn deduplicate_lets_first_sets_pass() {
    let files = Files::new();
    let path = files.path("report.json");
    let rows = trommel(["run", "configs/deduplicate.json", "--report", &path]).end().ok();
    let sets = |rows: &str| -> Vec<(u64, HashSet<u64>)> {
        let set = |row: &Value| {
            let tokens = row["set"].as_array().expect("a set").iter().filter_map(Value::as_u64);
            (row["id"].as_u64().expect("an id"), tokens.collect())
        };
        objects(rows).iter().map(set).collect()
    };
    let mut whole = config("deduplicate.json");
    let stages = whole["stages"].as_array_mut().unwrap();
    stages.remove(1);
    stages[1]["inputs"] = json!(["sets"]);
    let all = sets(&trommel(["run", "-"]).input(whole.to_string()).end().ok());
    assert_eq!(all.len(), 20_000);
    let passed = sets(&rows);
    let ids: HashSet<u64> = passed.iter().map(|(id, _)| *id).collect();
    let mut dropped = 0;
    for (index, (id, set)) in all.iter().enumerate().step_by(37) {
        let is_similar = |(_, earlier): &(u64, HashSet<u64>)| {
            let common = earlier.intersection(set).count();
            4 * common >= 3 * (earlier.len() + set.len() - common)
        };
        let has_earlier = all[index.saturating_sub(4999)..index].iter().any(is_similar);
        assert_eq!(ids.contains(id), !has_earlier, "{id}");
        dropped += usize::from(has_earlier);
    }
    assert!(dropped > 20, "{dropped}");
    let report: Value = serde_json::from_str(&files.read("report.json")).unwrap();
    assert_eq!(report["stages"][1]["duplicates"], 20_000 - passed.len() as u64);
}

#[test]
fn a_threshold_may_be_a_fraction_and_must_be_within_reach() {
    let with = |threshold: &str| {
        let set = format!("stages.similar.with.threshold={threshold}");
        trommel(["run", "configs/set-join.json", "--set", &set]).end()
    };
    let sorted = |threshold| {
        let rows = with(threshold).ok();
        let mut rows: Vec<String> = rows.lines().map(str::to_owned).collect();
        rows.sort_unstable();
        rows
    };
    assert_eq!(sorted("0.75"), sorted("\"3/4\""));
    for (threshold, said) in [("1.5", "at most 1"), ("\"x\"", "expected a decimal"), ("-1", "-1")] {
        let ended = with(threshold);
        let is_said = ["stages[1].with.threshold: ", said].map(|text| ended.stderr.contains(text));
        assert!(ended.status == 2 && is_said == [true; 2], "{}", ended.stderr);
    }
}

#[test]
fn zipf_live_runs_until_ctrl_c_and_completes_its_rows() {
    let mut live =
        trommel(["run", "configs/zipf-live.json", "--set", "stages.top.with.every=20000"]).start();
    let first: Value = serde_json::from_str(&live.line()).expect("a row");
    assert_eq!(first["rank"], 1);
    live.signal(Signal::INT);
    let ended = live.end();
    assert_eq!(ended.status, 130, "{}", ended.stderr);
    // Rows come in tables of five, the last one included.
    let rows = objects(&ended.stdout);
    let ranks: Vec<u64> = rows.iter().map(|row| row["rank"].as_u64().unwrap()).collect();
    let expected: Vec<u64> = [2, 3, 4, 5]
        .into_iter()
        .chain([1, 2, 3, 4, 5].into_iter().cycle().take(ranks.len() - 4))
        .collect();
    assert_eq!(ranks, expected);
    assert_eq!(ranks.last(), Some(&5));
}
