//! A pipeline that runs on while Python asks it.

use std::collections::BTreeMap;
use std::sync::{Arc, TryLockError};
use std::time::{Duration, Instant};

use arrow_schema::SchemaRef;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde_json::{Map, Value, json};
use trommel::report::Report;
use trommel::runtime::RunPhase;
use trommel::{
    Override, Pipeline, QueryError, Request, RunOptions, Topology, Watch, load_supplied, registry,
};

use crate::errors::{PipelineError, entry, invalid, of_config, of_query, of_run};
use crate::function::{columns_of, feed};
use crate::import::Rows;
use crate::live::{Cell, lock};
use crate::supply::{Ends, FedSource, IteratorSource, Sink, supply, unknown};
use crate::table::Table;
use crate::wait::{TICK, until};

/// A started pipeline.
#[pyclass(frozen, module = "trommel._trommel")]
pub(crate) struct Run {
    name: String,
    cell: Arc<Cell>,
    ends: Ends,
    /// Columns of the rows that sinks keep.
    columns: BTreeMap<String, SchemaRef>,
    /// Ids of the sources.
    #[pyo3(get)]
    sources: Vec<String>,
}

/// A standing query of a running pipeline.
#[pyclass(frozen, module = "trommel._trommel")]
pub(crate) struct StandingQuery {
    watch: Watch,
    cell: Arc<Cell>,
}

/// The ends of a pipeline that Python supplies: sources that it feeds, iterators, and sinks.
type PythonEnds = (Vec<FedSource>, Vec<IteratorSource>, Vec<Sink>);

/// A pipeline that was read, with its ends in Python.
struct Loaded {
    pipeline: Pipeline,
    ends: Ends,
}

fn load(
    py: Python<'_>,
    config: &str,
    file: &str,
    overrides: &[String],
    (feeds, iterators, sinks): PythonEnds,
) -> PyResult<Loaded> {
    let overrides: Vec<Override> =
        overrides.iter().map(|text| text.parse().map_err(invalid)).collect::<PyResult<_>>()?;
    let (supplied, ends) = supply(py, feeds, iterators, sinks)?;
    let pipeline = py
        .detach(|| load_supplied(config, file, &registry(), &overrides, supplied))
        .map_err(of_config)?;
    Ok(Loaded { pipeline, ends })
}

/// Starts a pipeline.
#[pyfunction]
pub(crate) fn start(
    py: Python<'_>,
    config: &str,
    file: &str,
    overrides: Vec<String>,
    ends: PythonEnds,
) -> PyResult<Run> {
    entry(|| {
        let Loaded { pipeline, ends } = load(py, config, file, &overrides, ends)?;
        let topology = &pipeline.topology;
        let columns =
            ends.kept.keys().map(|sink| (sink.clone(), columns_of(topology, sink))).collect();
        let is_source = |stage: &&trommel::graph::StageInfo| stage.inputs.is_empty();
        let sources = topology.stages().iter().filter(is_source).map(|stage| stage.id.clone());
        let sources = sources.collect();
        let name = pipeline.name.clone();
        let running = py.detach(|| pipeline.start()).map_err(|error| of_run(py, &error))?;
        Ok(Run { name, cell: Cell::new(running), ends, columns, sources })
    })
}

/// The plan of a pipeline as JSON: its stages, and the threads that run their parts.
#[pyfunction]
pub(crate) fn plan(
    py: Python<'_>,
    config: &str,
    file: &str,
    overrides: Vec<String>,
    ends: PythonEnds,
) -> PyResult<String> {
    entry(|| {
        let Loaded { pipeline, .. } = load(py, config, file, &overrides, ends)?;
        Ok(describe(&pipeline.name, &pipeline.topology, pipeline.options).to_string())
    })
}

fn describe(name: &str, topology: &Topology, options: RunOptions) -> Value {
    let labels: Vec<&str> = topology.parts().collect();
    let stages = topology.stages().iter().map(|stage| {
        let outputs = stage.outputs.iter().map(|schema| {
            let fields = schema.fields().iter();
            let fields =
                fields.map(|field| (field.name().clone(), field.data_type().to_string().into()));
            Value::Object(fields.collect::<Map<_, _>>())
        });
        json!({
            "id": stage.id,
            "operator": stage.operator,
            "inputs": stage.inputs,
            "outputs": outputs.collect::<Vec<_>>(),
            "division": stage.division.name(),
            "workers": stage.workers(),
            "parts": stage.parts.iter().map(|&part| labels[part]).collect::<Vec<_>>(),
        })
    });
    let threads = topology.plan().groups.iter().map(|group| {
        let parts = group.parts.iter().map(|&part| labels[part]).collect::<Vec<_>>();
        json!({ "parts": parts, "core": group.core })
    });
    let devices =
        topology.devices().map(|(part, device)| json!({ "part": labels[part], "device": device }));
    json!({
        "name": name,
        "stages": stages.collect::<Vec<_>>(),
        "threads": threads.collect::<Vec<_>>(),
        "devices": devices.collect::<Vec<_>>(),
        "queue": { "batches": options.queue.batches, "bytes": options.queue.bytes },
    })
}

fn request(name: &str, parameters: &str) -> PyResult<Request> {
    let parameters: Map<String, Value> = serde_json::from_str(parameters).map_err(invalid)?;
    let request = Request::new(name);
    Ok(parameters.into_iter().fold(request, |request, (name, value)| request.with(name, value)))
}

/// A time in seconds; none for no limit.
fn seconds(seconds: Option<f64>) -> PyResult<Option<Duration>> {
    let Some(seconds) = seconds else { return Ok(None) };
    Duration::try_from_secs_f64(seconds).map(Some).map_err(|_| {
        PyValueError::new_err(format!("invalid time {seconds}: seconds are a number from 0 on"))
    })
}

#[pymethods]
impl Run {
    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    #[getter]
    fn phase(&self, py: Python<'_>) -> PyResult<&'static str> {
        entry(|| {
            self.cell.check_process()?;
            // A run has the phase of its end after somebody has looked.
            py.detach(|| self.cell.has_ended());
            Ok(match self.cell.handle.phase() {
                RunPhase::Running => "running",
                RunPhase::Aborted => "aborted",
                RunPhase::Ended => "ended",
                _ => "draining",
            })
        })
    }

    /// Answers a query; asks again while the stage is busy, so that signals are seen meanwhile.
    fn query(
        &self,
        py: Python<'_>,
        stage: &str,
        name: &str,
        parameters: &str,
        timeout: Option<f64>,
    ) -> PyResult<Table> {
        entry(|| {
            self.cell.check_process()?;
            let (request, limit) = (request(name, parameters)?, seconds(timeout)?);
            let (queries, begin) = (self.cell.handle.queries(), Instant::now());
            let answer = until(py, || {
                let left = limit.map(|limit| limit.saturating_sub(begin.elapsed()));
                match queries.query_within(stage, &request, left.unwrap_or(TICK).min(TICK)) {
                    Err(QueryError::TimedOut { stage, .. }) => match left {
                        Some(left) if left <= TICK => {
                            let limit = limit.unwrap_or_default();
                            Some(Err(QueryError::TimedOut { stage, limit }))
                        }
                        _ => None,
                    },
                    answer => Some(answer),
                }
            })?;
            answer.map(Table::of_batch).map_err(|error| of_query(&error))
        })
    }

    fn watch(&self, stage: &str, name: &str, parameters: &str) -> PyResult<StandingQuery> {
        entry(|| {
            self.cell.check_process()?;
            let watch = self.cell.handle.queries().watch(stage, request(name, parameters)?);
            let watch = watch.map_err(|error| of_query(&error))?;
            Ok(StandingQuery { watch, cell: Arc::clone(&self.cell) })
        })
    }

    /// The report of the run so far, as the command line writes it.
    fn report(&self) -> PyResult<String> {
        entry(|| {
            self.cell.check_process()?;
            Ok(Report::new(&self.name, &self.cell.handle.metrics(), None).to_string())
        })
    }

    /// Bytes and items that the sources have sent so far, and bytes in all, if known.
    fn progress(&self) -> PyResult<(u64, u64, Option<u64>)> {
        entry(|| {
            self.cell.check_process()?;
            let metrics = self.cell.handle.metrics();
            let (mut bytes, mut items, mut total) = (0, 0, Some(0));
            for stage in metrics.stages.iter().filter(|stage| self.sources.contains(&stage.id)) {
                let progress = stage.progress();
                bytes += progress.bytes;
                items += stage.items_out();
                total = total.zip(progress.bytes_total).map(|(sum, bytes)| sum + bytes);
            }
            Ok((bytes, items, total.filter(|&total| total > 0)))
        })
    }

    fn stop(&self, within: Option<f64>) -> PyResult<()> {
        entry(|| {
            self.cell.check_process()?;
            match seconds(within)? {
                Some(limit) => self.cell.handle.stop_within(limit),
                None => self.cell.handle.stop(),
            }
            Ok(())
        })
    }

    fn abort(&self) -> PyResult<()> {
        entry(|| {
            self.cell.check_process()?;
            self.cell.handle.abort();
            Ok(())
        })
    }

    /// As `abort`, and waits a moment for the threads; after a signal.
    fn interrupt(&self, py: Python<'_>) -> PyResult<()> {
        entry(|| {
            self.cell.check_process()?;
            py.detach(|| self.cell.interrupt());
            Ok(())
        })
    }

    /// Waits for the end; false if it has not come within the time. The exception of a failed
    /// run is raised.
    fn join(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<bool> {
        entry(|| {
            self.cell.check_process()?;
            let limit = seconds(timeout)?;
            let begin = Instant::now();
            let outcome = until(py, || match self.cell.wait() {
                Some(outcome) => Some(Some(outcome)),
                None => limit.filter(|&limit| begin.elapsed() >= limit).map(|_| None),
            })?;
            match outcome {
                None => Ok(false),
                Some(None) => Ok(true),
                Some(Some(error)) => Err(of_run(py, &error)),
            }
        })
    }

    /// Feeds data to a source; false if the run takes no more.
    fn feed(&self, py: Python<'_>, source: &str, data: &Bound<'_, PyAny>) -> PyResult<bool> {
        entry(|| {
            self.cell.check_process()?;
            let fed = self.ends.fed.get(source);
            let fed = fed.ok_or_else(|| unknown("source", source, self.ends.fed.keys()))?;
            let rows = Rows::open(data)?;
            let (feeder, batches) = loop {
                // Another thread may feed the source: its lock is tried, so that signals are seen.
                let tried = match fed.try_lock() {
                    Ok(fed) => Some(fed),
                    Err(TryLockError::Poisoned(fed)) => Some(fed.into_inner()),
                    Err(TryLockError::WouldBlock) => None,
                };
                if let Some(mut fed) = tried {
                    let Some(feeder) = fed.feeder.clone() else {
                        let said =
                            format!("the source `{source}` was finished and takes no more data");
                        return Err(PipelineError::new_err(said));
                    };
                    break (feeder, fed.importer.import_all(py, rows)?);
                }
                py.detach(std::thread::yield_now);
                py.check_signals()?;
            };
            for batch in batches {
                if !feed(py, &feeder, batch)? {
                    return Ok(false);
                }
            }
            Ok(true)
        })
    }

    /// Ends a source that is fed. Further calls change nothing.
    fn finish(&self, py: Python<'_>, source: &str) -> PyResult<()> {
        entry(|| {
            self.cell.check_process()?;
            let fed = self.ends.fed.get(source);
            let fed = fed.ok_or_else(|| unknown("source", source, self.ends.fed.keys()))?;
            py.detach(|| lock(fed).feeder.take());
            Ok(())
        })
    }

    /// The rows that a sink has kept and that were not taken, in batches of any size.
    fn take(&self, py: Python<'_>, sink: &str) -> PyResult<Table> {
        entry(|| {
            let kept = self.ends.kept.get(sink);
            let kept = kept.ok_or_else(|| unknown("sink", sink, self.ends.kept.keys()))?;
            let rows = py.detach(|| kept.take());
            Ok(Table::new(Arc::clone(&self.columns[sink]), rows))
        })
    }

    /// The rows that a sink has kept, without taking them.
    fn rows(&self, py: Python<'_>, sink: &str) -> PyResult<Table> {
        entry(|| {
            let kept = self.ends.kept.get(sink);
            let kept = kept.ok_or_else(|| unknown("sink", sink, self.ends.kept.keys()))?;
            let rows = py.detach(|| kept.batches());
            Ok(Table::new(Arc::clone(&self.columns[sink]), rows))
        })
    }

    /// Number of rows that a sink has kept and that were not taken.
    fn count(&self, sink: &str) -> PyResult<usize> {
        entry(|| {
            let kept = self.ends.kept.get(sink);
            kept.map(|kept| kept.rows()).ok_or_else(|| unknown("sink", sink, self.ends.kept.keys()))
        })
    }

    /// Items that a stage has taken so far.
    fn items_in(&self, stage: &str) -> PyResult<u64> {
        entry(|| {
            let metrics = self.cell.handle.metrics();
            Ok(metrics.stage(stage).map_or(0, trommel::metrics::StageMetrics::items_in))
        })
    }
}

#[pymethods]
impl StandingQuery {
    /// The last answer and its age in seconds; none until there is one.
    fn latest(&self) -> PyResult<Option<(Table, f64)>> {
        entry(|| {
            self.cell.check_process()?;
            let Some(latest) = self.watch.latest() else { return Ok(None) };
            match latest.answer() {
                Ok(rows) => Ok(Some((Table::of_batch(rows.clone()), latest.age().as_secs_f64()))),
                Err(error) => Err(of_query(error)),
            }
        })
    }

    /// Whether the run has ended.
    #[getter]
    fn has_ended(&self, py: Python<'_>) -> PyResult<bool> {
        entry(|| Ok(py.detach(|| self.cell.has_ended())))
    }
}
