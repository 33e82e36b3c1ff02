//! `run`: overrides on the command line, reports, and the places of output.

use serde_json::{Value, json};

use crate::support::{Files, trommel};

/// Report of a run of the example with these further arguments, and its exit.
fn report(arguments: &[&str]) -> (i32, Value) {
    let files = Files::new();
    let path = files.path("report.json");
    let common = ["run", "configs/top-items.json", "--report", &path];
    let ended = trommel(common.iter().chain(arguments)).end();
    (ended.status, serde_json::from_str(&files.read("report.json")).expect("JSON"))
}

#[test]
fn values_of_the_file_can_be_replaced() {
    let changes = ["stages.top.with.n=2", "stages[2].with.format=csv"];
    let rows = trommel(["run", "configs/top-items.json", "--set", changes[0], "--set", changes[1]]);
    assert_eq!(rows.end().ok(), "rank,item,count,error\n1,0,400,0\n2,427799,200,0\n");
}

#[test]
fn results_go_where_the_pipeline_says() {
    let files = Files::new();
    let path = files.path("rows.jsonl");
    let change = format!("stages.print.with.path={path}");
    let ended = trommel(["run", "configs/top-items.json", "--set", &change]).end();
    assert_eq!(ended.ok(), "");
    assert_eq!(files.read("rows.jsonl").lines().count(), 10);
}

#[test]
fn a_report_has_what_every_stage_counted() {
    let one = ["--set", "stages.top.workers=1", "--set", "stages.print.workers=1"];
    let (status, report) = report(&one);
    assert_eq!(status, 0);
    assert_eq!((&report["pipeline"], &report["device"]), (&json!("top-items"), &json!("cpu")));
    assert!(report["wall_seconds"].as_f64().unwrap() > 0.0);
    assert_eq!(report.get("error"), None);
    let stages = report["stages"].as_array().unwrap();
    let names: Vec<_> = stages
        .iter()
        .map(|s| (s["id"].as_str().unwrap(), s["operator"].as_str().unwrap()))
        .collect();
    assert_eq!(names, [("items", "read"), ("top", "frequent_items"), ("print", "write")]);
    let items: Vec<_> = stages
        .iter()
        .map(|s| (s["items_in"].as_u64().unwrap(), s["items_out"].as_u64().unwrap()))
        .collect();
    assert_eq!(items, [(0, 2268), (2268, 10), (10, 0)]);
    assert_eq!((&stages[0]["files"], &stages[0]["skipped"]), (&json!(1), &json!(0)));
    for stage in stages {
        for name in ["busy_seconds", "blocked_seconds", "idle_seconds", "items_per_second"] {
            assert!(stage[name].as_f64().unwrap() >= 0.0, "{name}");
        }
        let latency = |name: &str| stage["latency_ms"][name].as_f64().unwrap();
        assert!(latency("p50") <= latency("p99") && latency("p99") <= latency("max") * 1.01);
        assert_eq!(stage.get("parts"), None);
        assert_eq!(
            (&stage["workers"], &stage["serial_seconds"]),
            (&json!(1), &stage["busy_seconds"])
        );
    }
    assert!(stages[1]["items_per_second"].as_f64().unwrap() > 0.0);
    for edge in report["edges"].as_array().unwrap() {
        assert!(edge["from"].is_string() && edge["to"].is_string());
        assert_eq!((&edge["depth"], &edge["bytes"]), (&json!(0), &json!(0)));
        assert!(edge["depth_max"].as_u64().unwrap() >= 1);
    }
}

#[test]
fn a_report_adds_up_the_parts_of_a_stage() {
    let (status, report) = report(&["--set", "stages.top.with.algorithm=parallel_filter"]);
    assert_eq!(status, 0);
    let top = &report["stages"][1];
    assert_eq!((&top["items_in"], &top["items_out"]), (&json!(2268), &json!(10)));
    let parts = top["parts"].as_array().unwrap();
    assert_eq!((&parts[0]["name"], &parts[1]["name"]), (&json!("filter"), &json!("counter")));
    assert_eq!((&parts[0]["items_in"], &parts[1]["items_out"]), (&json!(2268), &json!(10)));
    let sum = parts.iter().map(|part| part["busy_seconds"].as_f64().unwrap()).sum::<f64>();
    assert!((top["busy_seconds"].as_f64().unwrap() - sum).abs() < 1e-6);
}

#[test]
fn a_report_adds_up_the_workers_of_a_stage() {
    let (status, report) = report(&["--set", "stages.top.workers=3"]);
    assert_eq!(status, 0);
    let top = &report["stages"][1];
    assert_eq!((&top["items_in"], &top["items_out"]), (&json!(2268), &json!(10)));
    assert_eq!((&top["workers"], &top["observed"]), (&json!(3), &json!(2268)));
    let parts = top["parts"].as_array().unwrap();
    let names: Vec<_> = parts.iter().map(|part| part["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["count 1", "count 2", "count 3", "merge"]);
    assert_eq!(top["serial_seconds"], parts[3]["busy_seconds"]);
}

#[test]
fn a_failed_run_is_reported_with_its_error() {
    let files = Files::new();
    let cut = files.write("cut", [1, 0, 0, 0, 9]);
    let (status, report) = report(&["--set", &format!("stages.items.with.paths=[\"{cut}\"]")]);
    assert_eq!(status, 1);
    let error = report["error"].as_str().unwrap();
    assert!(
        error.starts_with("stage `items` (read): ")
            && error.contains("incomplete item at byte 4: 1 of 4 bytes"),
        "{error}"
    );
    assert_eq!(report["stages"][0]["id"], "items");
}

#[test]
fn a_report_that_cannot_be_written_is_said_before_the_run() {
    let said =
        trommel(["run", "configs/top-items.json", "--report", "no/such/report"]).end().refused(2);
    assert_eq!(said, "error: cannot write no/such/report: there is no folder no/such\n");
}
