//! Sources and sinks of a pipeline that are Python objects or are fed by Python calls.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use trommel::error::OperatorError;
use trommel::sets::SetReader;
use trommel::{Collect, Collected, Feed, Feeder, ForEach, Memory, Supplied};

use crate::errors::{invalid, of_stream};
use crate::form::{Form, Former, parts};
use crate::input::batches;
use crate::table::Table;

/// Batches that wait between a Python call and the pipeline.
const WAITING: usize = 4;

/// A source that Python calls feed: its id, its form, and data that shows its columns.
pub(crate) type FedSource = (String, Form, Py<PyAny>);
/// A source that is a Python iterator: its id, its form, data that shows its columns, the iterator.
pub(crate) type IteratorSource = (String, Form, Py<PyAny>, Py<PyAny>);
/// A sink: its id, and the function that it calls, or none to keep all rows.
pub(crate) type Sink = (String, Option<Py<PyAny>>);

/// The feeding end of a source.
pub(crate) struct Fed {
    /// `None` once the source was finished.
    pub(crate) feeder: Option<Arc<Feeder>>,
    pub(crate) former: Former,
}

/// The ends of a pipeline in Python.
#[derive(Default)]
pub(crate) struct Ends {
    pub(crate) fed: BTreeMap<String, Mutex<Fed>>,
    pub(crate) kept: BTreeMap<String, Collected>,
}

/// Makes the operators of the stages that Python supplies, and their ends.
pub(crate) fn supply(
    py: Python<'_>,
    feeds: Vec<FedSource>,
    iterators: Vec<IteratorSource>,
    sinks: Vec<Sink>,
) -> PyResult<(Supplied, Ends)> {
    let mut supplied = Supplied::new();
    let mut ends = Ends::default();
    // The sets of all sources of a pipeline are joined: equal texts get equal numbers.
    let sets = Arc::new(Mutex::new(SetReader::new()));
    for (id, form, sample) in feeds {
        let (former, schema) = formed(py, form, &sample, &sets)?;
        let (feed, feeder) = Feed::new(schema, WAITING)?;
        supplied = supplied.stage(&id, feed);
        ends.fed.insert(id, Mutex::new(Fed { feeder: Some(Arc::new(feeder)), former }));
    }
    for (id, form, sample, iterator) in iterators {
        let (former, schema) = formed(py, form, &sample, &sets)?;
        let rows = PythonRows { iterator, former, waiting: VecDeque::new() };
        supplied = supplied.stage(id, Memory::fallible(schema, rows));
    }
    for (id, function) in sinks {
        supplied = match function {
            Some(function) => supplied.stage(id, ForEach::new(move |rows| call(&function, rows))),
            None => {
                let (sink, rows) = Collect::new();
                ends.kept.insert(id.clone(), rows);
                supplied.stage(id, sink)
            }
        };
    }
    Ok((supplied, ends))
}

/// A former of data with the columns of `sample`, and the columns of its form.
fn formed(
    py: Python<'_>,
    form: Form,
    sample: &Py<PyAny>,
    sets: &Arc<Mutex<SetReader>>,
) -> PyResult<(Former, SchemaRef)> {
    let mut sample = batches(sample.bind(py), "item")?;
    let first = py.detach(|| sample.rows.next()).transpose().map_err(of_stream)?;
    let first = first.unwrap_or_else(|| RecordBatch::new_empty(Arc::clone(&sample.schema)));
    // Another one reads the sample, whose rows come again.
    let own = Arc::new(Mutex::new(SetReader::new()));
    let mut trial = Former::new(form.clone(), &sample.schema, own).map_err(invalid)?;
    let first = first.slice(0, first.num_rows().min(trial.rows_max()));
    let schema = trial.form(&first).map_err(invalid)?.schema();
    let former = Former::new(form, &sample.schema, Arc::clone(sets)).map_err(invalid)?;
    Ok((former, schema))
}

fn call(function: &Py<PyAny>, rows: RecordBatch) -> Result<(), OperatorError> {
    let called = Python::try_attach(|py| function.call1(py, (Table::of_batch(rows),)).map(drop));
    match called {
        Some(called) => Ok(called?),
        None => Err("the interpreter has ended".into()),
    }
}

/// The batches of a Python iterator, which the thread of the source asks.
struct PythonRows {
    iterator: Py<PyAny>,
    former: Former,
    waiting: VecDeque<RecordBatch>,
}

impl Iterator for PythonRows {
    type Item = Result<RecordBatch, OperatorError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(part) = self.waiting.pop_front() {
                return Some(self.former.form(&part).map_err(|fault| fault.to_string().into()));
            }
            match Python::try_attach(|py| self.ask(py)) {
                None => return Some(Err("the interpreter has ended".into())),
                Some(Err(error)) => return Some(Err(Box::new(error))),
                Some(Ok(false)) => return None,
                Some(Ok(true)) => {}
            }
        }
    }
}

impl PythonRows {
    /// Takes the next object of the iterator; false if there is none.
    fn ask(&mut self, py: Python<'_>) -> PyResult<bool> {
        let Some(next) = self.iterator.bind(py).try_iter()?.next() else { return Ok(false) };
        let rows = batches(&next?, "item")?;
        let rows_max = self.former.rows_max();
        let rows: Vec<RecordBatch> =
            py.detach(|| rows.rows.collect::<Result<_, _>>()).map_err(of_stream)?;
        self.waiting.extend(rows.iter().flat_map(|batch| parts(batch, rows_max)));
        Ok(true)
    }
}

/// The end of a source that was not found.
pub(crate) fn unknown<'a>(what: &str, id: &str, known: impl Iterator<Item = &'a String>) -> PyErr {
    let known = known.map(|id| format!("`{id}`")).collect::<Vec<_>>().join(", ");
    PyRuntimeError::new_err(format!("there is no {what} `{id}`; there is {known}"))
}
