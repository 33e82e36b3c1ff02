//! The first and the last part of the operator: the filter makes chunks of candidates, and what is
//! similar is collected. Between them the candidates are verified by a
//! [`WavePart`](crate::wave::WavePart).
//!
//! While one chunk is verified the next one is made, on a device or if the parts run on different
//! cores (Bellas, Gounaris 2018, §3.1). A chunk brings the sets that it names along, so that the
//! parts share nothing else.

use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, RecordBatch, UInt32Array, UInt64Array};
use arrow_schema::SchemaRef;
use trommel_engine::batch::{Chunk, Payload};
use trommel_engine::operator::{Counters, Flow, Operator, OperatorError, Output};
use trommel_kernels::Isa;

use super::bounds::Similarity;
use super::candidates::Candidates;
use super::collector::{SetCollector, Side};
use super::input::{Columns, SetRows};
use super::join::{JoinCounters, SetJoin, SimilarPair, similar_pairs};
use super::operator::{JoinOutput, SetSimilarityJoin};
use super::outbox::Outbox;

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
    isa: Isa,
    spec: SetSimilarityJoin,
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
        outbox: Outbox,
        spec: &SetSimilarityJoin,
    ) -> Self {
        let (phase, spec) = (Some(Phase::Collecting(collector)), spec.clone());
        Self { phase, columns, isa, spec, outbox, sets: 0, empty_sets: 0, nulls: 0 }
    }

    fn collect(&mut self, port: usize, records: &RecordBatch) -> Result<(), OperatorError> {
        let Some(Phase::Collecting(collector)) = &mut self.phase else {
            unreachable!("no input follows the end of the inputs")
        };
        let side = if port == 0 { Side::Left } else { Side::Right };
        let sets = SetRows::new(records, self.columns[port]);
        for row in 0..records.num_rows() {
            let Some((id, tokens)) = sets.get(row)? else {
                self.nulls += 1;
                continue;
            };
            collector.push(side, id, tokens)?;
            self.sets += 1;
        }
        self.empty_sets = collector.empty_sets();
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
            let collection = Arc::new(collector.finish()?);
            let (similarity, threshold, algorithm) = self.spec.question();
            let join = SetJoin::new(&collection, similarity, threshold, algorithm, self.isa)?;
            self.phase = Some(Phase::Joining(join));
        }
        self.resume(out)
    }

    fn resume(&mut self, out: &mut Output) -> Result<Flow, OperatorError> {
        let Some(Phase::Joining(join)) = &mut self.phase else { return Ok(Flow::NeedInput) };
        let Some(mut chunk) = self.outbox.take() else { return Ok(Flow::AwaitReply) };
        if join.next_chunk(chunk.pairs_mut()) {
            self.outbox.send(chunk, join.sets().clone(), out);
            Ok(Flow::HaveOutput)
        } else {
            self.outbox.keep(chunk);
            Ok(Flow::NeedInput)
        }
    }

    fn reply(&mut self, reply: Chunk, out: &mut Output) -> Result<Flow, OperatorError> {
        self.outbox.give_back(reply);
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
    schema: SchemaRef,
    output: JoinOutput,
    similarity: Similarity,
    verified: u64,
    results: u64,
}

impl Collect {
    pub(super) fn new(schema: &SchemaRef, output: JoinOutput, similarity: Similarity) -> Self {
        Self { schema: SchemaRef::clone(schema), output, similarity, verified: 0, results: 0 }
    }

    fn pairs(&self, pairs: &[SimilarPair]) -> RecordBatch {
        let numbers = |number: fn(&SimilarPair) -> u32| -> ArrayRef {
            Arc::new(UInt32Array::from_iter_values(pairs.iter().map(number)))
        };
        let similarity = Float64Array::from_iter_values(pairs.iter().map(|pair| pair.similarity));
        self.rows(vec![
            numbers(|pair| pair.left),
            numbers(|pair| pair.right),
            numbers(|pair| pair.overlap),
            Arc::new(similarity),
        ])
    }

    fn rows(&self, columns: Vec<ArrayRef>) -> RecordBatch {
        RecordBatch::try_new(SchemaRef::clone(&self.schema), columns).expect("of this schema")
    }
}

impl Operator for Collect {
    fn process(
        &mut self,
        _port: usize,
        input: Payload,
        out: &mut Output,
    ) -> Result<Flow, OperatorError> {
        let mut chunk: Box<Candidates> = input.into_chunk().into_box();
        self.verified += chunk.len() as u64;
        let (sets, candidates, answer) = chunk.answered();
        match self.output {
            JoinOutput::Count => self.results += answer.count,
            JoinOutput::Pairs => {
                let pairs = similar_pairs(sets, self.similarity, candidates, &answer.overlaps);
                let pairs: Vec<SimilarPair> = pairs.collect();
                self.results += pairs.len() as u64;
                out.send(self.pairs(&pairs));
            }
        }
        chunk.release_sets();
        out.send_reply(chunk.into_message());
        Ok(Flow::NeedInput)
    }

    fn finish(&mut self, out: &mut Output) -> Result<Flow, OperatorError> {
        if self.output == JoinOutput::Count {
            out.send(self.rows(vec![Arc::new(UInt64Array::from(vec![self.results]))]));
        }
        Ok(Flow::NeedInput)
    }

    fn counters(&self) -> Counters {
        vec![("verified", self.verified), ("results", self.results)]
    }
}
