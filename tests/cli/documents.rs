//! The commands that README.md and the pages of `docs` show, with their outputs.
//!
//! A block of the kind `console` holds commands after `$ `, each with its output, which has to be
//! that of the page; a line `…` stands for any lines. Commands of README.md, the guide and the
//! reference run in the repository. Those of a page of an operator run in an empty folder, in which
//! `example.json` is the last JSON block of the page that has stages. Commands that need other data
//! are in blocks of another kind.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::support::repository;

/// A block of code: its kind, and its lines.
fn blocks(page: &str) -> Vec<(&str, Vec<&str>)> {
    let (mut blocks, mut lines) = (Vec::new(), page.lines());
    while let Some(line) = lines.next() {
        if let Some(kind) = line.strip_prefix("```") {
            blocks.push((kind, lines.by_ref().take_while(|line| *line != "```").collect()));
        }
    }
    blocks
}

/// The commands of a block, and the lines after each.
fn commands<'a>(lines: &[&'a str]) -> Vec<(&'a str, Vec<&'a str>)> {
    let mut commands: Vec<(&str, Vec<&str>)> = Vec::new();
    for line in lines {
        match (line.strip_prefix("$ "), commands.last_mut()) {
            (Some(command), _) => commands.push((command, Vec::new())),
            (None, Some((_, shown))) => shown.push(line),
            (None, None) => panic!("a block begins with {line:?} instead of a command"),
        }
    }
    commands
}

/// Standard output and standard error of a command line.
fn output(command: &str, folder: &Path) -> String {
    let programs = Path::new(env!("CARGO_BIN_EXE_trommel")).parent().expect("a folder");
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").expect("text"));
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(format!("exec 2>&1; {command}")).current_dir(folder).env("PATH", path);
    // Help is wrapped at this width if it is set.
    shell.env_remove("COLUMNS");
    String::from_utf8(shell.output().expect("a shell").stdout).expect("text")
}

/// Whether the lines are those of a page, in which `…` stands for any lines.
fn fits(lines: &[&str], shown: &[&str]) -> bool {
    match shown {
        [] => lines.is_empty(),
        ["…", rest @ ..] => (0..=lines.len()).any(|skipped| fits(&lines[skipped..], rest)),
        [first, rest @ ..] => lines.first() == Some(first) && fits(&lines[1..], rest),
    }
}

/// Runs the commands of a page, and returns their number.
fn run_page(path: &Path, folder: &Path, takes_example: bool) -> usize {
    let page = fs::read_to_string(path).expect("a page");
    let mut count = 0;
    for (kind, lines) in blocks(&page) {
        let text = lines.join("\n");
        if kind == "json" && takes_example && text.contains("\"stages\"") {
            fs::write(folder.join("example.json"), text).expect("a file");
        } else if kind == "console" {
            for (command, shown) in commands(&lines) {
                let printed = output(command, folder);
                let lines: Vec<&str> = printed.lines().collect();
                assert!(fits(&lines, &shown), "{}: $ {command}\n{printed}", path.display());
                count += 1;
            }
        }
    }
    count
}

#[test]
fn commands_of_the_readme_the_guide_and_the_reference_print_what_is_shown() {
    for (page, least) in
        [("README.md", 1), ("docs/guide.md", 6), ("docs/reference/command-line.md", 9)]
    {
        let count = run_page(&repository().join(page), repository(), false);
        assert!(count >= least, "{page}: only {count} commands were found");
    }
}

#[test]
fn every_operator_has_a_page_whose_example_runs() {
    for entry in trommel::registry().entries() {
        let folder = tempfile::tempdir().expect("a folder");
        let page = repository().join(format!("docs/operators/{}.md", entry.name()));
        let count = run_page(&page, folder.path(), true);
        assert!(count >= 1, "{}: the page shows no command", entry.name());
    }
}

#[test]
fn pages_of_operators_have_the_parameters_of_the_schema() {
    let schema = trommel::schema(&trommel::registry());
    let stages = schema["properties"]["stages"]["items"]["oneOf"].as_array().expect("stages");
    for stage in stages {
        let name = stage["properties"]["operator"]["const"].as_str().expect("a name");
        let with = stage["properties"]["with"]["$ref"].as_str().expect("a reference");
        let with = schema.pointer(with.trim_start_matches('#')).expect("a definition");
        let properties = with["properties"].as_object();
        let mut parameters: Vec<&str> =
            properties.into_iter().flatten().map(|(name, _)| name.as_str()).collect();
        parameters.sort_unstable();
        let path = repository().join(format!("docs/operators/{name}.md"));
        let page = fs::read_to_string(path).expect("a page");
        let table = page.lines().skip_while(|line| *line != "## Parameters");
        let rows = table.take_while(|line| *line != "## Limits").map(|line| {
            line.strip_prefix("| `").and_then(|row| row.split_once('`')).map(|(name, _)| name)
        });
        let mut shown: Vec<&str> = rows.flatten().collect();
        shown.sort_unstable();
        assert_eq!(shown, parameters, "{name}");
        let words = with["properties"].as_object().map(|_| words_of(with, &schema));
        for word in words.unwrap_or_default() {
            assert!(page.contains(&format!("`{word}`")), "{name}: the page has no `{word}`");
        }
    }
}

/// The words that parameters allow.
fn words_of(value: &Value, schema: &Value) -> Vec<String> {
    match value {
        Value::Object(members) => {
            let word = members.get("const").and_then(Value::as_str).map(str::to_owned);
            let reference = members.get("$ref").and_then(Value::as_str);
            let target =
                reference.and_then(|reference| schema.pointer(reference.trim_start_matches('#')));
            let below = members.values().chain(target).flat_map(|value| words_of(value, schema));
            word.into_iter().chain(below).collect()
        }
        Value::Array(items) => items.iter().flat_map(|item| words_of(item, schema)).collect(),
        _ => Vec::new(),
    }
}
