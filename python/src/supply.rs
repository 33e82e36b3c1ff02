//! Sources and sinks of a pipeline that are Python objects or are fed by Python calls.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use trommel::error::OperatorError;
use trommel::{Collect, Collected, Feed, Feeder, ForEach, Memory, Supplied};

use crate::import::{Form, Importer, Reading, Rows, Shared};
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
    pub(crate) importer: Importer,
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
    let shared = Shared::new();
    for (id, form, sample) in feeds {
        let (importer, schema) = settled(py, form, &sample, &shared)?;
        let (feed, feeder) = Feed::new(schema, WAITING)?;
        supplied = supplied.stage(&id, feed);
        ends.fed.insert(id, Mutex::new(Fed { feeder: Some(Arc::new(feeder)), importer }));
    }
    for (id, form, sample, iterator) in iterators {
        let (importer, schema) = settled(py, form, &sample, &shared)?;
        let rows = PythonRows { iterator, importer, waiting: VecDeque::new() };
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

/// An importer that `sample` has settled, and the columns of its batches.
fn settled(
    py: Python<'_>,
    form: Form,
    sample: &Py<PyAny>,
    shared: &Arc<Mutex<Shared>>,
) -> PyResult<(Importer, SchemaRef)> {
    let mut importer = Importer::new(form, Arc::clone(shared));
    let mut reading = Reading::new(Rows::open(sample.bind(py))?, &mut importer)?;
    reading.settle(py, &mut importer)?;
    importer.settle();
    let schema = match importer.schema() {
        Some(schema) => schema,
        // Rows as they are have the columns of the first ones.
        None => importer.columns_of(py, &Rows::open(sample.bind(py))?)?,
    };
    Ok((importer, schema))
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
    importer: Importer,
    waiting: VecDeque<RecordBatch>,
}

impl Iterator for PythonRows {
    type Item = Result<RecordBatch, OperatorError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(batch) = self.waiting.pop_front() {
                return Some(Ok(batch));
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
        let rows = Rows::open(&next?)?;
        self.waiting.extend(self.importer.import_all(py, rows)?);
        Ok(true)
    }
}

/// The end of a source that was not found.
pub(crate) fn unknown<'a>(what: &str, id: &str, known: impl Iterator<Item = &'a String>) -> PyErr {
    let known = known.map(|id| format!("`{id}`")).collect::<Vec<_>>().join(", ");
    PyRuntimeError::new_err(format!("there is no {what} `{id}`; there is {known}"))
}
