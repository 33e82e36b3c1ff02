//! The programs of the folder `examples` run, and print what they promise.

use std::fs;
use std::path::Path;
use std::process::Command;

/// Each example, and lines that it prints.
const EXAMPLES: &[(&str, &[&str])] = &[
    ("close_vectors", &["left_name,right_name,distance", "lorry,truck,0.09999996423721313"]),
    ("json_pipeline", &["   1  to        3      0", "12 words"]),
    ("live_top", &["; 20000000 items"]),
    ("market_baskets", &["   2    100        8"]),
    ("merging_states", &["item 7: 20000 to 20000 of 200000 items"]),
    ("near_duplicates", &["similarity  left_path", "kernels/cuda/"]),
    ("own_operator", &["100 of 1000 rows passed"]),
    ("own_sink", &["1000 lines arrived"]),
    ("own_source", &["rank,item,count,error", "1,0,4,0"]),
    ("search", &["{\"line\":\"epsilon_join\",\"documents\":[\"configs/near-vectors.json\""]),
    ("top_talkers", &["   1  "]),
];

/// Maximum lines of an example: a reader sees it at one glance.
const LINES_MAX: usize = 59;

#[test]
fn every_example_runs_and_prints_what_it_promises() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    // Cargo builds examples beside the tests.
    let test = std::env::current_exe().unwrap();
    let built =
        test.parent().and_then(Path::parent).expect("a folder of the build").join("examples");
    for (name, lines) in EXAMPLES {
        let ended = Command::new(built.join(name)).current_dir(root).output().expect(name);
        let (text, said) = (String::from_utf8_lossy(&ended.stdout), ended.stderr);
        assert!(ended.status.success(), "{name}: {text}{}", String::from_utf8_lossy(&said));
        for line in *lines {
            assert!(text.contains(line), "{name} does not print {line:?}:\n{text}");
        }
    }
}

#[test]
fn examples_are_short_and_all_of_them_are_run() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let lines = fs::read_to_string(&path).unwrap().lines().count();
        assert!(lines <= LINES_MAX, "{} has {lines} lines", path.display());
        names.push(path.file_stem().unwrap().to_str().unwrap().to_owned());
    }
    names.sort();
    assert!(names.iter().eq(EXAMPLES.iter().map(|(name, _)| name)), "{names:?}");
}
