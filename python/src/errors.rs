//! Errors of the engine as Python exceptions, with the texts of the command line.

use std::error::Error;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};

use pyo3::create_exception;
use pyo3::exceptions::{PyOSError, PyRuntimeError, PyTimeoutError, PyValueError};
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

/// Runs the body of a function that Python calls: no panic crosses the border.
///
/// A panic is a fault of this crate or of the engine; what the call has changed stays consistent,
/// as locks here do after a panic.
pub(crate) fn entry<T>(body: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|panic| {
        let text = match (panic.downcast_ref::<&str>(), panic.downcast_ref::<String>()) {
            (Some(text), _) => text,
            (None, Some(text)) => text.as_str(),
            (None, None) => "without a reason",
        };
        let said = format!("internal error, a fault of Trommel that is worth a report: {text}");
        Err(PipelineError::new_err(said))
    })
}

/// A value that does not fit.
pub(crate) fn invalid(message: impl ToString) -> PyErr {
    PyValueError::new_err(message.to_string())
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
