//! Errors of the engine as Python exceptions, with the texts of the command line.

use std::error::Error;
use std::io;

use arrow_schema::ArrowError;
use pyo3::create_exception;
use pyo3::exceptions::{
    PyKeyboardInterrupt, PyOSError, PyRuntimeError, PyTimeoutError, PyValueError,
};
use pyo3::prelude::*;
use trommel::error::{OperatorError, RunError, RunErrorCause};
use trommel::{ConfigErrors, QueryError};

create_exception!(
    trommel,
    PipelineError,
    PyRuntimeError,
    "A pipeline failed while it ran, or was aborted.\n\nThe text names the stage, its operator and \
     the cause. `__cause__` is the exception of a Python source or sink, or the `OSError` of a \
     file, if one of them was the cause."
);

/// A value that does not fit.
pub(crate) fn invalid(message: impl ToString) -> PyErr {
    PyValueError::new_err(message.to_string())
}

/// The error of a stream of another library. Python code in it may have been interrupted; only the
/// text of its exception comes through.
pub(crate) fn of_stream(error: ArrowError) -> PyErr {
    let text = error.to_string();
    if text.contains("KeyboardInterrupt") {
        return PyKeyboardInterrupt::new_err(());
    }
    invalid(text)
}

/// All mistakes of a configuration, each with its place.
pub(crate) fn of_config(errors: ConfigErrors) -> PyErr {
    invalid(errors)
}

/// All mistakes in the arguments of a function: the parameter in place of its path in the
/// configuration.
pub(crate) fn of_arguments(errors: &ConfigErrors) -> PyErr {
    let lines: Vec<String> = errors
        .0
        .iter()
        .map(|error| {
            // A fault of the graph begins with its parameter already, in backticks.
            let blamed = error.message.strip_prefix('`').and_then(|text| text.split_once("`: "));
            let path = error.path.split_once(".with.").map(|(_, parameter)| parameter);
            match (blamed, path) {
                (Some((parameter, message)), _) => format!("{parameter}: {message}"),
                (None, Some(parameter)) => format!("{parameter}: {}", error.message),
                (None, None) => error.message.clone(),
            }
        })
        .collect();
    invalid(lines.join("\n"))
}

/// The first cause of a failed run.
pub(crate) fn of_run(py: Python<'_>, error: &RunError) -> PyErr {
    let raised = PipelineError::new_err(error.to_string());
    let cause = match &error.cause {
        RunErrorCause::Failed(cause) | RunErrorCause::Late(cause) => python_cause(py, cause),
        RunErrorCause::Thread(cause) => Some(of_io(cause)),
        _ => None,
    };
    raised.set_cause(py, cause);
    raised
}

/// The exception of a Python object, or the error of a file, among the causes.
fn python_cause(py: Python<'_>, error: &OperatorError) -> Option<PyErr> {
    let mut next: Option<&(dyn Error + 'static)> = Some(&**error);
    while let Some(error) = next {
        if let Some(raised) = error.downcast_ref::<PyErr>() {
            return Some(raised.clone_ref(py));
        }
        if let Some(error) = error.downcast_ref::<io::Error>() {
            return Some(of_io(error));
        }
        next = error.source();
    }
    None
}

fn of_io(error: &io::Error) -> PyErr {
    match error.raw_os_error() {
        Some(code) => PyOSError::new_err((code, error.to_string())),
        None => PyOSError::new_err(error.to_string()),
    }
}

/// An operator that was called directly has failed.
pub(crate) fn of_operator(py: Python<'_>, error: &OperatorError) -> PyErr {
    python_cause(py, error).unwrap_or_else(|| invalid(error))
}

/// A query without an answer.
pub(crate) fn of_query(error: &QueryError) -> PyErr {
    let text = error.to_string();
    match error {
        QueryError::UnknownStage { .. }
        | QueryError::Unsupported { .. }
        | QueryError::Parameters { .. } => invalid(text),
        QueryError::TimedOut { .. } => PyTimeoutError::new_err(text),
        _ => PipelineError::new_err(text),
    }
}
