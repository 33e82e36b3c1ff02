//! The files of a command, and how they are read.

use std::ffi::OsString;
use std::fs;
use std::io::{self, IsTerminal};
use std::path::Path;

use trommel::error::GraphErrors;
use trommel::{Invalid, Metrics, OnError, Read, ReadFormat};

use crate::args::{FileFormat, InputArguments, InvalidBytes};
use crate::failure::Failure;
use crate::units::{counted, grouped};

/// The name of standard input.
pub(super) const STDIN: &str = "-";
/// The id of the stage that reads.
pub(super) const READ: &str = "read";

/// The files, or standard input, for which a person at a terminal is told how to end it.
pub(super) fn files(arguments: &InputArguments) -> Vec<OsString> {
    let mut files = arguments.files.clone();
    if files.is_empty() {
        files.push(STDIN.into());
    }
    if files.iter().any(|file| file == STDIN) && io::stdin().is_terminal() {
        crate::say("reading standard input, up to Ctrl-D");
    }
    files
}

/// The format of the files: that of the first name, where columns are asked for.
pub(super) fn format_of(
    arguments: &InputArguments,
    files: &[OsString],
    has_columns: bool,
) -> FileFormat {
    match arguments.format {
        Some(format) => format,
        None if arguments.pattern.is_some() => FileFormat::Log,
        None if !has_columns => FileFormat::Lines,
        None => named_format(Path::new(files.first().map_or("".as_ref(), OsString::as_os_str))),
    }
}

/// The format that a name stands for; the one before compression.
fn named_format(name: &Path) -> FileFormat {
    let is_packed = |name: &Path| {
        name.extension().is_some_and(|end| ["gz", "zst"].iter().any(|packed| end == *packed))
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

/// The source of the files.
pub(super) fn reading(
    arguments: &InputArguments,
    files: Vec<OsString>,
    format: FileFormat,
) -> Result<Read, Failure> {
    let read_as = match format {
        FileFormat::Lines => ReadFormat::Lines,
        FileFormat::Jsonl => ReadFormat::Jsonl,
        FileFormat::Csv | FileFormat::Tsv => ReadFormat::Csv,
        FileFormat::Log => ReadFormat::Log,
        FileFormat::Parquet => ReadFormat::Parquet,
        FileFormat::Arrow => ReadFormat::Arrow,
    };
    let is_stdin = files.iter().any(|file| file == STDIN);
    let is_table = matches!(format, FileFormat::Jsonl | FileFormat::Csv | FileFormat::Tsv);
    if is_stdin && is_table && arguments.schema.is_none() {
        return Err(Failure::usage(
            "standard input is read once, so that its first rows cannot tell the columns: name them \
             and their types, such as --schema '{\"host\": \"text\"}'",
        ));
    }
    let mut rows =
        Read::new(files, read_as).on_error(OnError::Skip).line_bytes_max(arguments.line_max);
    if let Some(schema) = &arguments.schema {
        rows = rows.schema_json(&json_of(schema)?).map_err(|error| {
            Failure::usage(format!("--schema: {error}; such as '{{\"host\": \"text\"}}'"))
        })?;
    }
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
    Ok(match &arguments.encoding {
        Some(encoding) => rows.encoding(encoding),
        None => rows,
    })
}

/// The text itself where it is an object, else the content of the file of this name.
fn json_of(text: &str) -> Result<String, Failure> {
    if text.trim_start().starts_with('{') {
        return Ok(text.to_owned());
    }
    fs::read_to_string(text).map_err(|error| {
        let allowed = "expected JSON such as '{\"host\": \"text\"}', or a file of it";
        Failure::usage(format!("--schema: {text}: {error}; {allowed}"))
    })
}

/// A counter of a stage.
pub(super) fn counter(metrics: &Metrics, stage: &str, name: &str) -> u64 {
    metrics.stage(stage).map_or(0, |stage| stage.counter(name))
}

/// Whether files or lines were left out.
pub(super) fn has_left_out(metrics: &Metrics) -> bool {
    ["files_skipped", "skipped"].iter().any(|name| counter(metrics, READ, name) > 0)
}

/// Says what was left out, and what was replaced; `rest` says what the result stands for.
pub(super) fn say_left_out(
    metrics: &Metrics,
    arguments: &InputArguments,
    has_columns: bool,
    rest: &str,
) {
    let skipped = counter(metrics, READ, "skipped");
    if skipped > 0 {
        let (lines, longest) = (counted(skipped, "line"), grouped(arguments.line_max as u64));
        let is_table = format_of(arguments, &arguments.files, has_columns) != FileFormat::Lines;
        let no_rows = if is_table { "no row of the table, " } else { "" };
        crate::say(&format!(
            "left out, {no_rows}no text or longer than {longest} bytes (--line-max): {lines}{rest}"
        ));
    }
    let replaced = counter(metrics, READ, "replaced");
    if replaced > 0 {
        let (lines, encoding) = (counted(replaced, "line"), arguments.encoding.as_deref());
        let encoding = encoding.unwrap_or("UTF-8");
        crate::say(&format!(
            "read with U+FFFD in place of bytes that are not {encoding}: {lines}; \
             --encoding names another encoding"
        ));
    }
}

/// An error about the files or numbers, without the stages, which the user does not know. A mistake
/// that several stages tell comes once.
pub(super) fn mistakes(errors: GraphErrors) -> Failure {
    let mut kinds: Vec<String> = Vec::new();
    for error in &errors.0 {
        let kind = error.kind.to_string();
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    Failure::usage(kinds.join("\n"))
}
