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
use std::path::PathBuf;
use std::sync::Arc;

use arrow_array::builder::StringBuilder;
use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use arrow_array::{Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use trommel::files::Destination;
use trommel::frequent_items::StoredItems;
use trommel::graph::StageId;
use trommel::operator::OperatorError;
use trommel::{
    Collect, Collected, Filter, FrequentItems, Graph, Map, Memory, Metrics, MissingState, Names,
    OnError, RunOptions, Select, Tokenize, Topology, Write, WriteFormat,
};

use super::inputs::{self, READ, STDIN, counter, mistakes};
use crate::args::{By, TopArguments};
use crate::config::claim;
use crate::failure::{Failure, RUN_FAILED};
use crate::progress::{Ends, Progress};
use crate::session::Session;
use crate::units::{counted, grouped};

/// The ids of the stages of `--where` and `--by`.
const WHERE: &str = "where";
const BY: &str = "by";

pub(super) fn run(arguments: &TopArguments) -> Result<u8, Failure> {
    let (mut topology, rows) = counting(arguments)?;
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
    let metrics = &outcome.metrics;
    let is_all = !inputs::has_left_out(metrics) && without_value(metrics) == 0;
    Ok(if status == 0 && !is_all { RUN_FAILED } else { status })
}

/// Rows for which an expression has no value, such as a cast.
fn without_value(metrics: &Metrics) -> u64 {
    counter(metrics, WHERE, "skipped") + counter(metrics, BY, "skipped")
}

/// Whether there is no input, but only states whose sum is shown.
fn has_states_only(arguments: &TopArguments) -> bool {
    let loads = arguments.load.len();
    let files = &arguments.input.files;
    files.is_empty() && (loads > 1 || (loads == 1 && io::stdin().is_terminal()))
}

fn counting(arguments: &TopArguments) -> Result<(Topology, Collected), Failure> {
    let mut graph = Graph::new();
    let mut label = counted_things(&arguments.by);
    let (items, column) = match has_states_only(arguments) {
        true => {
            let stored = stored_items(arguments)?;
            // Without --by, the first state says what is counted.
            if arguments.by == [By::Line] && !stored.label.is_empty() {
                label = stored.label;
            }
            no_items(&mut graph, stored.schema)
        }
        false => items(&mut graph, arguments)?,
    };
    let mut top = FrequentItems::new().item(column).counters(arguments.k).n(arguments.n);
    top = top.label(label);
    if let [first, others @ ..] = &arguments.load[..] {
        top = top.restore(first).merge(others);
        // On the first day, a state that is saved there is not there yet.
        if arguments.save.as_ref() == Some(first) {
            top = top.missing(MissingState::Begin);
        }
    }
    if let Some(file) = &arguments.save {
        top = top.snapshot(file);
    }
    let top = graph.add_after(items, "top", top);
    let (sink, rows) = Collect::new();
    graph.add_after(top, "rows", sink);
    Ok((graph.build().map_err(mistakes)?, rows))
}

/// The items of the first state that is there; lines if none is.
fn stored_items(arguments: &TopArguments) -> Result<StoredItems, Failure> {
    let is_there = |file: &&PathBuf| arguments.save.as_ref() != Some(file) || file.exists();
    let first = arguments.load.iter().find(is_there);
    let first = first.map(|file| FrequentItems::stored_items(file));
    let stored = first.unwrap_or_else(|| Ok(StoredItems::texts()));
    stored.map_err(|error| Failure::usage(error.to_string()))
}

/// An input without items, and the columns of these.
fn no_items(graph: &mut Graph, schema: SchemaRef) -> (StageId, Names) {
    let column = if schema.fields().len() == 1 { schema.field(0).name() } else { "*" };
    let column = Names::from(column);
    (graph.add(READ, Memory::new(schema, Vec::<RecordBatch>::new())), column)
}

/// Whether columns are asked for.
fn has_columns(arguments: &TopArguments) -> bool {
    let is_expression = |by: &By| matches!(by, By::Expression(_));
    arguments.by.iter().any(is_expression) || arguments.condition.is_some()
}

/// The stages that make the items, and the columns of these.
fn items(graph: &mut Graph, arguments: &TopArguments) -> Result<(StageId, Names), Failure> {
    let files: Vec<OsString> = inputs::files(&arguments.input);
    let format = inputs::format_of(&arguments.input, &files, has_columns(arguments));
    let mut rows = graph.add(READ, inputs::reading(&arguments.input, files, format)?);
    if let Some(condition) = &arguments.condition {
        rows = graph.add_after(rows, WHERE, Filter::new(condition).on_error(OnError::Skip));
    }
    let select = |columns: Vec<String>| Select::new(columns).on_error(OnError::Skip);
    Ok(match &arguments.by[..] {
        [By::Line] => (rows, Names::from("line")),
        [By::Words] => (graph.add_after(rows, "words", Tokenize::words()), Names::from("item")),
        [By::Field(index)] => (graph.add_after(rows, "field", field(*index)), Names::from("item")),
        [By::Expression(expression)] => {
            let column = select(vec![format!("{expression} as item")]);
            (graph.add_after(rows, BY, column), Names::from("item"))
        }
        several => {
            let columns = several.iter().map(column).collect::<Result<Vec<_>, _>>()?;
            (graph.add_after(rows, BY, select(columns)), Names::from("*"))
        }
    })
}

/// One of several columns.
fn column(by: &By) -> Result<String, Failure> {
    match by {
        By::Line => Ok("line".to_owned()),
        By::Expression(expression) => Ok(expression.clone()),
        By::Words | By::Field(_) => {
            let thing = counted_thing(by);
            let allowed = "several --by are expressions, such as --by host --by status";
            Err(Failure::usage(format!("--by: {thing} beside another --by; {allowed}")))
        }
    }
}

/// Name of the things that are counted, which a state has.
fn counted_things(by: &[By]) -> String {
    by.iter().map(counted_thing).collect::<Vec<_>>().join(" and ")
}

fn counted_thing(by: &By) -> String {
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
    let rest = "; the counts and their bounds are those of the others";
    inputs::say_left_out(metrics, &arguments.input, has_columns(arguments), rest);
    let errors = rows.iter().filter_map(|rows| rows.column_by_name("error"));
    let largest = errors.flat_map(|e| e.as_primitive::<UInt64Type>().values().to_vec()).max();
    if let Some(error) = largest.filter(|&error| error > 0) {
        let error = grouped(error);
        crate::say(&format!(
            "counts are upper bounds, at most {error} too high; more counters (-k) make them precise"
        ));
    }
}
