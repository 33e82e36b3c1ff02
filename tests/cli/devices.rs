//! Joins that verify on a device: without a driver, on the stand-in driver, and on one that
//! fails.

use serde_json::{Value, json};
use trommel_shim::{Form, StandIn};

use crate::support::{Ended, Files, trommel};

/// Runs the example of a join with these parameters and environment; returns its report too.
fn join(parameters: &[(&str, &str)], environment: &[(&str, &str)]) -> (Ended, Value) {
    let files = Files::new();
    let report = files.path("report.json");
    let set = |(name, value): &(&str, &str)| format!("stages.similar.with.{name}={value}");
    let set: Vec<String> = parameters.iter().map(set).collect();
    let set = set.iter().flat_map(|change| ["--set", change]);
    let arguments = ["run", "configs/set-join.json", "--report", &report].into_iter().chain(set);
    let run = trommel(arguments);
    let ended = environment.iter().fold(run, |run, (name, value)| run.env(name, value)).end();
    (ended, serde_json::from_str(&files.read("report.json")).expect("JSON"))
}

/// The rows, in an order of their own.
fn rows(ended: Ended) -> Vec<String> {
    let mut rows: Vec<String> = ended.ok().lines().map(str::to_owned).collect();
    rows.sort();
    assert!(rows.len() > 10, "{rows:?}");
    rows
}

/// Variables of the stand-in driver.
type Settings = [(&'static str, &'static str)];

/// Environment of a process that finds the stand-in driver, with further variables.
fn with_driver(settings: &Settings) -> Vec<(&'static str, String)> {
    let folder =
        StandIn::new(Form::Plain).folder().to_str().expect("builds have text paths").to_owned();
    let mut environment = vec![("LD_LIBRARY_PATH", folder)];
    environment.extend(settings.iter().map(|(name, value)| (*name, (*value).to_owned())));
    environment
}

fn on_driver(parameters: &[(&str, &str)], settings: &Settings) -> (Ended, Value) {
    let environment = with_driver(settings);
    let environment: Vec<(&str, &str)> =
        environment.iter().map(|(name, value)| (*name, value.as_str())).collect();
    join(parameters, &environment)
}

const NO_DEVICE: &[(&str, &str)] = &[("TROMMEL_DEVICE", "cpu")];

#[test]
fn a_device_that_is_not_there_is_an_error_if_it_was_asked_for() {
    for (device, shown) in [("cuda", "cuda"), ("cuda:0", "cuda"), ("cuda:3", "cuda:3")] {
        let (ended, report) = join(&[("device", device)], NO_DEVICE);
        let said = ended.refused(1);
        let expected = format!(
            "stage `similar/verify` (set_similarity_join): `device` is \"{shown}\", but switched \
             off by TROMMEL_DEVICE=cpu"
        );
        assert!(said.contains(&expected), "{said}");
        assert!(report["error"].as_str().unwrap().contains(&expected), "{report}");
    }
    let is_gpu_wanted = std::env::var("TROMMEL_REQUIRE_CUDA").is_ok_and(|value| value == "1");
    if !is_gpu_wanted {
        let said = join(&[("device", "cuda")], &[]).0.refused(1);
        assert!(said.contains("no NVIDIA driver: libcuda.so.1 cannot be loaded"), "{said}");
    }
}

#[test]
fn auto_runs_on_the_cpu_and_the_report_says_so() {
    let expected = rows(join(&[("device", "cpu")], &[]).0);
    for parameters in [&[("device", "auto")][..], &[("verify", "b")], &[("verify", "cpu")]] {
        let (ended, report) = join(parameters, NO_DEVICE);
        assert_eq!(rows(ended), expected);
        assert_eq!(
            (&report["device"], &report["stages"][1]["waves_on_device"]),
            (&json!("cpu"), &json!(0))
        );
    }
    // The join is too small for the device to pay.
    let (ended, report) = on_driver(&[], &[]);
    assert_eq!(rows(ended), expected);
    assert_eq!(report["device"], "cpu");
}

#[test]
fn a_device_gives_the_same_rows() {
    let expected = rows(join(&[("device", "cpu")], &[]).0);
    for verify in ["auto", "a", "b", "c", "warp"] {
        let parameters = [("device", "cuda"), ("verify", verify), ("chunk_bytes", "400")];
        let (ended, report) = on_driver(&parameters, &[]);
        assert_eq!(rows(ended), expected, "{verify}");
        let stage = &report["stages"][1];
        assert_eq!(report["device"], "cuda");
        assert_eq!(stage["waves"], stage["chunks"]);
        let count = |name: &str| stage[name].as_u64().unwrap();
        // On several cores, one chunk opens the device while sets are read.
        assert!(count("chunks") - count("waves_on_device") <= 1, "{stage}");
        assert!(stage["overlap"].is_number() && stage["kernel_seconds"].is_number(), "{stage}");
        assert!(stage["bytes_to_device"].as_u64().unwrap() > 1000, "{stage}");
    }
}

#[test]
fn a_device_that_fails_is_left_with_auto_and_ends_the_run_with_cuda() {
    let expected = rows(join(&[("device", "cpu")], &[]).0);
    let failing = &[("STAND_IN_FAIL", "kernel:2:719")];
    let auto = [("verify", "b"), ("chunk_bytes", "400")];
    let (mut ended, report) = on_driver(&auto, failing);
    let said = std::mem::take(&mut ended.stderr);
    assert!(said.contains("the GPU failed; the CPU takes over"), "{said}");
    assert_eq!(rows(ended), expected);
    let stage = &report["stages"][1];
    assert_eq!((&stage["device_lost"], &stage["waves"]), (&json!(1), &stage["chunks"]));
    let cuda = [("device", "cuda"), ("chunk_bytes", "400")];
    let (ended, _) = on_driver(&cuda, failing);
    assert_eq!(ended.status, 1);
    let expected = "`device` is \"cuda\", and it failed: cu";
    assert!(ended.stderr.contains(expected), "{}", ended.stderr);
}

#[test]
fn several_devices_give_the_same_rows() {
    let expected = rows(join(&[("device", "cpu")], &[]).0);
    let two = &[("STAND_IN_DEVICES", "2")];
    for device in ["cuda:all", r#"["cuda:0", "cuda:1"]"#, r#"["cuda:1"]"#] {
        let (ended, report) = on_driver(&[("device", device), ("chunk_bytes", "400")], two);
        assert_eq!(rows(ended), expected, "{device}");
        let stage = &report["stages"][1];
        assert_eq!(stage["waves"], stage["chunks"]);
        let devices = stage["devices"].as_u64().unwrap();
        assert!((1..=2).contains(&devices), "{stage}");
        assert!(stage["overlap"].as_f64().unwrap() <= 1.0 && stage["devices_failed"].is_null());
    }
    let losing = &[("STAND_IN_DEVICES", "2"), ("STAND_IN_FAIL", "kernel:1:719:0")];
    let parameters = [("device", "cuda:all"), ("chunk_bytes", "400")];
    let (mut ended, report) = on_driver(&parameters, losing);
    let said = std::mem::take(&mut ended.stderr);
    assert!(said.contains("a GPU failed; the other GPUs take over"), "{said}");
    assert_eq!(rows(ended), expected);
    assert_eq!(report["stages"][1]["devices_failed"], 1);
    let all = &[("STAND_IN_DEVICES", "2"), ("STAND_IN_FAIL", "kernel:1:719:0,kernel:1:719:1")];
    let (ended, _) = on_driver(&parameters, all);
    let expected = "`device` is \"cuda:all\", and the last device failed: cu";
    assert!(ended.status == 1 && ended.stderr.contains(expected), "{}", ended.stderr);
}

#[test]
fn a_list_of_devices_names_devices_that_are_there_and_each_one_once() {
    let refused = |device: &str| {
        let pipeline = format!(
            r#"{{ "stages": [
            {{ "id": "in", "operator": "read", "with": {{ "paths": ["-"], "format": "sets" }} }},
            {{ "id": "similar", "operator": "set_similarity_join", "inputs": ["in"],
               "with": {{ "threshold": 0.8, "device": {device} }} }},
            {{ "id": "end", "operator": "discard", "inputs": ["similar"] }} ] }}"#
        );
        let environment = with_driver(&[("STAND_IN_DEVICES", "2")]);
        let check = trommel(["check", "-"]).input(pipeline);
        let check = environment.iter().fold(check, |run, (name, value)| run.env(name, value));
        check.end().refused(2)
    };
    let said = refused(r#"["cuda:0", "cuda:5"]"#);
    let expected = "`device`: \"cuda:5\" is not allowed here; there is no CUDA device 5: the driver \
                    shows 2";
    assert!(said.contains(expected), "{said}");
    let said = refused(r#"["cuda", "cuda:0"]"#);
    assert!(said.contains("\"cuda:0\" is named twice; name each device once"), "{said}");
    let said = refused("[]");
    assert!(said.contains("needs at least 1 element"), "{said}");
    let said = refused(r#"["cuda:0", "cpu"]"#);
    assert!(said.contains("with.device[1]: \"cpu\" is not allowed here; allowed: "), "{said}");
}

#[test]
fn what_the_device_rules_out_is_a_mistake_of_the_file() {
    let check = |verify: &str, device: &str| {
        let pipeline = format!(
            r#"{{ "stages": [
            {{ "id": "in", "operator": "read", "with": {{ "paths": ["-"], "format": "sets" }} }},
            {{ "id": "similar", "operator": "set_similarity_join", "inputs": ["in"],
               "with": {{ "threshold": 0.8, "verify": "{verify}", "device": "{device}" }} }},
            {{ "id": "end", "operator": "discard", "inputs": ["similar"] }} ] }}"#
        );
        trommel(["check", "-"]).input(pipeline).end().refused(2)
    };
    let said = check("a", "cpu");
    let expected = "stages[1].with.verify: `verify`: \"a\" is not allowed here; `device` \"cpu\" allows only \
                    \"auto\" and \"cpu\"";
    assert!(said.contains(expected), "{said}");
    let said = check("cpu", "cuda:1");
    assert!(said.contains("`device` \"cuda:1\" allows only \"auto\", \"a\", \"b\""), "{said}");
    let mode = "cuda\", \"mode\": \"deduplicate";
    let expected =
        "\"deduplicate\" on a device is not allowed here; duplicates are found on the CPU";
    assert!(check("auto", mode).contains(expected));
    let said = check("d", "auto");
    assert!(said.contains("\"d\" is not allowed here; allowed: "), "{said}");
    let said = check("auto", "gpu");
    assert!(said.contains("\"gpu\" is not allowed here; allowed: "), "{said}");
}
