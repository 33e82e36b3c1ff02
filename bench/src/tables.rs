//! Tables: reading, conditions and the most frequent values of a column, from CSV, JSON, Parquet
//! and logs, beside DuckDB, polars and the libraries underneath.
//!
//! All programs read the same files, from the cache of the system after the first round. The clock
//! covers the question, from opening the file to the answer, inside of a process that has started.
//! An answer that is not that of DuckDB ends the measurement.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Write as _};
use std::path::Path;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde::Deserialize;
use trommel::placement::Placement;
use trommel::{
    Collect, Discard, Filter, FrequentItems, Graph, Read, ReadFormat, Select, Write, WriteFormat,
    Zipf,
};

use crate::runner::python::Python;
use crate::runner::report::{Table, cells, right};
use crate::runner::turns::{Run, Turns, timed};
use crate::runner::{Runs, pipelines};

/// Options of `tables`.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Arguments {
    /// Rows of each file.
    #[arg(long, default_value_t = 1_000_000)]
    rows: usize,
    /// The fastest run is shown.
    #[command(flatten)]
    runs: Runs,
}

/// The same rows in several formats.
const FILES: [(&str, ReadFormat); 4] = [
    ("csv", ReadFormat::Csv),
    ("jsonl", ReadFormat::Jsonl),
    ("parquet", ReadFormat::Parquet),
    ("log", ReadFormat::Log),
];

const LOG: &str = "{host} - - [{time}] \"{method} {path} {protocol}\" {status:u16} {bytes:u64}";

/// A question to a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Question {
    /// All columns as arrays of Arrow; the answer is the number of rows.
    Columns,
    /// Number of rows that pass a condition.
    Rows(&'static str, &'static str),
    /// Counts of the most frequent hosts of failed requests.
    Top,
    /// Failed requests as another file of Parquet; the answer is the number of rows.
    Rewrite,
}

const QUESTIONS: [Question; 6] = [
    Question::Columns,
    Question::Rows("number", "status >= 500"),
    Question::Rows("like", "path like '%/7%'"),
    Question::Rows("regexp", "regexp_matches(path, '^/p/[0-9]{2}$')"),
    Question::Top,
    Question::Rewrite,
];

/// Condition of a failed request.
const FAILED: &str = "status >= 500";
/// Hosts that are compared.
const TOP: usize = 5;

impl Question {
    fn name(self) -> &'static str {
        match self {
            Self::Columns => "columns",
            Self::Rows(name, _) => name,
            Self::Top => "top",
            Self::Rewrite => "rewrite",
        }
    }

    /// Whether it is asked of a format.
    fn is_for(self, format: ReadFormat) -> bool {
        self != Self::Rewrite || format == ReadFormat::Parquet
    }
}

/// An answer, with the seconds that it took.
#[derive(Debug, Deserialize)]
struct Measured {
    file: String,
    question: String,
    seconds: f64,
    answer: Vec<u64>,
}

/// Measures and prints.
///
/// # Errors
/// If Python or a file fails.
pub(crate) fn run(arguments: &Arguments) -> io::Result<()> {
    let runs = arguments.runs.or(5);
    let python = Python::prepare("tables")?;
    let folder = tempfile::tempdir()?;
    write_files(folder.path(), arguments.rows)?;
    let ask = |peer: &str, threads: usize| -> io::Result<Vec<Measured>> {
        let text = |value: &dyn ToString| [value.to_string()];
        python.measure(&[
            ("--peer", &text(&peer)),
            ("--threads", &text(&threads)),
            ("--rounds", &text(&runs.rounds(5))),
            ("--folder", &text(&folder.path().display())),
        ])
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let columns = [
        ("ours, 1 core", measure(folder.path(), runs, Placement::Fused)),
        ("ours, all", measure(folder.path(), runs, Placement::Auto)),
        ("DuckDB, 1 thread", ask("duckdb", 1)?),
        ("DuckDB, all", ask("duckdb", cores)?),
        ("polars, 1 thread", ask("polars", 1)?),
        ("polars, all", ask("polars", cores)?),
        ("library", libraries(folder.path(), runs)),
    ];
    let names = right(columns.iter().map(|(name, _)| name));
    let mut table = Table::new(&format!("file | MB: | question | {names}"));
    for (file, format) in FILES {
        let bytes = std::fs::metadata(folder.path().join(format!("rows.{file}")))?.len();
        for question in QUESTIONS.into_iter().filter(|question| question.is_for(format)) {
            let found = |all: &'_ [Measured]| {
                let is_it = |one: &&Measured| one.file == file && one.question == question.name();
                all.iter().find(is_it).map(|one| (one.seconds, one.answer.clone()))
            };
            let expected = found(&columns[2].1).expect("DuckDB answers each question").1;
            let shown = columns.iter().map(|(name, all)| {
                found(all).map_or_else(String::new, |(seconds, answer)| {
                    assert_eq!(answer, expected, "{name}: {file}, {}", question.name());
                    format!("{seconds:.3}")
                })
            });
            let (megabytes, name) = (bytes as f64 / 1e6, question.name());
            table.row(format!("{file} | {megabytes:.0} | {name} | {}", cells(shown)));
        }
    }
    Ok(())
}

/// Writes the rows in each format.
fn write_files(folder: &Path, rows: usize) -> io::Result<()> {
    let mut numbers = vec![0; rows];
    Zipf::new(10_000, 1.0, 1).expect("a skew within the limits").fill(&mut numbers);
    let create = |name: &str| File::create(folder.join(name)).map(BufWriter::new);
    let (mut csv, mut jsonl) = (create("rows.csv")?, create("rows.jsonl")?);
    let mut log = create("rows.log")?;
    writeln!(csv, "host,time,method,path,status,bytes")?;
    for (row, number) in numbers.into_iter().enumerate() {
        let (host, path) = (format!("h{number}.example.org"), format!("/p/{}", number % 977));
        let method = if number.is_multiple_of(9) { "POST" } else { "GET" };
        let status = [200, 200, 200, 304, 404, 200, 500, 200, 503][row % 9];
        let bytes = u64::from(number).wrapping_mul(7_919) % 100_000;
        let time = format!("2026-01-{:02}T{:02}:00:00Z", 1 + row % 28, row % 24);
        writeln!(csv, "{host},{time},{method},{path},{status},{bytes}")?;
        writeln!(
            jsonl,
            "{{\"host\":\"{host}\",\"time\":\"{time}\",\"method\":\"{method}\",\
             \"path\":\"{path}\",\"status\":{status},\"bytes\":{bytes}}}"
        )?;
        writeln!(log, "{host} - - [{time}] \"{method} {path} HTTP/1.1\" {status} {bytes}")?;
    }
    for mut file in [csv, jsonl, log] {
        file.flush()?;
    }
    let mut graph = Graph::new();
    let read = graph.add("read", Read::new([folder.join("rows.csv")], ReadFormat::Csv));
    let parquet = folder.join("rows.parquet").display().to_string();
    graph.add_after(read, "write", Write::new(parquet, WriteFormat::Parquet));
    pipelines::run(graph);
    Ok(())
}

/// The fastest run, for each file and question that has an answer.
fn measured(
    runs: Runs,
    ask: impl Fn(&str, ReadFormat, Question) -> Option<Vec<u64>>,
) -> Vec<Measured> {
    let mut all = Vec::new();
    for (file, format) in FILES {
        for question in QUESTIONS.into_iter().filter(|question| question.is_for(format)) {
            let mut turns = Turns::<(), Option<Vec<u64>>>::new(runs);
            turns.add(question.name(), || {
                let (time, rest) = timed(|| ask(file, format, question));
                Run { time, answer: (), rest }
            });
            let engine = turns.run().remove(0);
            let seconds = engine.fastest().as_secs_f64();
            let (file, question) = (file.to_owned(), question.name().to_owned());
            let answer = engine.into_rest();
            all.extend(answer.map(|answer| Measured { file, question, seconds, answer }));
        }
    }
    all
}

fn measure(folder: &Path, runs: Runs, placement: Placement) -> Vec<Measured> {
    measured(runs, |file, format, question| {
        Some(ours(&folder.join(format!("rows.{file}")), format, question, placement))
    })
}

/// Our answer.
fn ours(file: &Path, format: ReadFormat, question: Question, placement: Placement) -> Vec<u64> {
    let mut graph = Graph::new();
    let read = Read::new([file], format);
    let read = if format == ReadFormat::Log { read.pattern(LOG) } else { read };
    let read = graph.add("read", read);
    let (sink, rows) = Collect::new();
    // The stage whose rows are counted.
    let counted = match question {
        Question::Columns => {
            graph.add_after(read, "rows", sink);
            "read"
        }
        Question::Rows(_, condition) => {
            let rows = graph.add_after(read, "filter", Filter::new(condition));
            // Like `count(*)`, it needs no column but those of the condition.
            let none = graph.add_after(rows, "none", Select::new(["1 as one"]));
            graph.add_after(none, "rows", Discard::new());
            "filter"
        }
        Question::Top => {
            let rows = graph.add_after(read, "filter", Filter::new(FAILED));
            let top = FrequentItems::new().item("host").counters(20_000).n(TOP);
            let top = graph.add_after(rows, "top", top);
            graph.add_after(top, "rows", sink);
            "top"
        }
        Question::Rewrite => {
            let rows = graph.add_after(read, "filter", Filter::new(FAILED));
            let target = file.with_file_name("ours.parquet").display().to_string();
            graph.add_after(rows, "rows", Write::new(target, WriteFormat::Parquet));
            "filter"
        }
    };
    graph.placement(placement);
    let (_, metrics) = pipelines::run(graph);
    match question {
        Question::Top => pipelines::column_of_counts(&rows),
        _ => vec![pipelines::rows_of(&metrics, counted)],
    }
}

/// The libraries underneath, which read all columns.
fn libraries(folder: &Path, runs: Runs) -> Vec<Measured> {
    let fields = ["host", "time", "method", "path", "status", "bytes"].map(|name| {
        let kind = match name {
            "status" | "bytes" => DataType::Int64,
            _ => DataType::Utf8,
        };
        Field::new(name, kind, true)
    });
    let schema: SchemaRef = Arc::new(Schema::new(fields.to_vec()));
    measured(runs, |file, format, question| {
        if question != Question::Columns {
            return None;
        }
        let open = || File::open(folder.join(format!("rows.{file}"))).expect("it was written");
        let count = |batch: Result<RecordBatch, arrow_schema::ArrowError>| {
            batch.expect("the file is well formed").num_rows() as u64
        };
        let schema = Arc::clone(&schema);
        let rows = match format {
            ReadFormat::Csv => arrow_csv::ReaderBuilder::new(schema)
                .with_header(true)
                .with_batch_size(8_192)
                .build(open())
                .expect("a schema of CSV")
                .map(count)
                .sum(),
            ReadFormat::Jsonl => arrow_json::ReaderBuilder::new(schema)
                .with_batch_size(8_192)
                .build(BufReader::with_capacity(1 << 18, open()))
                .expect("a schema of JSON")
                .map(count)
                .sum(),
            ReadFormat::Parquet => ParquetRecordBatchReaderBuilder::try_new(open())
                .and_then(|builder| builder.with_batch_size(8_192).build())
                .expect("a file of Parquet")
                .map(count)
                .sum(),
            _ => return None,
        };
        Some(vec![rows])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_format_gives_the_same_answers() {
        let folder = tempfile::tempdir().unwrap();
        write_files(folder.path(), 2_000).unwrap();
        let once = Runs { rounds: Some(1), seconds: f64::INFINITY };
        let all = measure(folder.path(), once, Placement::Fused);
        for one in &all {
            let first = all.iter().find(|other| other.question == one.question).unwrap();
            assert_eq!(one.answer, first.answer, "{}: {}", one.file, one.question);
            assert!(one.answer.iter().all(|count| *count > 0), "{}", one.question);
        }
        for one in libraries(folder.path(), once) {
            assert_eq!(one.answer, [2_000], "{}", one.file);
        }
    }
}
