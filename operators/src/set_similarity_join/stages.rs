//! The first and the last part of the operator: the filter makes chunks of candidates, and what is
//! similar is collected. Between them the candidates are verified by a
//! [`WavePart`](crate::wave::WavePart).
//!
//! While one chunk is verified the next one is made, on a device or if the parts run on different
//! cores (Bellas, Gounaris 2018, §3.1). A chunk brings the sets that it names along, so that the
//! parts share nothing else.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, UInt64Array};
use arrow_schema::SchemaRef;
use trommel_engine::batch::{Chunk, Payload};
use trommel_engine::operator::{Counters, Flow, Operator, OperatorError, Output};
use trommel_kernels::Isa;

use super::buckets::Tiling;
use super::candidates::Candidates;
use super::carried::Carrier;
use super::collector::{SetCollector, Side};
use super::input::{Columns, SetRows};
use super::join::{JoinCounters, SetJoin};
use super::operator::SetSimilarityJoin;
use super::outbox::Outbox;
use super::rows::PairRows;

/// How far the first part is.
enum Phase {
    /// Sets are coming.
    Collecting(SetCollector),
    /// They are being joined.
    Joining(SetJoin),
}

/// Collects sets, and when all are there finds candidates.
pub(super) struct Prepare {
    /// `None` only while one phase is made of the other.
    phase: Option<Phase>,
    columns: Vec<Columns>,
    /// If columns go with the sets.
    carrier: Option<Carrier>,
    isa: Isa,
    spec: SetSimilarityJoin,
    tiling: Tiling,
    outbox: Outbox,
    sets: u64,
    empty_sets: u64,
    nulls: u64,
}

impl Prepare {
    pub(super) fn new(
        collector: SetCollector,
        columns: Vec<Columns>,
        isa: Isa,
        (outbox, tiling): (Outbox, Tiling),
        spec: &SetSimilarityJoin,
    ) -> Self {
        Self {
            phase: Some(Phase::Collecting(collector)),
            carrier: Columns::carrier(&columns),
            columns,
            isa,
            spec: spec.clone(),
            tiling,
            outbox,
            sets: 0,
            empty_sets: 0,
            nulls: 0,
        }
    }

    fn collect(&mut self, port: usize, records: &RecordBatch) -> Result<(), OperatorError> {
        let Some(Phase::Collecting(collector)) = &mut self.phase else {
            unreachable!("no input follows the end of the inputs")
        };
        let side = if port == 0 { Side::Left } else { Side::Right };
        let columns = &self.columns[port];
        if let Some(carrier) = &mut self.carrier {
            let bytes = carrier.add(side, columns.carried(records)?);
            collector.reserve("the columns", bytes)?;
        }
        let sets = SetRows::new(records, columns);
        for row in 0..records.num_rows() {
            let set = sets.get(row)?;
            let (id, tokens) = set.unwrap_or_default();
            let place = self.carrier.as_mut().map_or(id, |carrier| carrier.place(side, id));
            if set.is_none() {
                self.nulls += 1;
                continue;
            }
            self.sets += 1;
            self.empty_sets += u64::from(tokens.is_empty());
            if tokens.len() >= self.spec.least_size() {
                collector.push(side, place, tokens).map_err(|error| error.of_set(id))?;
            }
        }
        Ok(())
    }
}

impl Operator for Prepare {
    fn process(
        &mut self,
        port: usize,
        input: Payload,
        _out: &mut Output,
    ) -> Result<Flow, OperatorError> {
        self.collect(port, &input.into_records())?;
        Ok(Flow::NeedInput)
    }

    fn finish(&mut self, out: &mut Output) -> Result<Flow, OperatorError> {
        if let Some(Phase::Collecting(collector)) = self.phase.take() {
            let mut collection = collector.finish()?;
            if let Some(carrier) = self.carrier.take() {
                carrier.finish(&mut collection)?;
            }
            let collection = Arc::new(collection);
            let question = self.spec.question();
            let join = SetJoin::in_waves(&collection, question, self.isa, self.tiling)?;
            if let Some(tiler) = join.tiler() {
                let (pairs, words) = (tiler.pairs(), tiler.sets().words());
                self.outbox.expect_tiles(join.sets(), pairs, words);
            }
            self.phase = Some(Phase::Joining(join));
        }
        self.resume(out)
    }

    fn resume(&mut self, out: &mut Output) -> Result<Flow, OperatorError> {
        let Some(Phase::Joining(join)) = &mut self.phase else { return Ok(Flow::NeedInput) };
        let Some(mut chunk) = self.outbox.take() else { return Ok(Flow::AwaitReply) };
        if chunk.fill(join) {
            self.outbox.send(chunk, join.sets().clone(), out);
            return Ok(Flow::HaveOutput);
        }
        self.outbox.keep(chunk);
        // A chunk may come home unfinished.
        Ok(if self.outbox.is_all_home() { Flow::NeedInput } else { Flow::AwaitReply })
    }

    fn reply(&mut self, reply: Chunk, out: &mut Output) -> Result<Flow, OperatorError> {
        let mut chunk: Box<Candidates> = reply.into_box();
        if let Some(Phase::Joining(join)) = &mut self.phase {
            join.survived(chunk.survivors());
        }
        if chunk.take_up() {
            self.outbox.send_again(chunk, out);
            return Ok(Flow::HaveOutput);
        }
        self.outbox.keep(chunk);
        self.resume(out)
    }

    fn counters(&self) -> Counters {
        let join = match &self.phase {
            Some(Phase::Joining(join)) => join.counters(),
            _ => JoinCounters::default(),
        };
        let mut counters = vec![
            ("sets", self.sets),
            ("empty_sets", self.empty_sets),
            ("nulls", self.nulls),
            ("postings", join.postings),
            ("pre_candidates", join.pre_candidates),
            ("candidates", join.candidates),
        ];
        counters.extend(self.outbox.counters());
        counters
    }
}

/// Makes rows of what is similar.
pub(super) struct Collect {
    rows: Rows,
    /// The chunk whose pairs are being made rows, and how many of them have been.
    chunk: Option<Box<Candidates>>,
    taken: usize,
    verified: u64,
    results: u64,
}

/// The rows of a join.
#[derive(Debug, Clone)]
pub(super) enum Rows {
    /// A row a pair.
    Pairs(PairRows),
    /// One row, of this schema: how many pairs there are.
    Count(SchemaRef),
}

impl Rows {
    /// The columns.
    pub(super) fn schema(&self) -> &SchemaRef {
        match self {
            Self::Pairs(rows) => rows.schema(),
            Self::Count(schema) => schema,
        }
    }
}

impl Collect {
    pub(super) fn new(rows: Rows) -> Self {
        Self { rows, chunk: None, taken: 0, verified: 0, results: 0 }
    }
}

impl Operator for Collect {
    fn process(
        &mut self,
        _port: usize,
        input: Payload,
        out: &mut Output,
    ) -> Result<Flow, OperatorError> {
        let chunk: Box<Candidates> = input.into_chunk().into_box();
        self.verified += chunk.verified();
        (self.chunk, self.taken) = (Some(chunk), 0);
        self.resume(out)
    }

    fn resume(&mut self, out: &mut Output) -> Result<Flow, OperatorError> {
        let Some(mut chunk) = self.chunk.take() else { return Ok(Flow::NeedInput) };
        match &self.rows {
            Rows::Count(_) => self.results += chunk.count(),
            Rows::Pairs(rows) => {
                let similar = chunk.similar();
                let mut left = &similar[self.taken..];
                let rows = rows.take(&mut left)?;
                self.taken += rows.num_rows();
                self.results += rows.num_rows() as u64;
                out.send(rows);
                if !left.is_empty() {
                    self.chunk = Some(chunk);
                    return Ok(Flow::HaveOutput);
                }
            }
        }
        chunk.release_sets();
        out.send_reply(chunk.into_message());
        Ok(Flow::NeedInput)
    }

    fn finish(&mut self, out: &mut Output) -> Result<Flow, OperatorError> {
        if let Rows::Count(schema) = &self.rows {
            let count: ArrayRef = Arc::new(UInt64Array::from(vec![self.results]));
            out.send(RecordBatch::try_new(SchemaRef::clone(schema), vec![count])?);
        }
        Ok(Flow::NeedInput)
    }

    fn counters(&self) -> Counters {
        vec![("verified", self.verified), ("results", self.results)]
    }
}
