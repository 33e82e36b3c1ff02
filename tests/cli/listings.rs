//! Listings: operators, schema, devices, completions, versions.

use std::fs;
use std::path::Path;
use std::process::Command;

use trommel_shim::{Form, StandIn};

use crate::support::trommel;

#[test]
fn operators_are_listed_with_summaries() {
    let list = trommel(["operators"]).end().ok();
    for name in [
        "aggregate",
        "clusters",
        "discard",
        "frequent_items",
        "generate",
        "heavy_filter",
        "lookup",
        "read",
        "set_similarity_join",
        "tokenize",
        "union",
        "write",
    ] {
        let line = list.lines().find(|line| line.starts_with(&format!("{name} ")));
        assert!(line.is_some_and(|line| line.len() > 30), "{name}: {list}");
    }
}

#[test]
fn an_operator_is_listed_with_its_parameters() {
    let generate = trommel(["operators", "generate"]).end().ok();
    assert!(generate.starts_with("generate: "), "{generate}");
    for expected in [
        "\n  alphabet      whole number from 1 to 268435456, default 1000000\n",
        "\n                Number of distinct items.\n",
        "\n  items         whole number from 0, optional\n",
        "\n  kind          one of the words below, default zipf\n",
        "\n                  zipf     Items with a Zipf distribution",
        "\n  skew          number from 0 to 10, default 1.0\n",
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
fn devices_are_the_cpu_and_why_there_is_no_gpu() {
    let list = |variable: &str| trommel(["devices"]).env("TROMMEL_DEVICE", variable).end();
    let devices = trommel(["devices"]).env("TROMMEL_ISA", "portable").end().ok();
    assert!(
        devices.starts_with("CPU    portable instructions; this machine has scalar, portable"),
        "{devices}"
    );
    let last = devices.lines().last().expect("three lines");
    let is_gpu_wanted = std::env::var("TROMMEL_REQUIRE_CUDA").is_ok_and(|value| value == "1");
    let no_driver = "GPUs   none: no NVIDIA driver: libcuda.so.1 cannot be loaded";
    assert!(is_gpu_wanted || last == no_driver, "{devices}");
    assert!(list("cpu").ok().ends_with("GPUs   none: switched off by TROMMEL_DEVICE=cpu\n"));
    let said = list("gpu").refused(2);
    assert!(said.contains("TROMMEL_DEVICE is \"gpu\"; allowed are \"auto\" and \"cpu\""), "{said}");
}

#[test]
fn devices_of_a_driver_are_listed() {
    let driver = |settings: &[(&str, &str)]| {
        let stand_in = StandIn::new(Form::Plain);
        let folder = stand_in.folder().to_str().expect("folders of builds are text");
        let start = trommel(["devices"]).env("LD_LIBRARY_PATH", folder);
        settings.iter().fold(start, |run, (name, value)| run.env(name, value)).end().ok()
    };
    let line = "stand-in on the CPU, capability 9.0, 2 multiprocessors, 1024 MiB; \
                the driver is for CUDA 13.0\n";
    let two = driver(&[("STAND_IN_DEVICES", "2")]);
    assert!(two.ends_with(&format!("GPUs   0: {line}       1: {line}")), "{two}");
    let none = driver(&[("STAND_IN_DEVICES", "0")]);
    assert!(none.ends_with("GPUs   none: the NVIDIA driver shows no CUDA device\n"), "{none}");
    let old = driver(&[("STAND_IN_CAPABILITY", "61")]);
    assert!(old.contains("\nGPUs   0: not usable: stand-in on the CPU is too old: "), "{old}");
    let failing = driver(&[("STAND_IN_FAIL", "cuDevicePrimaryCtxRetain:1:46")]);
    assert!(
        failing.contains("\nGPUs   0: not usable: cuDevicePrimaryCtxRetain failed: "),
        "{failing}"
    );
}

#[test]
fn the_binary_needs_no_cuda_library() {
    let output = Command::new("ldd").arg(env!("CARGO_BIN_EXE_trommel")).output();
    let libraries = String::from_utf8(output.expect("ldd is there").stdout).expect("text");
    assert!(libraries.contains("libc.so"), "{libraries}");
    assert!(!libraries.contains("cuda") && !libraries.contains("nvidia"), "{libraries}");
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

/// Command lines of the examples in a help text.
fn examples(help: &str) -> impl Iterator<Item = &str> {
    let lines = help.lines().skip_while(|line| *line != "Examples:").skip(1);
    let lines = lines.take_while(|line| line.starts_with("  ")).map(str::trim);
    lines.map(|line| line.split_once("  ").map_or(line, |(command, _)| command))
}

#[test]
fn the_examples_of_every_help_run() {
    let folder = tempfile::tempdir().expect("a folder");
    let pipeline = r#"{ "stages": [
        { "id": "lines", "operator": "read", "with": { "paths": ["access.log"] } },
        { "id": "top", "operator": "frequent_items", "inputs": ["lines"], "with": { "item": "line" } },
        { "id": "rows", "operator": "write", "inputs": ["top"] } ] }"#;
    fs::create_dir(folder.path().join("pipelines")).expect("a folder");
    for (name, text) in [
        ("access.log", "10.0.0.1 /a\n10.0.0.2 /b\n10.0.0.1 /a\n"),
        ("access.log.1", "10.0.0.3 /a\n"),
        ("access.jsonl", "{\"host\": \"a.org\", \"status\": 503}\n"),
        ("web.log", "::1 - - [01/Mar/2026:12:00:00 +0000] \"GET / HTTP/1.1\" 200 7\n"),
        ("titles.txt", "A river of gravel\nRiver of a gravel\n"),
        ("corpus.jsonl", "{\"text\": \"A river\", \"title\": \"one\"}\n"),
        ("corpus.csv", "title\nA river of gravel\n"),
        ("book.txt", "A river of gravel\n"),
        ("pipeline.json", pipeline),
        ("pipelines/top.json", pipeline),
    ] {
        fs::write(folder.path().join(name), text).expect("a file");
    }
    let programs = Path::new(env!("CARGO_BIN_EXE_trommel")).parent().expect("a folder");
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").expect("text"));
    let mut count = 0;
    for command in ["", "run", "check", "explain", "top", "dedup", "eval", "operators"] {
        let help = trommel(command.split_whitespace().chain(["--help"])).end().ok();
        for example in examples(&help) {
            // Another test may have the port.
            let example = example.replace(":8080", ":0");
            let mut shell = Command::new("sh");
            shell.args(["-c", &example]).current_dir(folder.path()).env("PATH", &path);
            let ended = shell.output().expect("a shell");
            let said = String::from_utf8_lossy(&ended.stderr);
            // What goes to a file leaves nothing for standard output.
            let has_output =
                !ended.stdout.is_empty() || example.contains('>') || said.contains("rows");
            assert!(ended.status.success() && has_output, "{example}: {said}");
            count += 1;
        }
    }
    assert!(count >= 18, "only {count} examples were found");
}

#[test]
fn lists_in_the_parameters_have_their_words() {
    let pairs = trommel(["operators", "frequent_pairs"]).end().ok();
    assert!(pairs.contains("  measures    list of the words below, optional\n"), "{pairs}");
    assert!(pairs.contains("                confidence  `left_confidence`"), "{pairs}");
}

#[test]
fn listings_without_a_terminal_have_lines_of_80_columns() {
    for entry in ::trommel::registry().entries() {
        let name = entry.name();
        let text = trommel(["operators", name]).end().ok();
        let long: Vec<&str> = text.lines().filter(|line| line.chars().count() > 80).collect();
        assert!(long.is_empty(), "{name}: {long:#?}");
    }
}
