//! Errors of building and running a graph. Errors of a configuration file are in
//! [`crate::config`].

use std::any::Any;
use std::error::Error;
use std::fmt;
use std::time::Duration;

use arrow_schema::{DataType, FieldRef, Schema, SchemaRef};
use thiserror::Error;

use crate::operator::claim::ClaimConflict;
use crate::suggest::suggestion;

/// The failure of an operator: any error. The runtime adds the stage.
pub type OperatorError = Box<dyn Error + Send + Sync>;

/// The reason why an operator cannot run on its inputs, with the parameter at fault if there is
/// one.
///
/// # Examples
/// ```
/// use trommel_engine::error::BindErrorKind;
///
/// let allowed = "at most `counters`, which is 10".to_owned();
/// let error = BindErrorKind::Value { value: "64".to_owned(), allowed }.at("filter_bins");
/// assert_eq!(error.parameter, Some("filter_bins"));
/// assert_eq!(error.to_string(), "64 is not allowed here; at most `counters`, which is 10");
/// ```
#[derive(Debug, Error)]
#[error("{kind}")]
pub struct BindError {
    /// Name of the parameter at fault, as in the configuration.
    pub parameter: Option<&'static str>,
    /// The reason.
    pub kind: BindErrorKind,
    /// Further mistakes of the same stage.
    pub others: Box<[BindError]>,
}

impl BindError {
    /// The mistakes of several checks, as one error.
    ///
    /// # Errors
    /// If a check has failed.
    ///
    /// # Examples
    /// ```
    /// use trommel_engine::error::{BindError, BindErrorKind};
    ///
    /// let wrong = |value: u32, at: &'static str| -> Result<(), BindError> {
    ///     let (value, allowed) = (value.to_string(), "expected 0".to_owned());
    ///     Err(BindErrorKind::Value { value, allowed }.at(at))
    /// };
    /// let error = BindError::collect([wrong(7, "n"), Ok(()), wrong(8, "k")]).unwrap_err();
    /// let parameters: Vec<_> = error.flatten().iter().map(|e| e.parameter).collect();
    /// assert_eq!(parameters, [Some("n"), Some("k")]);
    /// ```
    pub fn collect(checks: impl IntoIterator<Item = Result<(), Self>>) -> Result<(), Self> {
        let mut mistakes = checks.into_iter().filter_map(Result::err);
        let Some(mut first) = mistakes.next() else { return Ok(()) };
        first.others = first.others.into_iter().chain(mistakes).collect();
        Err(first)
    }

    /// The mistakes one by one, each without the other mistakes.
    #[must_use]
    pub fn flatten(mut self) -> Vec<Self> {
        let others = std::mem::take(&mut self.others);
        let mut flat = vec![self];
        flat.extend(others.into_iter().flat_map(Self::flatten));
        flat
    }
}

/// A mismatch between an operator, its parameters and its inputs.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum BindErrorKind {
    /// The input has no such column.
    #[error(
        "the input has no column `{column}`; it has {}{}",
        list_columns(schema),
        similar(column, schema)
    )]
    MissingColumn {
        /// The missing column.
        column: String,
        /// The columns of the input.
        schema: SchemaRef,
    },
    /// The column has a type that the operator cannot use.
    #[error("column `{column}` is {found}; expected {expected}")]
    ColumnType {
        /// The column.
        column: String,
        /// Its type.
        found: DataType,
        /// The types that the operator accepts.
        expected: &'static str,
    },
    /// A value is out of its range, or contradicts another value.
    #[error("{value} is not allowed here; {allowed}")]
    Value {
        /// The value.
        value: String,
        /// The values that are allowed.
        allowed: String,
    },
    /// Any other reason, such as a file that cannot be opened.
    #[error(transparent)]
    Other(OperatorError),
}

/// A hint at the column whose name is nearest.
fn similar(column: &str, schema: &SchemaRef) -> String {
    let names = schema.fields().iter().map(|field| field.name().as_str());
    suggestion(column, names).map_or_else(String::new, |name| format!("; did you mean `{name}`?"))
}

/// Columns with their types and metadata, such as `(item Utf8, count UInt64)`.
pub(crate) fn describe_columns(schema: &Schema) -> String {
    let column = |field: &FieldRef| {
        let metadata = field.metadata().iter().map(|(key, value)| format!(" {key}={value}"));
        format!("{} {}{}", field.name(), field.data_type(), metadata.collect::<String>())
    };
    let columns: Vec<_> = schema.fields().iter().map(column).collect();
    format!("({})", columns.join(", "))
}

fn list_columns(schema: &SchemaRef) -> String {
    let columns: Vec<_> =
        schema.fields().iter().map(|f| format!("`{}` ({})", f.name(), f.data_type())).collect();
    columns.join(", ")
}

impl BindErrorKind {
    /// Blames `parameter`.
    #[must_use]
    pub fn at(self, parameter: &'static str) -> BindError {
        BindError { parameter: Some(parameter), kind: self, others: Box::default() }
    }
}

impl From<BindErrorKind> for BindError {
    fn from(kind: BindErrorKind) -> Self {
        Self { parameter: None, kind, others: Box::default() }
    }
}

/// All mistakes of a graph, which therefore cannot run.
#[derive(Debug)]
pub struct GraphErrors(pub Vec<GraphError>);

impl fmt::Display for GraphErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, error) in self.0.iter().enumerate() {
            write!(f, "{}{error}", if i > 0 { "\n" } else { "" })?;
        }
        Ok(())
    }
}

impl Error for GraphErrors {}

/// A mistake in a graph.
#[derive(Debug, Error)]
#[error("{}{kind}", if stage.is_empty() { String::new() } else { format!("stage `{stage}`: ") })]
pub struct GraphError {
    /// Id of the stage; empty for a mistake of the whole graph.
    pub stage: String,
    /// The mistake.
    pub kind: GraphErrorKind,
}

/// A mistake in a stage of a graph.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum GraphErrorKind {
    /// The graph has no stage.
    #[error("a pipeline has at least one stage")]
    Empty,
    /// The id cannot be shown or named.
    #[error("{id:?} is no id: an id has at least one character, and no control characters")]
    InvalidId {
        /// The id.
        id: String,
    },
    /// Two stages have the same id.
    #[error("another stage has this id already")]
    DuplicateId,
    /// The number of inputs does not suit the operator.
    #[error("`{operator}` takes {expected}, found {found}")]
    InputCount {
        /// The operator.
        operator: &'static str,
        /// The number of inputs that the operator takes, in words.
        expected: String,
        /// The number of inputs of the stage.
        found: usize,
    },
    /// An input names an output port that the other stage does not have.
    #[error("stage `{input}` has {ports} output ports, so there is no port {port}")]
    NoSuchOutput {
        /// The named stage.
        input: String,
        /// The missing port, from 0.
        port: usize,
        /// The number of output ports of the named stage.
        ports: usize,
    },
    /// Two inputs that share a port have different schemas.
    #[error("its inputs have different columns: {first} and {second}")]
    SchemaMismatch {
        /// Columns of the first input.
        first: String,
        /// Columns of the other one.
        second: String,
    },
    /// A stage is, over other stages, its own input.
    #[error("it is part of a cycle: {}", path.join(" -> "))]
    Cycle {
        /// The ids of the stages in the cycle.
        path: Vec<String>,
    },
    /// No stage reads an output of this stage.
    #[error(
        "nothing reads its output{}; connect it to an operator, `write` or `discard`",
        port.map_or_else(String::new, |port| format!(" `{port}`"))
    )]
    UnusedOutput {
        /// The name of the output, if the stage has several.
        port: Option<&'static str>,
    },
    /// A core that this process may not use.
    #[error("core {core} is not available; this process may use {available:?}")]
    NoSuchCore {
        /// The core.
        core: usize,
        /// The affinity mask at the start of the process.
        available: Vec<usize>,
    },
    /// The stage names more cores than it has parts.
    #[error("it was given {given} cores, but `{operator}` runs on {parts} at most here")]
    TooManyCores {
        /// The operator.
        operator: &'static str,
        /// Number of cores that the stage names.
        given: usize,
        /// Number of its parts.
        parts: usize,
    },
    /// Another stage has a claim that excludes a claim of this stage, such as a claim to the same
    /// file.
    #[error(transparent)]
    Claimed(#[from] Box<ClaimConflict>),
    /// The operator does not fit its inputs.
    #[error(transparent)]
    Bind(#[from] BindError),
}

/// The first cause of a failed run, with its stage.
#[derive(Debug, Error)]
#[error("stage `{stage}` ({operator}): {cause}")]
pub struct RunError {
    /// Id of the stage, followed by a slash and the part if the operator has several.
    pub stage: String,
    /// The operator of the stage.
    pub operator: &'static str,
    /// The cause.
    #[source]
    pub cause: RunErrorCause,
}

/// The cause of a failed run.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RunErrorCause {
    /// The operator returned an error.
    #[error("{0}")]
    Failed(#[source] OperatorError),
    /// The operator failed at something on which its rows do not depend, such as saving its state.
    /// All rows went through.
    #[error("{0}")]
    Late(#[source] OperatorError),
    /// The operator panicked.
    #[error("panicked: {0}")]
    Panicked(String),
    /// The operator sent columns that are not the columns of its declaration.
    #[error(
        "it sent the columns {found} at output {port}; it declared {declared} when it was bound"
    )]
    Columns {
        /// The output port, from 0.
        port: usize,
        /// The declared columns.
        declared: String,
        /// The columns of the batch.
        found: String,
    },
    /// An input closed without an end marker.
    #[error("its input closed before the end of the stream")]
    Truncated,
    /// The run was aborted while the stage still had work.
    #[error("aborted before the stage had finished")]
    Aborted,
    /// The operator did not return from a call after the run was aborted. The thread of the
    /// operator still runs.
    #[error("still busy {0:?} after the run was aborted; its thread was abandoned")]
    Unresponsive(Duration),
    /// The operating system refused a thread.
    #[error("cannot start a thread: {0}")]
    Thread(#[source] std::io::Error),
}

impl RunErrorCause {
    pub(crate) fn panicked(payload: &(dyn Any + Send)) -> Self {
        let text = payload
            .downcast_ref::<&str>()
            .map(|s| (*s).to_owned())
            .or_else(|| payload.downcast_ref::<String>().cloned());
        Self::Panicked(text.unwrap_or_else(|| "with a value that is not text".to_owned()))
    }
}
