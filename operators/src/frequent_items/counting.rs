//! The operator with its state in one place: SpaceSaving, the filter in front of it, or the sieve.

use arrow_array::{Array, RecordBatch};
use arrow_schema::SchemaRef;
use trommel_engine::batch::Payload;
use trommel_engine::operator::{Counters, Flow, Operator, OperatorError, Output};
use trommel_engine::query::{Carried, QueryError, Request, Response};

use super::column::{Column, ranked_rows, ranked_schema};
use super::input::{Input, Observations};
use super::report::{Question, Report};
use super::summary::Summary;

/// When rows are emitted, besides at the end.
#[derive(Debug, Clone, Copy)]
pub(super) struct Emission {
    pub(super) report: Report,
    /// After this many items, at the next batch boundary.
    pub(super) every: Option<u64>,
    /// How many items are left until then.
    pub(super) left: u64,
}

impl Emission {
    pub(super) fn new(report: Report, every: Option<u64>) -> Self {
        Self { report, every, left: every.unwrap_or(u64::MAX) }
    }

    /// Counts `items`; true when rows are due.
    pub(super) fn is_due(&mut self, items: usize) -> bool {
        let Some(every) = self.every else { return false };
        self.left = self.left.saturating_sub(items as u64);
        if self.left > 0 {
            return false;
        }
        self.left = every;
        true
    }
}

/// Rows a batch that the operator emits.
const ROWS_PER_BATCH: usize = 8192;

/// Sends all rows, in batches of bounded size.
pub(super) fn send_rows(rows: &RecordBatch, out: &mut Output) {
    for start in (0..rows.num_rows()).step_by(ROWS_PER_BATCH) {
        out.send(rows.slice(start, ROWS_PER_BATCH.min(rows.num_rows() - start)));
    }
}

/// Counts the items of a column.
pub(super) struct Counting<K, S> {
    summary: S,
    input: Input,
    emission: Emission,
    schema: SchemaRef,
    _item: std::marker::PhantomData<K>,
}

impl<K: Column, S: Summary<K>> Counting<K, S> {
    pub(super) fn new(summary: S, input: Input, emission: Emission) -> Self {
        let schema = ranked_schema(K::TYPE);
        Self { summary, input, emission, schema, _item: std::marker::PhantomData }
    }

    fn emit(&self, out: &mut Output) {
        let selected = self.emission.report.select(self.summary.iter(), self.summary.observed());
        send_rows(&ranked_rows(&self.schema, &selected), out);
    }
}

impl<K: Column, S: Summary<K>> Operator for Counting<K, S> {
    fn process(
        &mut self,
        _port: usize,
        input: Payload,
        out: &mut Output,
    ) -> Result<Flow, OperatorError> {
        let Observations { items, weights } = self.input.read(&input.into_records())?;
        self.summary.observe(K::lend(items.as_ref()), weights.as_deref());
        if self.emission.is_due(items.len()) {
            self.emit(out);
        }
        Ok(Flow::NeedInput)
    }

    fn finish(&mut self, out: &mut Output) -> Result<Flow, OperatorError> {
        self.emit(out);
        Ok(Flow::NeedInput)
    }

    fn query(&self, request: &Request, _carried: Option<Carried>) -> Result<Response, QueryError> {
        let question = Question::<K>::read(request)?;
        let (monitored, observed) = (self.summary.iter(), self.summary.observed());
        let unmonitored = || self.summary.count_min();
        Ok(Response::Answer(question.answer(&self.schema, monitored, observed, unmonitored)))
    }

    fn counters(&self) -> Counters {
        let mut counters = self.input.counters();
        counters.push(("observed", self.summary.observed()));
        counters.push(("state_bytes", self.summary.state_bytes() as u64));
        counters
    }
}
