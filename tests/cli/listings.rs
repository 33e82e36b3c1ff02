//! What there is: operators, schema, devices, completions, versions.

use crate::support::trommel;

#[test]
fn operators_are_listed_with_summaries() {
    let list = trommel(["operators"]).end().ok();
    for name in
        ["discard", "frequent_items", "generate", "heavy_filter", "read", "tokenize", "write"]
    {
        let line = list.lines().find(|line| line.starts_with(&format!("{name} ")));
        assert!(line.is_some_and(|line| line.len() > 30), "{name}: {list}");
    }
}

#[test]
fn an_operator_is_listed_with_its_parameters() {
    let generate = trommel(["operators", "generate"]).end().ok();
    assert!(generate.starts_with("generate: "), "{generate}");
    for expected in [
        "\n  alphabet  whole number from 1 to 268435456, default 1000000\n            How many distinct",
        "\n  items     whole number from 0, optional\n",
        "\n  kind      one of the words below, ",
        "\n              zipf  Items whose frequency falls with their rank",
        "\n  skew      number from 0 to 10, default 1.0\n",
    ] {
        assert!(generate.contains(expected), "{expected:?} in {generate}");
    }
    let read = trommel(["operators", "read"]).end().ok();
    assert!(read.contains("\n\n  paths           list of texts, required\n"), "{read}");
    let discard = trommel(["operators", "discard"]).end().ok();
    assert!(discard.ends_with("\n\nIt has no parameters.\n"), "{discard}");
}

#[test]
fn a_misspelt_operator_is_corrected() {
    let said = trommel(["operators", "reed"]).end().refused(2);
    assert!(said.contains("a similar value exists: 'read'"), "{said}");
}

#[test]
fn devices_are_the_cpu_and_no_gpu() {
    let devices = trommel(["devices"]).env("TROMMEL_ISA", "portable").end().ok();
    assert!(
        devices.starts_with("CPU    portable instructions; this machine has scalar, portable"),
        "{devices}"
    );
    assert!(devices.ends_with("GPUs   none: this version has no CUDA support\n"), "{devices}");
}

#[test]
fn completions_know_commands_and_options() {
    for shell in ["bash", "zsh", "fish"] {
        let script = trommel(["completions", shell]).end().ok();
        assert!(script.contains("explain") && script.contains("listen"), "{shell}");
    }
}

#[test]
fn bad_usage_is_told_from_help() {
    let version = trommel(["--version"]).end().ok();
    assert_eq!(version, format!("trommel {}\n", env!("CARGO_PKG_VERSION")));
    assert!(trommel(["help", "run"]).end().ok().contains("--listen"));
    for arguments in [&[][..], &["rum"], &["run"], &["check"], &["run", "x", "--listen", "nowhere"]]
    {
        trommel(arguments).end().refused(2);
    }
}
