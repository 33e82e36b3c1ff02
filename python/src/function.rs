//! A pipeline that runs within one call: fed by the calling thread, its rows kept.

use std::sync::{Arc, Mutex};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use pyo3::prelude::*;
use trommel::sets::SetReader;
use trommel::{Collect, Feed, FeedError, Feeder, Supplied, Topology, load_supplied, registry};

use crate::errors::{invalid, of_arguments, of_run, of_stream};
use crate::form::{Form, Former, parts};
use crate::input::{Batches, batches};
use crate::live::Cell;
use crate::table::Table;
use crate::wait::{TICK, until};

/// Batches that wait between the calling thread and the pipeline.
const WAITING: usize = 4;

/// The data of a source: its id, the data, its form.
type Input = (String, Py<PyAny>, Form);

/// Data on its way into a source.
struct Feeding {
    rows: Batches,
    former: Former,
    /// The first part, which has shown the columns, and the rest of its batch.
    first: Option<RecordBatch>,
    rest: Vec<RecordBatch>,
    schema: SchemaRef,
}

/// Runs the pipeline `config`, with a `feed` for each input and a `collect` named `sink`, and
/// returns the rows of the sink.
#[pyfunction]
pub(crate) fn run(py: Python<'_>, config: &str, inputs: Vec<Input>, sink: &str) -> PyResult<Table> {
    let sets = Arc::new(Mutex::new(SetReader::new()));
    let mut supplied = Supplied::new();
    let mut feedings = Vec::with_capacity(inputs.len());
    for (id, data, form) in inputs {
        let rows = batches(data.bind(py), "item")?;
        let feeding = py.detach(|| Feeding::new(rows, form, Arc::clone(&sets)))?;
        let (feed, feeder) = Feed::new(Arc::clone(&feeding.schema), WAITING)?;
        supplied = supplied.stage(id, feed);
        feedings.push((feeding, feeder));
    }
    let (collect, kept) = Collect::new();
    supplied = supplied.stage(sink, collect);
    let pipeline = py
        .detach(|| load_supplied(config, "arguments", &registry(), &[], supplied))
        .map_err(|errors| of_arguments(&errors))?;
    let schema = columns_of(&pipeline.topology, sink);
    let running = py.detach(|| pipeline.start()).map_err(|error| of_run(py, &error))?;
    let cell = Cell::new(running);
    let fed = feed_all(py, feedings);
    let outcome = fed.and_then(|()| until(py, || cell.wait()));
    match outcome {
        Ok(None) => Ok(Table::new(schema, kept.take())),
        Ok(Some(error)) => Err(of_run(py, &error)),
        Err(raised) => {
            py.detach(|| cell.interrupt());
            Err(raised)
        }
    }
}

/// The columns of the rows that the stage `sink` takes.
pub(crate) fn columns_of(topology: &Topology, sink: &str) -> SchemaRef {
    let stage = topology.stages().iter().find(|stage| stage.id == sink);
    let input = stage.and_then(|stage| stage.inputs.first()).expect("a sink reads a stage");
    let outputs = topology.stages().iter().flat_map(|stage| {
        let ports = stage.output_ports.iter().map(|port| format!("{}.{port}", stage.id));
        let names =
            if stage.output_ports.is_empty() { vec![stage.id.clone()] } else { ports.collect() };
        names.into_iter().zip(&stage.outputs)
    });
    let found = outputs.into_iter().find(|(name, _)| name == input);
    Arc::clone(found.expect("the graph knows the inputs").1)
}

/// Feeds one input after the other.
fn feed_all(py: Python<'_>, feedings: Vec<(Feeding, Feeder)>) -> PyResult<()> {
    for (mut feeding, feeder) in feedings {
        while let Some(batch) = py.detach(|| feeding.next())? {
            if !feed(py, &feeder, batch)? {
                // The run has ended; its error says why.
                return Ok(());
            }
        }
    }
    Ok(())
}

/// Hands a batch over; false if the run takes no more.
pub(crate) fn feed(py: Python<'_>, feeder: &Feeder, batch: RecordBatch) -> PyResult<bool> {
    let mut batch = Some(batch);
    until(py, || {
        let waiting = batch.take().expect("a full queue gives it back");
        match feeder.send(waiting, TICK) {
            Ok(()) => Some(Ok(true)),
            Err(FeedError::Full(back)) => {
                batch = Some(back);
                None
            }
            Err(FeedError::Ended) => Some(Ok(false)),
            Err(error) => Some(Err(invalid(error))),
        }
    })?
}

impl Feeding {
    fn new(mut rows: Batches, form: Form, sets: Arc<Mutex<SetReader>>) -> PyResult<Self> {
        let mut former = Former::new(form, &rows.schema, sets).map_err(invalid)?;
        let whole = loop {
            match rows.rows.next().transpose().map_err(of_stream)? {
                Some(batch) if batch.num_rows() == 0 => {}
                other => break other,
            }
        };
        let whole = whole.unwrap_or_else(|| RecordBatch::new_empty(Arc::clone(&rows.schema)));
        let mut rest: Vec<RecordBatch> = parts(&whole, former.rows_max()).collect();
        rest.reverse();
        let first = rest.pop().unwrap_or(whole);
        let first = former.form(&first).map_err(invalid)?;
        let schema = first.schema();
        Ok(Self { rows, former, first: Some(first), rest, schema })
    }

    fn next(&mut self) -> PyResult<Option<RecordBatch>> {
        if let Some(first) = self.first.take() {
            return Ok(Some(first));
        }
        while self.rest.is_empty() {
            let Some(batch) = self.rows.rows.next() else { return Ok(None) };
            let batch = batch.map_err(of_stream)?;
            self.rest.extend(parts(&batch, self.former.rows_max()));
            self.rest.reverse();
        }
        let part = self.rest.pop().expect("there is one");
        self.former.form(&part).map(Some).map_err(invalid)
    }
}
