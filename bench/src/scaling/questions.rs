//! The questions: a command line of `trommel` with its files, and the right answer.

use std::fs::File;
use std::io::{self, Read as _, Seek as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use super::counts::{COUNTERS, Exact, ROWS, Row, Unit};
use super::data::Data;
use super::machine::FirstCores;
use super::samples::Sampled;
use crate::runner::turns::timed;

/// Sets with both items of a frequent pair.
const SUPPORT: u64 = 100;

/// A row of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Question {
    /// `trommel top --by words` of a log.
    Words,
    /// `trommel top --by field=1` of the log.
    Field,
    /// `trommel top` of the lines of the log.
    Lines,
    /// `frequent_items` of integers of 32 bits.
    Integers,
    /// `set_similarity_join` with a similarity of .5.
    Sets,
    /// `frequent_pairs` with a support of 100.
    Pairs,
    /// `epsilon_join` of vectors of 8 coordinates.
    Vectors,
    /// `conjunctive_query`, with the sets as documents.
    Queries,
}

/// A question with its files.
#[derive(Debug)]
pub(super) struct Case {
    pub(super) files: Vec<PathBuf>,
    /// Bytes of all files.
    pub(super) bytes: u64,
    /// Arguments of the command.
    pub(super) command: Vec<String>,
    answer: Answer,
}

/// What is known of the right answer.
#[derive(Debug)]
enum Answer {
    Counts(Exact),
    Rows(Sampled),
}

impl Question {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Words => "top --by words",
            Self::Field => "top --by field=1",
            Self::Lines => "top, lines",
            Self::Integers => "frequent items",
            Self::Sets => "set join, .5",
            Self::Pairs => "pairs, 100",
            Self::Vectors => "vectors, 8 dims",
            Self::Queries => "queries",
        }
    }

    /// The name that peers know, if they have this question.
    pub(super) fn name_for_peers(self) -> Option<&'static str> {
        match self {
            Self::Words => Some("words"),
            Self::Field => Some("field"),
            Self::Lines => Some("lines"),
            Self::Integers => Some("integers"),
            Self::Pairs => Some("pairs"),
            Self::Sets | Self::Vectors | Self::Queries => None,
        }
    }

    /// Makes the files, the command and the right answer.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub(super) fn case(self, data: &Data) -> io::Result<Case> {
        let top = |unit, by: &str| {
            let (path, exact) = data.log(unit)?;
            let (rows, counters) = (ROWS.to_string(), COUNTERS.to_string());
            let command = ["top", "--quiet", "--json", "-n", &rows, "-k", &counters, "--by", by];
            let command = command.map(str::to_owned).into_iter().chain([text(&path)?]).collect();
            Case::new(vec![path], command, Answer::Counts(exact))
        };
        match self {
            Self::Words => top(Unit::Words, "words"),
            Self::Field => top(Unit::FirstField, "field=1"),
            Self::Lines => top(Unit::Line, "line"),
            Self::Integers => {
                let (path, exact) = data.integers()?;
                let with = json!({ "counters": COUNTERS, "n": ROWS });
                let last = json!({ "format": "jsonl" });
                let stages =
                    [read("read", &path, "u32le")?, stage("frequent_items", &["read"], with)];
                pipeline(data, "integers", &stages, last, vec![path], Answer::Counts(exact))
            }
            Self::Sets => {
                let (path, sets) = data.sets()?;
                let with = json!({ "threshold": 0.5, "device": "cpu" });
                let stages =
                    [read("read", &path, "sets")?, stage("set_similarity_join", &["read"], with)];
                let answer = Answer::Rows(Sampled::similar_sets(sets));
                pipeline(data, "sets", &stages, csv(&["left", "right"]), vec![path], answer)
            }
            Self::Pairs => {
                let (path, sets) = data.sets()?;
                let with = json!({ "support": SUPPORT, "device": "cpu" });
                let stages =
                    [read("read", &path, "sets")?, stage("frequent_pairs", &["read"], with)];
                let answer = Answer::Rows(Sampled::frequent_pairs(sets, SUPPORT));
                let last = csv(&["left", "right", "support"]);
                pipeline(data, "pairs", &stages, last, vec![path], answer)
            }
            Self::Vectors => vectors(data),
            Self::Queries => {
                let (documents_path, documents) = data.sets()?;
                let (path, queries) = data.queries(documents)?;
                let with = json!({ "output": "count", "device": "cpu" });
                let inputs = ["documents", "queries"];
                let stages = [
                    read("documents", &documents_path, "sets")?,
                    read("queries", &path, "sets")?,
                    stage("conjunctive_query", &inputs, with),
                ];
                let answer = Answer::Rows(Sampled::query_counts(documents, &queries));
                let files = vec![documents_path, path];
                pipeline(data, "queries", &stages, csv(&["query", "count"]), files, answer)
            }
        }
    }
}

/// The question of vectors.
fn vectors(data: &Data) -> io::Result<Case> {
    let vectors = data.vectors()?;
    let mut read = read("read", &vectors.path, "f32le")?;
    read["with"]["dims"] = json!(vectors.dims);
    let with = json!({ "epsilon": vectors.epsilon, "device": "cpu" });
    let stages = [read, stage("epsilon_join", &["read"], with)];
    let right = Sampled::near_vectors(&vectors.values, vectors.dims, vectors.epsilon);
    let (last, files) = (csv(&["left", "right"]), vec![vectors.path]);
    pipeline(data, "vectors", &stages, last, files, Answer::Rows(right))
}

/// A stage that reads a file.
fn read(id: &str, path: &Path, format: &str) -> io::Result<Value> {
    let with = json!({ "paths": [text(path)?], "format": format });
    Ok(json!({ "id": id, "operator": "read", "with": with }))
}

/// A stage whose id is the name of its operator.
fn stage(operator: &str, inputs: &[&str], with: Value) -> Value {
    json!({ "id": operator, "operator": operator, "inputs": inputs, "with": with })
}

/// Parameters of rows with these columns.
fn csv(columns: &[&str]) -> Value {
    json!({ "format": "csv", "columns": columns })
}

/// A pipeline of these stages and one that writes, as a file of JSON.
fn pipeline(
    data: &Data,
    name: &str,
    stages: &[Value],
    last: Value,
    files: Vec<PathBuf>,
    answer: Answer,
) -> io::Result<Case> {
    let before = stages.last().and_then(|stage| stage["id"].as_str()).expect("a stage has an id");
    let stages: Vec<Value> =
        stages.iter().cloned().chain([stage("write", &[before], last)]).collect();
    let path = data.path(&format!("{name}.json"));
    std::fs::write(&path, json!({ "name": name, "stages": stages }).to_string())?;
    let command = ["run".to_owned(), "--quiet".to_owned(), text(&path)?].into();
    Case::new(files, command, answer)
}

/// A path as JSON and command lines have it.
fn text(path: &Path) -> io::Result<String> {
    let text = path.to_str().map(str::to_owned);
    text.ok_or_else(|| io::Error::other(format!("{} is not in UTF-8", path.display())))
}

impl Case {
    fn new(files: Vec<PathBuf>, command: Vec<String>, answer: Answer) -> io::Result<Self> {
        let sizes = files.iter().map(|path| Ok(std::fs::metadata(path)?.len()));
        let bytes = sizes.sum::<io::Result<u64>>()?;
        Ok(Self { files, bytes, command, answer })
    }

    /// Checks what the command has written.
    ///
    /// # Errors
    /// If a row is wrong or missing.
    pub(super) fn check(&self, written: &str) -> Result<(), String> {
        match &self.answer {
            Answer::Counts(exact) => {
                let rows =
                    written.lines().map(serde_json::from_str).collect::<Result<Vec<Row>, _>>();
                exact.check(&rows.map_err(|error| error.to_string())?)
            }
            // The first line is the header.
            Answer::Rows(sampled) => sampled.check(written.lines().skip(1)),
        }
    }

    /// Checks the rows of a peer: items with their counts, or rows of numbers.
    ///
    /// # Errors
    /// If the counts are not exact, or a row is wrong or missing.
    pub(super) fn check_exact(&self, rows: Value) -> Result<(), String> {
        match &self.answer {
            Answer::Counts(exact) => {
                let rows = serde_json::from_value::<Vec<(String, u64)>>(rows);
                exact.check_exact(&rows.map_err(|error| error.to_string())?)
            }
            Answer::Rows(sampled) => {
                let rows = serde_json::from_value::<Vec<[u64; 3]>>(rows);
                let line = |[left, right, rest]: [u64; 3]| format!("{left},{right},{rest}");
                let rows = rows.map_err(|error| error.to_string())?.into_iter().map(line);
                let lines: Vec<String> = rows.collect();
                sampled.check(lines.iter().map(String::as_str))
            }
        }
    }
}

/// The command `trommel`.
#[derive(Debug)]
pub(super) struct Program(PathBuf);

impl Program {
    /// The program that is named, or the one beside this program.
    ///
    /// # Errors
    /// If it is not there.
    pub(super) fn find(named: Option<&Path>) -> io::Result<Self> {
        let path = match named {
            Some(path) => path.to_owned(),
            None => std::env::current_exe()?.with_file_name("trommel"),
        };
        if path.is_file() {
            return Ok(Self(path.canonicalize()?));
        }
        let path = path.display();
        Err(io::Error::other(format!(
            "{path} is missing: build it by `cargo build --release -p trommel-cli`, or name the \
             program by --trommel"
        )))
    }

    /// What it says of its version.
    ///
    /// # Errors
    /// If it cannot run.
    pub(super) fn version(&self) -> io::Result<String> {
        let said = Command::new(&self.0).arg("--version").output()?.stdout;
        Ok(String::from_utf8_lossy(&said).trim().to_owned())
    }

    /// Runs it on some cores, and returns the time of the process and what it has written.
    ///
    /// # Panics
    /// If the process fails, which says why on standard error.
    pub(super) fn run(&self, arguments: &[String], cores: &FirstCores) -> (Duration, String) {
        let mut written = tempfile::tempfile().expect("a temporary file");
        let output = written.try_clone().expect("a file can have two descriptors");
        let mut command = Command::new(&self.0);
        command.args(arguments).stdin(Stdio::null()).stdout::<File>(output);
        let (time, status) = cores.run(|| timed(|| command.status()));
        let status = status.expect("the command can run");
        assert!(status.success(), "trommel {}: {status}", arguments.join(" "));
        let mut rows = String::new();
        written.rewind().and_then(|()| written.read_to_string(&mut rows)).expect("rows are text");
        (time, rows)
    }
}
