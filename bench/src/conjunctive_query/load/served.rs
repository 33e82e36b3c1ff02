//! The operator in a pipeline under a load: queries are sent at their times, whether or not earlier
//! ones are answered, and latency counts from the time at which a query was to be sent.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::{UInt32Type, UInt64Type};
use arrow_schema::SchemaRef;
use hdrhistogram::Histogram;
use tempfile::TempDir;
use trommel::conjunctive_query::QueryOutput;
use trommel::operator::{OperatorSpec, SourceFlow};
use trommel::placement::available_cores;
use trommel::{ConjunctiveQuery, Discard, ForEach, Graph, Memory};

use crate::conjunctive_query::workload::Workload;
use crate::runner::paced::{Clock, Feed};
use crate::runner::pipelines::{self, batch_of_sets, counter};

/// Queries that are sent at once at most: a batch, of which the queries that are due are a slice.
const ROWS: usize = 16_384;

/// Queries of the beginning, as a share of the time, whose latency does not count.
const WARM: f64 = 0.1;

/// An index in a file, which is removed at the end, and queries.
pub(super) struct Served {
    folder: TempDir,
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
        let begins = (0..workload.queries()).step_by(ROWS);
        let batch = |begin: usize| {
            let end = workload.queries().min(begin + ROWS);
            batch_of_sets((begin..end).map(|query| workload.query(query)))
        };
        let served = Self {
            folder: tempfile::tempdir()?,
            batches: Arc::new(begins.map(batch).collect()),
            right: Arc::new(workload.right.counts.clone()),
        };
        served.write(workload);
        Ok(served)
    }

    fn search(&self) -> ConjunctiveQuery {
        ConjunctiveQuery::new().index_path(self.folder.path().join("index"))
    }

    fn write(&self, workload: &Workload) {
        let documents = Arc::clone(&workload.documents);
        let schema = documents.batch(0).schema();
        let batches = (0..documents.batches()).map(move |number| documents.batch(number));
        let mut graph = Graph::new();
        let search = graph.add("search", self.search());
        let documents = graph.add("documents", Memory::new(SchemaRef::clone(&schema), batches));
        let queries = graph.add("queries", Memory::new(schema, []));
        graph.connect(documents, search).connect(queries, search);
        graph.add_after(search, "end", Discard::new());
        pipelines::run(graph);
    }

    /// Sends queries as `offer` says. The index is opened and its checksum compared before the
    /// clock starts with the first call of the source.
    ///
    /// # Panics
    /// If a count is wrong, or an answer is missing.
    pub(super) fn run(&self, offer: &Offer) -> Outcome {
        let clock = Clock::new(offer.rate);
        let right = Arc::clone(&self.right);
        let answers = Arc::new(Mutex::new(Answers::new(clock.clone(), offer, right)));
        let place = Arc::clone(&answers);
        let mut graph = Graph::new();
        let source = graph.add("queries", self.source(clock, offer.time));
        let search = self.search().output(QueryOutput::Count);
        let search = search.batch_queries(offer.batch_queries).deadline_ms(offer.deadline_ms);
        let search = graph.add_after(source, "search", search);
        let take = move |rows| {
            place.lock().unwrap_or_else(PoisonError::into_inner).take(&rows);
            Ok(())
        };
        let sink = graph.add_after(search, "answers", ForEach::new(take));
        if offer.cores > 0 {
            let cores = available_cores();
            let cores = &cores[..offer.cores.min(cores.len())];
            // Source and sink are on the first core, with the part that takes the queries.
            graph.cores(source, [cores[0]]).cores(search, cores).cores(sink, [cores[0]]);
        }
        let (_, metrics) = pipelines::run(graph);
        let sent = metrics.stage("search").expect("it is there").items_in();
        let answers = answers.lock().unwrap_or_else(PoisonError::into_inner);
        answers.outcome(sent, counter(&metrics, "search", "batches"))
    }

    /// The source of queries, which are sent again and again for a time.
    fn source(&self, clock: Clock, time: Duration) -> impl OperatorSpec + use<> {
        let (batches, queries) = (Arc::clone(&self.batches), self.right.len() as u64);
        let mut sent = 0;
        Feed::new(batches[0].schema(), move |out| {
            let Some(mut due) = due(&clock, time, sent) else { return SourceFlow::Finished };
            while due > 0 {
                let records = slice(&batches, sent % queries, due);
                due -= records.num_rows() as u64;
                sent += records.num_rows() as u64;
                out.send(records);
            }
            // A late source does not pause: it sends the queries that are due at once.
            clock.pause(sent)
        })
    }
}

/// Number of queries to be sent now, or `None` when all have been sent.
#[expect(clippy::cast_possible_truncation, reason = "queries of minutes")]
#[expect(clippy::cast_sign_loss, reason = "rates are positive")]
fn due(clock: &Clock, time: Duration, sent: u64) -> Option<u64> {
    let elapsed = clock.elapsed();
    let Some(rate) = clock.rate else {
        return (elapsed < time).then_some(ROWS as u64);
    };
    // All queries of the time are sent in the end, however late.
    let end = (time.as_secs_f64() * rate).ceil() as u64;
    let due = (elapsed.as_secs_f64() * rate) as u64 + 1;
    (sent < end).then(|| due.min(end).saturating_sub(sent).min(ROWS as u64))
}

/// At most `wanted` queries from `place` on, as a slice of a batch.
fn slice(batches: &[RecordBatch], place: u64, wanted: u64) -> RecordBatch {
    let narrow = |number: u64| usize::try_from(number).expect("queries are in memory");
    let (batch, row) = (&batches[narrow(place) / ROWS], narrow(place) % ROWS);
    batch.slice(row, narrow(wanted).min(batch.num_rows() - row))
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
