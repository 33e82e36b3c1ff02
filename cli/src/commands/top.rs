//! `trommel top`: the most frequent lines, words or fields, without a pipeline file.
//!
//! ```text
//! read ──► [filter] ──► [words, a field, or an expression] ──► frequent_items ──► memory;   then memory ──► print
//! ```
//!
//! The rows go through memory, because they are looked at before they are printed, and the progress
//! line must have left the terminal by then.

use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::path::Path;
use std::sync::Arc;

use arrow_array::builder::StringBuilder;
use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use arrow_array::{Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use trommel::error::GraphErrors;
use trommel::files::Destination;
use trommel::graph::StageId;
use trommel::operator::OperatorError;
use trommel::{
    Collect, Collected, Filter, FrequentItems, Graph, Invalid, Map, Memory, Metrics, MissingState,
    OnError, Read, ReadFormat, RunOptions, Select, Tokenize, Topology, Write, WriteFormat,
};

use crate::args::{By, FileFormat, InvalidBytes, TopArguments};
use crate::config::claim;
use crate::failure::{Failure, RUN_FAILED};
use crate::progress::{Ends, Progress};
use crate::session::Session;
use crate::units::{counted, grouped};

const STDIN: &str = "-";
/// The id of the stage that reads.
const READ: &str = "read";
/// The ids of the stages of `--where` and `--by`.
const WHERE: &str = "where";
const BY: &str = "by";

pub(super) fn run(arguments: &TopArguments) -> Result<u8, Failure> {
    let mut files = arguments.files.clone();
    if files.is_empty() {
        files.push(STDIN.into());
    }
    if files.iter().any(|file| file == STDIN) && io::stdin().is_terminal() {
        crate::say("reading standard input, up to Ctrl-D");
    }
    let (mut topology, rows) = counting(arguments, files).map_err(mistakes)?;
    claim(&mut topology, Destination::stdout().claim("standard output"))?;
    let progress =
        Progress::new(Ends { sources: vec![READ.to_owned()], sinks: Vec::new() }, !arguments.quiet);
    let outcome = Session::start(topology, RunOptions::new(), progress, None)?.wait();
    let status = outcome.conclude();
    if !outcome.has_all_rows() {
        return Ok(status);
    }
    let rows = rows.take();
    let format = match arguments {
        TopArguments { json: true, .. } => WriteFormat::Jsonl,
        TopArguments { csv: true, .. } => WriteFormat::Csv,
        _ => WriteFormat::Table,
    };
    print_rows(&rows, arguments.n, format)?;
    say_what_to_know(&rows, &outcome.metrics, arguments);
    // As for grep: the rows are printed, but a script learns that inputs were left out.
    let left_out = ["files_skipped", "skipped"].map(|name| counter(&outcome.metrics, READ, name));
    let is_all = left_out == [0, 0] && without_value(&outcome.metrics) == 0;
    Ok(if status == 0 && !is_all { RUN_FAILED } else { status })
}

/// A counter of a stage.
fn counter(metrics: &Metrics, stage: &str, name: &str) -> u64 {
    metrics
        .stage(stage)
        .map_or(0, |read| read.parts[0].counters.iter().filter(|c| c.0 == name).map(|c| c.1).sum())
}

/// Rows for which an expression has no value, such as a cast.
fn without_value(metrics: &Metrics) -> u64 {
    counter(metrics, WHERE, "skipped") + counter(metrics, BY, "skipped")
}

/// The format of the files: that of the first name, where columns are asked for.
fn format_of(arguments: &TopArguments, files: &[OsString]) -> FileFormat {
    let has_columns = matches!(arguments.by, By::Expression(_)) || arguments.condition.is_some();
    match arguments.format {
        Some(format) => format,
        None if arguments.pattern.is_some() => FileFormat::Log,
        None if !has_columns => FileFormat::Lines,
        None => {
            let name = Path::new(files.first().map_or("".as_ref(), OsString::as_os_str));
            // The name before compression tells the format.
            let is_packed = |name: &Path| {
                name.extension()
                    .is_some_and(|end| ["gz", "zst"].iter().any(|packed| end == *packed))
            };
            let stem = if is_packed(name) { name.with_extension("") } else { name.to_owned() };
            match stem.extension().and_then(|end| end.to_str()) {
                Some("jsonl" | "ndjson") => FileFormat::Jsonl,
                Some("csv") => FileFormat::Csv,
                Some("tsv") => FileFormat::Tsv,
                Some("parquet") => FileFormat::Parquet,
                Some("arrow" | "feather" | "ipc") => FileFormat::Arrow,
                _ => FileFormat::Lines,
            }
        }
    }
}

/// The source of the files.
fn reading(arguments: &TopArguments, files: Vec<OsString>) -> Read {
    let format = format_of(arguments, &files);
    let read_as = match format {
        FileFormat::Lines => ReadFormat::Lines,
        FileFormat::Jsonl => ReadFormat::Jsonl,
        FileFormat::Csv | FileFormat::Tsv => ReadFormat::Csv,
        FileFormat::Log => ReadFormat::Log,
        FileFormat::Parquet => ReadFormat::Parquet,
        FileFormat::Arrow => ReadFormat::Arrow,
    };
    let mut rows =
        Read::new(files, read_as).on_error(OnError::Skip).line_bytes_max(arguments.line_max);
    if format == FileFormat::Tsv {
        rows = rows.delimiter('\t');
    }
    if let Some(pattern) = &arguments.pattern {
        rows = rows.pattern(pattern);
    }
    // Files of Parquet and Arrow have no bytes that are no text.
    if !matches!(format, FileFormat::Parquet | FileFormat::Arrow) {
        rows = rows.invalid(match arguments.invalid {
            InvalidBytes::Replace => Invalid::Replace,
            InvalidBytes::Skip => Invalid::Skip,
            InvalidBytes::Fail => Invalid::Fail,
        });
    }
    match &arguments.encoding {
        Some(encoding) => rows.encoding(encoding),
        None => rows,
    }
}

fn counting(
    arguments: &TopArguments,
    files: Vec<OsString>,
) -> Result<(Topology, Collected), GraphErrors> {
    let mut graph = Graph::new();
    let mut rows = graph.add(READ, reading(arguments, files));
    if let Some(condition) = &arguments.condition {
        rows = graph.add_after(rows, WHERE, Filter::new(condition).on_error(OnError::Skip));
    }
    let (items, column): (StageId, &str) = match &arguments.by {
        By::Line => (rows, "line"),
        By::Words => (graph.add_after(rows, "words", Tokenize::words()), "item"),
        By::Field(index) => (graph.add_after(rows, "field", field(*index)), "item"),
        By::Expression(expression) => {
            let column = Select::new([format!("{expression} as item")]).on_error(OnError::Skip);
            (graph.add_after(rows, BY, column), "item")
        }
    };
    let mut top = FrequentItems::new().item(column).counters(arguments.k).n(arguments.n);
    top = top.label(counted_things(&arguments.by));
    if let Some(file) = &arguments.load {
        top = top.restore(file);
        // On the first day, a state that is saved there is not there yet.
        if arguments.save.as_ref() == Some(file) {
            top = top.missing(MissingState::Begin);
        }
    }
    if let Some(file) = &arguments.save {
        top = top.snapshot(file);
    }
    let top = graph.add_after(items, "top", top);
    let (sink, rows) = Collect::new();
    graph.add_after(top, "rows", sink);
    Ok((graph.build()?, rows))
}

/// Name of the things that are counted, which a state has.
fn counted_things(by: &By) -> String {
    match by {
        By::Line => "lines".to_owned(),
        By::Words => "words".to_owned(),
        By::Field(index) => format!("field {} of each line", index + 1),
        By::Expression(expression) => format!("`{expression}`"),
    }
}

/// The field of this index of every line that has it; fields stand between white space.
fn field(index: usize) -> Map {
    let schema = Arc::new(Schema::new(vec![Field::new("item", DataType::Utf8, false)]));
    let output = SchemaRef::clone(&schema);
    Map::new(output, move |lines: RecordBatch| -> Result<RecordBatch, OperatorError> {
        let lines = lines.column(0).as_string::<i32>();
        let mut fields = StringBuilder::with_capacity(lines.len(), lines.len() * 8);
        for line in lines.iter().flatten() {
            if let Some(field) = line.split_ascii_whitespace().nth(index) {
                fields.append_value(field);
            }
        }
        Ok(RecordBatch::try_new(SchemaRef::clone(&schema), vec![Arc::new(fields.finish())])?)
    })
    .heavy()
}

/// An error about the files or numbers, without the stages, which the user does not know.
fn mistakes(errors: GraphErrors) -> Failure {
    let kinds: Vec<String> = errors.0.iter().map(|error| error.kind.to_string()).collect();
    Failure::usage(kinds.join("\n"))
}

fn print_rows(rows: &[RecordBatch], rows_max: usize, format: WriteFormat) -> Result<(), Failure> {
    let Some(first) = rows.first() else { return Ok(()) };
    let mut graph = Graph::new();
    let memory = graph.add("rows", Memory::new(first.schema(), rows.to_vec()));
    graph.add_after(memory, "print", Write::new(STDIN, format).rows_max(rows_max));
    let topology = graph.build().map_err(Failure::run)?;
    topology.run(RunOptions::new()).map_err(|error| Failure::run(error.cause))?;
    Ok(())
}

fn say_what_to_know(rows: &[RecordBatch], metrics: &Metrics, arguments: &TopArguments) {
    let files = counter(metrics, READ, "files_skipped");
    if rows.is_empty() && files == 0 {
        crate::say("there is nothing to count");
    }
    // The warning about the only input has said everything.
    if files > 0 && (files > 1 || !rows.is_empty()) {
        let files = counted(files, "file");
        crate::say(&format!("left out, wholly or from the damage on: {files}; see the warnings"));
    }
    let without_value = without_value(metrics);
    if without_value > 0 {
        let rows = counted(without_value, "row");
        crate::say(&format!("left out, --by or --where has no value for them: {rows}"));
    }
    let skipped = counter(metrics, READ, "skipped");
    if skipped > 0 {
        let (lines, longest) = (counted(skipped, "line"), grouped(arguments.line_max as u64));
        let is_table = format_of(arguments, &arguments.files) != FileFormat::Lines;
        let no_rows = if is_table { "no row of the table, " } else { "" };
        crate::say(&format!(
            "left out, {no_rows}no text or longer than {longest} bytes (--line-max): {lines}; \
             the counts and their bounds are those of the others"
        ));
    }
    let replaced = counter(metrics, READ, "replaced");
    if replaced > 0 {
        let (lines, encoding) = (counted(replaced, "line"), arguments.encoding.as_deref());
        let encoding = encoding.unwrap_or("UTF-8");
        crate::say(&format!(
            "counted with U+FFFD in place of bytes that are not {encoding}: {lines}; \
             --encoding names another encoding"
        ));
    }
    let errors = rows.iter().filter_map(|rows| rows.column_by_name("error"));
    let largest = errors.flat_map(|e| e.as_primitive::<UInt64Type>().values().to_vec()).max();
    if let Some(error) = largest.filter(|&error| error > 0) {
        let error = grouped(error);
        crate::say(&format!(
            "counts are upper bounds, at most {error} too high; more counters (-k) make them precise"
        ));
    }
}
