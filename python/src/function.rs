//! A pipeline that runs within one call: fed by the calling thread, its rows kept.

use std::collections::VecDeque;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use pyo3::prelude::*;
use trommel::{Collect, Feed, FeedError, Feeder, Supplied, Topology, load_supplied, registry};

use crate::errors::{entry, invalid, of_arguments, of_run};
use crate::import::{Form, Importer, Reading, Rows, Shared};
use crate::live::Cell;
use crate::table::Table;
use crate::wait::{TICK, until};

/// Batches that wait between the calling thread and the pipeline.
const WAITING: usize = 4;

/// The data of a source: its id, the data, its form.
type Input = (String, Py<PyAny>, Form);

/// Maximum bytes that are read before the pipeline is built: a pipeline with less data runs in one
/// place.
const LOOK_BYTES: usize = 4 << 20;

/// Data on its way into a source.
struct Feeding {
    reading: Reading,
    importer: Importer,
    /// The first batches, and the bytes of all batches, if these are the only ones.
    first: VecDeque<PyResult<RecordBatch>>,
    bytes: Option<u64>,
    /// The columns of rows that are imported as they are.
    columns: Option<SchemaRef>,
}

/// Runs the pipeline `config`, with a `feed` for each input and a `collect` named `sink`, and
/// returns the rows of the sink.
#[pyfunction]
pub(crate) fn run(py: Python<'_>, config: &str, inputs: Vec<Input>, sink: &str) -> PyResult<Table> {
    entry(|| {
        let (ids, feedings) = open(py, inputs)?;
        let mut supplied = Supplied::new();
        let mut feeds = Vec::with_capacity(feedings.len());
        for (id, feeding) in ids.into_iter().zip(feedings) {
            let schema = feeding.columns.clone().or_else(|| feeding.importer.schema());
            let schema = schema.expect("each column has a type");
            let (feed, feeder) = Feed::new(schema, WAITING)?;
            let feed = feeding.bytes.into_iter().fold(feed, Feed::bytes);
            supplied = supplied.stage(id, feed);
            feeds.push((feeding, feeder));
        }
        let (collect, kept) = Collect::new();
        supplied = supplied.stage(sink, collect);
        let pipeline = py
            .detach(|| load_supplied(config, "arguments", &registry(), &[], supplied))
            .map_err(|errors| of_arguments(&errors))?;
        let schema = columns_of(&pipeline.topology, sink);
        let running = py.detach(|| pipeline.start()).map_err(|error| of_run(py, &error))?;
        let cell = Cell::new(running);
        // A panic in here is to abort the run, too.
        let fed = entry(|| feed_all(py, feeds));
        let outcome = fed.and_then(|()| until(py, || cell.wait()));
        match outcome {
            Ok(None) => Ok(Table::new(schema, kept.take())),
            Ok(Some(error)) => Err(of_run(py, &error)),
            Err(raised) => {
                py.detach(|| cell.interrupt());
                Err(raised)
            }
        }
    })
}

/// Opens all inputs, and settles their types, which an input without a type takes from another.
fn open(py: Python<'_>, inputs: Vec<Input>) -> PyResult<(Vec<String>, Vec<Feeding>)> {
    let shared = Shared::new();
    let mut ids = Vec::with_capacity(inputs.len());
    let mut feedings = Vec::with_capacity(inputs.len());
    for (id, data, form) in inputs {
        let mut importer = Importer::new(form, Arc::clone(&shared));
        let rows = Rows::open(data.bind(py))?;
        let columns = importer.takes_all().then(|| importer.columns_of(py, &rows)).transpose()?;
        let mut reading = Reading::new(rows, &mut importer)?;
        reading.settle(py, &mut importer)?;
        ids.push(id);
        feedings.push(Feeding { reading, importer, first: VecDeque::new(), bytes: None, columns });
    }
    feedings.iter_mut().for_each(|feeding| feeding.importer.settle());
    // Inputs are imported one after the other, so the next one waits for the end of a long one.
    let mut looked_at = feedings.iter_mut();
    while looked_at.next().is_some_and(|feeding| feeding.look_ahead(py)) {}
    Ok((ids, feedings))
}

impl Feeding {
    /// Reads the first batches. Returns whether these are all batches.
    fn look_ahead(&mut self, py: Python<'_>) -> bool {
        let mut bytes = 0;
        while bytes < LOOK_BYTES {
            let Some(batch) = self.reading.next(py, &mut self.importer).transpose() else {
                self.bytes = Some(bytes as u64);
                return true;
            };
            let has_failed = batch.is_err();
            bytes += batch.as_ref().map_or(0, RecordBatch::get_array_memory_size);
            // The mistakes in the arguments are told before those in the data.
            self.first.push_back(batch);
            if has_failed {
                break;
            }
        }
        false
    }

    fn next(&mut self, py: Python<'_>) -> PyResult<Option<RecordBatch>> {
        match self.first.pop_front() {
            Some(batch) => batch.map(Some),
            None => self.reading.next(py, &mut self.importer),
        }
    }
}

/// The columns of the rows that the stage `sink` takes.
pub(crate) fn columns_of(topology: &Topology, sink: &str) -> SchemaRef {
    let stage = topology.stages().iter().find(|stage| stage.id == sink);
    let input = stage.and_then(|stage| stage.inputs.first()).expect("a sink reads a stage");
    let outputs = topology.stages().iter().flat_map(|stage| {
        (0..).zip(&stage.outputs).map(|(port, schema)| (stage.output_name(port), schema))
    });
    let found = outputs.into_iter().find(|(name, _)| name == input);
    Arc::clone(found.expect("the graph knows the inputs").1)
}

/// Feeds one input after the other.
fn feed_all(py: Python<'_>, feeds: Vec<(Feeding, Feeder)>) -> PyResult<()> {
    for (mut feeding, feeder) in feeds {
        while let Some(batch) = feeding.next(py)? {
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
