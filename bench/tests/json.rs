//! `--json`: the rows of all tables in a file, with numbers as numbers.

use std::fs;
use std::process::Command;

use serde_json::Value;

#[test]
fn rows_of_tables_are_written_with_their_columns() {
    let folder = tempfile::tempdir().unwrap();
    let sets = ["1 2 3 4", "1 2 3 5", "7 8", "7 8", "2 3 4 1 9"].join("\n");
    fs::write(folder.path().join("small.txt"), sets).unwrap();
    let path = folder.path().join("tables.json");
    let mut command = Command::new(env!("CARGO_BIN_EXE_trommel-bench"));
    command.args(["set-join", "--thresholds", "60,50", "--algorithms", "auto,pp_join"]);
    command.args(["--runs", "1", "--json"]).arg(&path).arg("--data").arg(folder.path());
    let ended = command.output().unwrap();
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    let said: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    assert!(said["command"].as_str().unwrap().starts_with("set-join --thresholds"), "{said}");
    let joins = said["tables"][0].as_array().unwrap();
    let names: Vec<&str> =
        joins.iter().map(|row| row["threshold, algorithm"].as_str().unwrap()).collect();
    let starts = ["60 auto", "60 pp_join", "50 auto", "50 pp_join"];
    assert!(names.iter().zip(starts).all(|(name, start)| name.starts_with(start)), "{names:?}");
    // {1, 2, 3, 4} is 3/5 of {1, 2, 3, 5}, 4/5 of {1, 2, 3, 4, 9}, whose quotient with the other is
    // 1/2.
    let results: Vec<u64> = joins.iter().map(|row| row["results"].as_u64().unwrap()).collect();
    assert_eq!(results, [3, 3, 4, 4], "{said}");
    assert!(joins.iter().all(|row| row["seconds"].is_f64()), "{said}");
    // The seconds by threshold: a row for each algorithm, and the quotient.
    assert_eq!(said["tables"][1].as_array().unwrap().len(), 3, "{said}");
}
