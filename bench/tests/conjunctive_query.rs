//! `conjunctive-query` on the stand-in driver and without a device: every way gives the answers of
//! the processor, and all tables and figures are there. The measured times have no meaning here.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

use trommel_shim::{Form, StandIn};

const INDEXES: [&str; 2] = ["--indexes", "300:66000:30000,60:300:2000"];

fn conjunctive_query(devices: u32, arguments: &[&str]) -> String {
    let driver = StandIn::new(Form::Plain).devices(devices);
    let mut command: Command = driver.command(env!("CARGO_BIN_EXE_trommel-bench"));
    command.args(["conjunctive-query", "--queries", "50", "--rounds", "1"]);
    command.args(["--copy-bytes", "65536"]).args(arguments);
    let ended = command.output().unwrap();
    let said = String::from_utf8(ended.stdout).unwrap();
    assert!(ended.status.success(), "{said}{}", String::from_utf8_lossy(&ended.stderr));
    // Without the blanks that align columns.
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    said.lines().map(words).collect::<Vec<_>>().join("\n")
}

/// Names of the figures in a folder, without their endings. Every number in them is valid.
fn figures(folder: &Path) -> BTreeSet<String> {
    let name = |entry: fs::DirEntry| {
        let svg = fs::read_to_string(entry.path()).unwrap();
        assert!(svg.ends_with("</svg>\n") && !svg.contains("NaN") && !svg.contains("inf\""));
        entry.file_name().into_string().unwrap().replace(".svg", "")
    };
    fs::read_dir(folder).unwrap().map(|entry| name(entry.unwrap())).collect()
}

#[test]
fn every_way_gives_the_answers_of_the_processor() {
    let arguments = ["--only", "counts,device", "--batches", "1,20"];
    let said = conjunctive_query(1, &[&INDEXES[..], &arguments].concat());
    // Of two indexes: five ways with two sizes of batches, and a query a time.
    assert_eq!(said.matches("| count ").count(), 2 * (5 * 2 + 1), "{said}");
    assert_eq!(said.matches("| documents ").count(), 2 * 2 * 2, "{said}");
    // Ours in three ways.
    assert_eq!(said.matches("| one core, ").count(), 2 * 3, "{said}");
}

#[test]
fn without_a_device_the_processor_is_measured() {
    let said = conjunctive_query(0, &[&INDEXES[..], &["--only", "counts,device"]].concat());
    assert!(said.contains("processor only: "), "{said}");
    assert!(said.contains("| one core, ") && !said.contains("| documents "), "{said}");
}

#[test]
fn figures_of_the_paper_are_drawn_for_the_processor_and_a_device() {
    let folder = tempfile::tempdir().unwrap();
    let drawn = folder.path().to_str().unwrap();
    let arguments = ["--indexes", "60:300:2000", "--only", "paper", "--figures", drawn];
    // Few queries: the stand-in runs each kernel on the processor.
    let said = conjunctive_query(1, &[&arguments[..], &["--processor-queries", "8"]].concat());
    for way in ["one core", "GPU", "GPU, plain ids, block a query"] {
        for order in ["as they come", "semi-sorted"] {
            let rows = said.matches(&format!("| {way}, {order} | ")).count();
            assert_eq!(rows, 9, "{way}, {order}: {said}");
        }
    }
    assert_eq!(said.matches("| one a ").count(), 2, "{said}");
    let names = ["response", "runtime"];
    let names = names.map(|name| format!("conjunctive-query-synthetic-60-300-{name}"));
    assert_eq!(figures(folder.path()), names.into());
}

#[test]
fn the_operator_answers_under_loads() {
    let arguments = ["--indexes", "60:300:2000", "--only", "load"];
    let loads = ["--load", "0.5,2000", "--load-batches", "1,32", "--cores", "1,0"];
    let short = ["--load-seconds", "0.02", "--load-rounds", "2", "--deadline-ms", "1"];
    let said = conjunctive_query(0, &[&arguments[..], &loads, &short].concat());
    // A row for the peak and one for each load, by batches and cores.
    assert_eq!(said.matches("| all |").count(), 4, "{said}");
    assert_eq!(said.matches("| 0.5 |").count(), 4, "{said}");
    assert_eq!(said.matches("| 2000 | 2000 |").count(), 4, "{said}");
}

#[test]
fn paragraphs_of_a_folder_are_indexed() {
    let folder = tempfile::tempdir().unwrap();
    let mut pages = String::new();
    for number in 0..400 {
        let [a, b, c] = [2, 3, 5].map(|divisor| number % divisor);
        writeln!(pages, "<p>all two{a} three{b} <b>five</b>{c} and {number}").unwrap();
    }
    fs::write(folder.path().join("pages.html"), pages).unwrap();
    let text = ["--text", folder.path().to_str().unwrap()];
    let said = conjunctive_query(0, &[&text[..], &["--only", "counts"]].concat());
    assert!(said.contains("text: 400 documents, "), "{said}");
    assert!(said.contains("| one core, one batch "), "{said}");
}

#[test]
fn a_folder_without_text_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_trommel-bench"));
    command.arg("conjunctive-query").arg("--text").arg(folder.path());
    let ended = command.output().unwrap();
    assert!(!ended.status.success());
    assert!(String::from_utf8_lossy(&ended.stdout).contains("no text was found in its files"));
}
