//! `trommel eval`: the value of an expression for one row, to try it.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_json::reader::infer_json_schema_from_iterator;
use arrow_json::{ReaderBuilder, WriterBuilder};
use arrow_schema::{ArrowError, Schema};
use serde_json::Value;
use trommel::expressions::Expression;
use trommel::files::is_unprintable;

use crate::args::EvalArguments;
use crate::failure::Failure;

pub(super) fn run(arguments: &EvalArguments) -> Result<u8, Failure> {
    let row = row(arguments.row.as_deref())?;
    let expression = Expression::new(&arguments.expression, row.schema_ref());
    let value = expression.map_err(Failure::usage)?.evaluate(&row).map_err(Failure::run)?;
    crate::print(&format!("{}\n", json(value).map_err(Failure::run)?))?;
    Ok(0)
}

/// The row that a JSON object describes; a row without columns if there is none.
fn row(text: Option<&str>) -> Result<RecordBatch, Failure> {
    let wrong = |error: &dyn std::fmt::Display| {
        Failure::usage(format!("--with: {error}; expected an object, such as {{\"a\": 1}}"))
    };
    let Some(text) = text else {
        let options = RecordBatchOptions::new().with_row_count(Some(1));
        let empty = Arc::new(Schema::empty());
        let row = RecordBatch::try_new_with_options(empty, Vec::new(), &options);
        return row.map_err(|error| wrong(&error));
    };
    let value: Value = serde_json::from_str(text).map_err(|error| wrong(&error))?;
    if !value.is_object() {
        return Err(wrong(&"it is no object"));
    }
    let schema = infer_json_schema_from_iterator([Ok(&value)].into_iter());
    let schema = Arc::new(schema.map_err(|error: ArrowError| wrong(&error))?);
    let mut decoder = ReaderBuilder::new(schema).build_decoder().map_err(|error| wrong(&error))?;
    decoder.serialize(&[value]).map_err(|error| wrong(&error))?;
    let row = decoder.flush().map_err(|error| wrong(&error))?;
    row.ok_or_else(|| wrong(&"it is empty"))
}

/// The only value of a column, as JSON.
fn json(column: ArrayRef) -> Result<String, ArrowError> {
    let records = RecordBatch::try_from_iter_with_nullable([("value", column, true)])?;
    let mut line = Vec::new();
    let mut writer = WriterBuilder::new()
        .with_explicit_nulls(true)
        .build::<_, arrow_json::writer::LineDelimited>(&mut line);
    writer.write(&records)?;
    writer.finish()?;
    let line = String::from_utf8_lossy(&line);
    // The writer makes an object of a row, in which the value is the only member.
    let value = line.trim().strip_prefix("{\"value\":").and_then(|rest| rest.strip_suffix('}'));
    Ok(escaped(value.unwrap_or(&line)))
}

/// The JSON with every character that would not be seen in JSON's escaped form, so that it stays
/// JSON.
fn escaped(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for character in json.chars() {
        if is_unprintable(character) {
            for unit in character.encode_utf16(&mut [0; 2]) {
                text.push_str(&format!("\\u{unit:04x}"));
            }
        } else {
            text.push(character);
        }
    }
    text
}
