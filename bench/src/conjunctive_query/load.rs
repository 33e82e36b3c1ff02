//! The operator in a pipeline under a load: queries are sent at their times, whether or not earlier
//! ones are answered, and latency counts from the time at which a query was to be sent.

use std::fs;
use std::io;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::{UInt32Type, UInt64Type};
use arrow_schema::SchemaRef;
use hdrhistogram::Histogram;
use trommel::conjunctive_query::QueryOutput;
use trommel::error::BindError;
use trommel::operator::{
    BindContext, Fragment, Load, OperatorError, OperatorSpec, Output, Source, SourceFlow,
};
use trommel::placement::available_cores;
use trommel::{ConjunctiveQuery, Discard, ForEach, Graph, Memory, Metrics, RunOptions};

use super::documents::sets;
use super::index::Workload;

/// Queries that are sent at once at most: a batch, of which the queries that are due are a slice.
const ROWS: usize = 16_384;

/// Queries of the beginning, as a share of the time, whose latency does not count.
const WARM: f64 = 0.1;

/// An index in a file, which is removed at the end, and queries.
pub(super) struct Served {
    folder: PathBuf,
    batches: Arc<Vec<RecordBatch>>,
    right: Arc<Vec<u32>>,
}

/// The parameters of a run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Offer {
    pub(super) batch_queries: usize,
    pub(super) deadline_ms: f64,
    /// Queries a second; `None`: as fast as they are taken.
    pub(super) rate: Option<f64>,
    /// The time for which queries are sent.
    pub(super) time: Duration,
    /// Cores of the pipeline; 0: the engine places the parts.
    pub(super) cores: usize,
}

/// The outcome of a run.
pub(super) struct Outcome {
    /// Queries answered a second, from the first query to the last answer.
    pub(super) rate: f64,
    /// From the intended time of a query to its answer in the sink, in nanoseconds.
    pub(super) latency: Histogram<u64>,
    /// Mean queries of a batch of the operator.
    pub(super) batch: f64,
}

impl Served {
    /// Writes the index of a workload to a file, by the operator.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub(super) fn new(workload: &Workload) -> io::Result<Self> {
        let name = format!("trommel-bench-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        fs::create_dir_all(&folder)?;
        let begins = (0..workload.queries()).step_by(ROWS);
        let batch = |begin: usize| {
            let end = workload.queries().min(begin + ROWS);
            sets((begin..end).map(|query| workload.query(query)))
        };
        let served = Self {
            folder,
            batches: Arc::new(begins.map(batch).collect()),
            right: Arc::new(workload.right.counts.clone()),
        };
        served.write(workload);
        Ok(served)
    }

    fn path(&self) -> PathBuf {
        self.folder.join("index")
    }

    fn write(&self, workload: &Workload) {
        let documents = Arc::clone(&workload.documents);
        let schema = documents.batch(0).schema();
        let batches = (0..documents.batches()).map(move |number| documents.batch(number));
        let mut graph = Graph::new();
        let search = graph.add("search", ConjunctiveQuery::new().index_path(self.path()));
        let documents = graph.add("documents", Memory::new(SchemaRef::clone(&schema), batches));
        let queries = graph.add("queries", Memory::new(schema, []));
        graph.connect(documents, search).connect(queries, search);
        graph.add_after(search, "end", Discard::new());
        graph.build().expect("the stages fit").run(RunOptions::new()).expect("the index fits");
    }

    /// Sends queries as `offer` says.
    ///
    /// # Panics
    /// If a count is wrong, or an answer is missing.
    pub(super) fn run(&self, offer: &Offer) -> Outcome {
        let clock = Clock { start: Arc::default(), rate: offer.rate };
        let asking = Asking {
            clock: clock.clone(),
            time: offer.time,
            batches: Arc::clone(&self.batches),
            queries: self.right.len() as u64,
            sent: 0,
        };
        let answers = Arc::new(Mutex::new(Answers::new(clock, offer, Arc::clone(&self.right))));
        let place = Arc::clone(&answers);
        let metrics = run(&self.path(), offer, asking, move |rows| {
            place.lock().unwrap_or_else(PoisonError::into_inner).take(&rows);
            Ok(())
        });
        let stage = metrics.stage("search").expect("it is there");
        let counters = stage.parts.iter().flat_map(|part| &part.counters);
        let batches = counters.filter(|(name, _)| *name == "batches").map(|&(_, count)| count);
        let answers = answers.lock().unwrap_or_else(PoisonError::into_inner);
        answers.outcome(stage.items_in(), batches.sum())
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // The files of a run that failed stay, too, if they cannot be removed.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Runs the pipeline to its end.
fn run(
    index: &Path,
    offer: &Offer,
    asking: Asking,
    take: impl FnMut(RecordBatch) -> Result<(), OperatorError> + Send + 'static,
) -> Metrics {
    let mut graph = Graph::new();
    let source = graph.add("queries", asking);
    let search = ConjunctiveQuery::new()
        .index_path(index)
        .output(QueryOutput::Count)
        .batch_queries(offer.batch_queries)
        .deadline_ms(offer.deadline_ms);
    let search = graph.add_after(source, "search", search);
    let sink = graph.add_after(search, "answers", ForEach::new(take));
    if offer.cores > 0 {
        let cores = available_cores();
        let cores = &cores[..offer.cores.min(cores.len())];
        // Source and sink are on the first core, with the part that takes the queries.
        graph.cores(source, [cores[0]]).cores(search, cores).cores(sink, [cores[0]]);
    }
    // The index is opened and its checksum compared before the clock starts with the first call of
    // the source.
    let topology = graph.build().expect("the stages fit");
    topology.run(RunOptions::new()).expect("queries are valid")
}

/// The times at which queries are to be sent.
#[derive(Clone)]
struct Clock {
    start: Arc<OnceLock<Instant>>,
    rate: Option<f64>,
}

impl Clock {
    /// The time of query `number`: the start, if queries are sent as fast as they are taken.
    fn due(&self, number: u64) -> Duration {
        self.rate.map_or(Duration::ZERO, |rate| Duration::from_secs_f64(number as f64 / rate))
    }

    fn elapsed(&self) -> Duration {
        self.start.get_or_init(Instant::now).elapsed()
    }
}

/// The source of queries.
struct Asking {
    clock: Clock,
    time: Duration,
    batches: Arc<Vec<RecordBatch>>,
    /// Queries that there are, which are sent again and again.
    queries: u64,
    sent: u64,
}

impl Asking {
    /// Number of queries to be sent now, or `None` when all have been sent.
    #[expect(clippy::cast_possible_truncation, reason = "queries of minutes")]
    #[expect(clippy::cast_sign_loss, reason = "rates are positive")]
    fn due(&self, elapsed: Duration) -> Option<u64> {
        let Some(rate) = self.clock.rate else {
            return (elapsed < self.time).then_some(ROWS as u64);
        };
        // All queries of the time are sent in the end, however late.
        let end = (self.time.as_secs_f64() * rate).ceil() as u64;
        let due = (elapsed.as_secs_f64() * rate) as u64 + 1;
        (self.sent < end).then(|| due.min(end).saturating_sub(self.sent).min(ROWS as u64))
    }

    /// The next of at most `wanted` queries, as a slice of a batch.
    fn slice(&self, wanted: u64) -> RecordBatch {
        let narrow = |number: u64| usize::try_from(number).expect("queries are in memory");
        let place = narrow(self.sent % self.queries);
        let (batch, row) = (&self.batches[place / ROWS], place % ROWS);
        batch.slice(row, narrow(wanted).min(batch.num_rows() - row))
    }
}

impl Source for Asking {
    fn next(&mut self, out: &mut Output) -> Result<SourceFlow, OperatorError> {
        let elapsed = self.clock.elapsed();
        let Some(mut due) = self.due(elapsed) else { return Ok(SourceFlow::Finished) };
        while due > 0 {
            let records = self.slice(due);
            due -= records.num_rows() as u64;
            self.sent += records.num_rows() as u64;
            out.send(records);
        }
        // A late source does not pause: it sends the queries that are due at once.
        let pause = self.clock.due(self.sent).saturating_sub(self.clock.elapsed());
        Ok(if pause.is_zero() { SourceFlow::HaveOutput } else { SourceFlow::Idle(pause) })
    }
}

impl OperatorSpec for Asking {
    fn operator(&self) -> &'static str {
        "asking"
    }

    fn input_ports(&self) -> RangeInclusive<usize> {
        0..=0
    }

    fn bind(self: Box<Self>, _: &[SchemaRef], _: BindContext) -> Result<Fragment, BindError> {
        let schema = self.batches[0].schema();
        Ok(Fragment::source(Load::Light, *self, schema))
    }
}

/// The answers so far.
struct Answers {
    clock: Clock,
    right: Arc<Vec<u32>>,
    /// Queries before this time only warm up.
    warm: Duration,
    answered: u64,
    last: Duration,
    latency: Histogram<u64>,
}

impl Answers {
    fn new(clock: Clock, offer: &Offer, right: Arc<Vec<u32>>) -> Self {
        let latency = Histogram::new_with_max(100_000_000_000, 3);
        Self {
            clock,
            right,
            warm: offer.time.mul_f64(WARM),
            answered: 0,
            last: Duration::ZERO,
            latency: latency.expect("three digits are within 0..=5"),
        }
    }

    fn take(&mut self, rows: &RecordBatch) {
        // One look at the clock for all answers of a batch, which come at once.
        let now = self.clock.elapsed();
        let queries = rows.column(0).as_primitive::<UInt64Type>().values();
        let counts = rows.column(1).as_primitive::<UInt32Type>().values();
        for (&query, &count) in queries.iter().zip(counts) {
            // Queries are sent again and again, and so are their answers.
            let place = query % self.right.len() as u64;
            let right = self.right[usize::try_from(place).expect("a query in memory")];
            assert_eq!(count, right, "query {query}");
            let due = self.clock.due(query);
            if due >= self.warm {
                let latency = now.saturating_sub(due).as_nanos();
                self.latency.saturating_record(u64::try_from(latency).unwrap_or(u64::MAX));
            }
        }
        self.answered += rows.num_rows() as u64;
        self.last = now;
    }

    fn outcome(&self, sent: u64, batches: u64) -> Outcome {
        assert_eq!(self.answered, sent, "each query is answered once");
        Outcome {
            rate: self.answered as f64 / self.last.as_secs_f64(),
            latency: self.latency.clone(),
            batch: self.answered as f64 / batches.max(1) as f64,
        }
    }
}
