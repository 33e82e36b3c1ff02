//! Errors of building and running a graph. Those of a configuration file are in [`crate::config`].

use std::any::Any;
use std::error::Error;
use std::fmt;
use std::time::Duration;

use arrow_schema::{DataType, SchemaRef};
use thiserror::Error;

/// Why an operator failed: any error; the runtime adds the stage.
pub type OperatorError = Box<dyn Error + Send + Sync>;

/// Why an operator cannot run on its inputs. Says which parameter is to blame, if one is.
#[derive(Debug, Error)]
#[error("{kind}")]
pub struct BindError {
    /// Name of the parameter that does not fit, as in the configuration.
    pub parameter: Option<&'static str>,
    /// What is wrong.
    pub kind: BindErrorKind,
}

/// What does not fit when an operator is bound.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum BindErrorKind {
    /// The input has no such column.
    #[error("the input has no column `{column}`; it has {}", list_columns(schema))]
    MissingColumn {
        /// The column that was asked for.
        column: String,
        /// What the input has.
        schema: SchemaRef,
    },
    /// The column has a type that the operator cannot use.
    #[error("column `{column}` is {found}; expected {expected}")]
    ColumnType {
        /// The column.
        column: String,
        /// Its type.
        found: DataType,
        /// What the operator takes.
        expected: &'static str,
    },
    /// A value is out of its range, or does not fit another one.
    #[error("{value} is not allowed here; {allowed}")]
    Value {
        /// The value.
        value: String,
        /// What would be right.
        allowed: String,
    },
    /// Anything else, such as a file that cannot be opened.
    #[error(transparent)]
    Other(OperatorError),
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
        BindError { parameter: Some(parameter), kind: self }
    }
}

impl From<BindErrorKind> for BindError {
    fn from(kind: BindErrorKind) -> Self {
        Self { parameter: None, kind }
    }
}

/// Why a graph cannot be run: one entry a mistake, all of them at once.
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
#[error("stage `{stage}`: {kind}")]
pub struct GraphError {
    /// Id of the stage.
    pub stage: String,
    /// What is wrong with it.
    pub kind: GraphErrorKind,
}

/// What is wrong with a stage of a graph.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum GraphErrorKind {
    /// Two stages have the same id.
    #[error("another stage has this id already")]
    DuplicateId,
    /// The operator has another number of inputs.
    #[error("`{operator}` takes {expected}, found {found}")]
    InputCount {
        /// The operator.
        operator: &'static str,
        /// What it takes, in words.
        expected: String,
        /// How many were given.
        found: usize,
    },
    /// An input names an output port that the other stage does not have.
    #[error("stage `{input}` has {ports} output ports, so there is no port {port}")]
    NoSuchOutput {
        /// The stage that was named.
        input: String,
        /// The port that was asked for, from 0.
        port: usize,
        /// How many there are.
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
    /// Nobody reads an output of the stage.
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
    /// More cores than the stage has parts.
    #[error("it was given {given} cores, but `{operator}` runs on {parts} at most here")]
    TooManyCores {
        /// The operator.
        operator: &'static str,
        /// How many cores the stage names.
        given: usize,
        /// How many parts it has.
        parts: usize,
    },
    /// Another stage writes to the same file, or claims the same thing otherwise.
    #[error(
        "{name} is also written by `{other_parameter}` of stage `{other_stage}`; name another one"
    )]
    ClaimedTwice {
        /// The parameter that names it here.
        parameter: &'static str,
        /// What it is.
        name: String,
        /// The stage that claimed it first.
        other_stage: String,
        /// The parameter that names it there.
        other_parameter: &'static str,
    },
    /// The operator does not fit its inputs.
    #[error(transparent)]
    Bind(#[from] BindError),
}

/// Why a run ended before its time: the first cause, with the stage.
#[derive(Debug, Error)]
#[error("stage `{stage}` ({operator}): {cause}")]
pub struct RunError {
    /// Id of the stage, with the part behind a slash when the operator has several.
    pub stage: String,
    /// Its operator.
    pub operator: &'static str,
    /// What happened.
    #[source]
    pub cause: RunErrorCause,
}

/// What ended a run.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RunErrorCause {
    /// The operator returned an error.
    #[error("{0}")]
    Failed(#[source] OperatorError),
    /// The operator could not do something that its rows do not depend on, such as saving its
    /// state. All rows went through, and everything else ended well.
    #[error("{0}")]
    Late(#[source] OperatorError),
    /// The operator panicked.
    #[error("panicked: {0}")]
    Panicked(String),
    /// An input closed without an end marker.
    #[error("its input closed before the end of the stream")]
    Truncated,
    /// The run was aborted while the stage still had work.
    #[error("aborted before the stage had finished")]
    Aborted,
    /// The operator did not return from a call after the run was aborted; its thread was left
    /// behind.
    #[error("still busy {0:?} after the run was aborted; its thread was left behind")]
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
