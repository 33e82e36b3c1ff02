//! The three parts of the operator: the filter makes chunks of candidates, the verification finds
//! their overlaps, and what is similar is collected.
//!
//! While one chunk is verified the next one is made, if the parts run on different cores (Bellas,
//! Gounaris 2018, §3.2). A chunk brings the sets that it names along, so that the parts share
//! nothing else.

use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, RecordBatch, UInt32Array, UInt64Array};
use arrow_schema::SchemaRef;
use trommel_engine::batch::{Chunk, Payload};
use trommel_engine::operator::{Counters, Flow, Operator, OperatorError, Output};
use trommel_kernels::Isa;

use super::bounds::Similarity;
use super::chunk::{CandidateChunk, JoinedSets};
use super::collector::{SetCollector, Side};
use super::input::{Columns, SetRows};
use super::join::{JoinCounters, SetJoin, SimilarPair, similar_pairs};
use super::operator::{JoinOutput, SetSimilarityJoin};

/// Candidates, and the sets that they name.
pub(super) struct Candidates {
    pub(super) sets: JoinedSets,
    pub(super) chunk: CandidateChunk,
}

impl Candidates {
    /// As a message to another part.
    pub(super) fn into_message(self) -> Chunk {
        let (pairs, bytes) = (self.chunk.len(), self.chunk.bytes());
        Chunk::new(self, pairs, bytes)
    }
}

/// What is known of the pairs of a chunk.
enum Verified {
    /// The overlap of each pair, or that it is rejected.
    Overlaps(Candidates, Vec<u32>),
    /// How many are similar.
    Count(u64),
}

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
    sets: u64,
    empty_sets: u64,
    nulls: u64,
    chunks: u64,
}

impl Prepare {
    pub(super) fn new(
        collector: SetCollector,
        columns: Vec<Columns>,
        isa: Isa,
        spec: &SetSimilarityJoin,
    ) -> Self {
        let (phase, spec) = (Some(Phase::Collecting(collector)), spec.clone());
        Self { phase, columns, isa, spec, sets: 0, empty_sets: 0, nulls: 0, chunks: 0 }
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
            let (similarity, threshold, algorithm, _) = self.spec.parameters();
            let join = SetJoin::new(&collection, similarity, threshold, algorithm, self.isa)?;
            self.phase = Some(Phase::Joining(join));
        }
        self.resume(out)
    }

    fn resume(&mut self, out: &mut Output) -> Result<Flow, OperatorError> {
        let Some(Phase::Joining(join)) = &mut self.phase else { return Ok(Flow::NeedInput) };
        let (.., chunk_bytes) = self.spec.parameters();
        let mut chunk = CandidateChunk::with_bytes(chunk_bytes);
        if !join.next_chunk(&mut chunk) {
            return Ok(Flow::NeedInput);
        }
        self.chunks += 1;
        out.send_chunk(Candidates { sets: join.sets().clone(), chunk }.into_message());
        Ok(Flow::HaveOutput)
    }

    fn counters(&self) -> Counters {
        let join = match &self.phase {
            Some(Phase::Joining(join)) => join.counters(),
            _ => JoinCounters::default(),
        };
        vec![
            ("sets", self.sets),
            ("empty_sets", self.empty_sets),
            ("nulls", self.nulls),
            ("postings", join.postings),
            ("pre_candidates", join.pre_candidates),
            ("candidates", join.candidates),
            ("chunks", self.chunks),
        ]
    }
}

/// Verifies chunks.
pub(super) struct Verify {
    isa: Isa,
    output: JoinOutput,
    verified: u64,
}

impl Verify {
    pub(super) fn new(isa: Isa, output: JoinOutput) -> Self {
        Self { isa, output, verified: 0 }
    }
}

impl Operator for Verify {
    fn process(
        &mut self,
        _port: usize,
        input: Payload,
        out: &mut Output,
    ) -> Result<Flow, OperatorError> {
        let candidates: Candidates = input.into_value();
        let Candidates { sets, chunk } = &candidates;
        let (pairs, bytes) = (chunk.len(), chunk.bytes());
        self.verified += pairs as u64;
        let verified = match self.output {
            JoinOutput::Count => Verified::Count(chunk.count(self.isa, sets)),
            JoinOutput::Pairs => {
                let overlaps = chunk.verify(self.isa, sets);
                Verified::Overlaps(candidates, overlaps)
            }
        };
        out.send_chunk(Chunk::new(verified, pairs, bytes));
        Ok(Flow::NeedInput)
    }

    fn counters(&self) -> Counters {
        vec![("verified", self.verified)]
    }
}

/// Makes rows of what is similar.
pub(super) struct Collect {
    schema: SchemaRef,
    output: JoinOutput,
    similarity: Similarity,
    results: u64,
}

impl Collect {
    pub(super) fn new(schema: &SchemaRef, output: JoinOutput, similarity: Similarity) -> Self {
        Self { schema: SchemaRef::clone(schema), output, similarity, results: 0 }
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
        let (Candidates { sets, chunk }, overlaps) = match input.into_value() {
            Verified::Overlaps(candidates, overlaps) => (candidates, overlaps),
            Verified::Count(count) => {
                self.results += count;
                return Ok(Flow::NeedInput);
            }
        };
        let pairs: Vec<SimilarPair> =
            similar_pairs(&sets, self.similarity, &chunk, &overlaps).collect();
        self.results += pairs.len() as u64;
        let numbers = |number: fn(&SimilarPair) -> u32| -> ArrayRef {
            Arc::new(UInt32Array::from_iter_values(pairs.iter().map(number)))
        };
        let similarity = Float64Array::from_iter_values(pairs.iter().map(|pair| pair.similarity));
        let columns = vec![
            numbers(|pair| pair.left),
            numbers(|pair| pair.right),
            numbers(|pair| pair.overlap),
            Arc::new(similarity),
        ];
        out.send(self.rows(columns));
        Ok(Flow::NeedInput)
    }

    fn finish(&mut self, out: &mut Output) -> Result<Flow, OperatorError> {
        if self.output == JoinOutput::Count {
            out.send(self.rows(vec![Arc::new(UInt64Array::from(vec![self.results]))]));
        }
        Ok(Flow::NeedInput)
    }

    fn counters(&self) -> Counters {
        vec![("results", self.results)]
    }
}
