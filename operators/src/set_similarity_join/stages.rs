//! The first and the last part of the operator: the filter makes chunks of candidates, and what is
//! similar is collected. Between them the candidates are verified by a
//! [`WavePart`](crate::wave::WavePart).
//!
//! While one chunk is verified the next one is made, on a device or if the parts run on different
//! cores (Bellas, Gounaris 2018, §3.1). A chunk brings the sets that it names along, so that the
//! parts share nothing else.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::UInt32Type;
use arrow_array::{Array, ArrayRef, Float64Array, RecordBatch, UInt32Array, UInt64Array};
use arrow_schema::SchemaRef;
use thiserror::Error;
use trommel_engine::batch::{Chunk, Payload};
use trommel_engine::operator::{Counters, Flow, Operator, OperatorError, Output};
use trommel_kernels::Isa;

use super::bounds::Similarity;
use super::buckets::Tiling;
use super::candidates::Candidates;
use super::collector::{SetCollector, Side};
use super::join::{JoinCounters, SetJoin, SimilarPair};
use super::operator::{JoinOutput, SetSimilarityJoin};
use super::price::Price;
use crate::wave::Buffers;

/// Where the ids and the sets of an input are.
#[derive(Debug, Clone, Copy)]
pub(super) struct Columns {
    pub(super) id: usize,
    pub(super) set: usize,
}

/// A token is null.
#[derive(Debug, Error)]
#[error("the set with id {id} has a token that is null")]
struct NullToken {
    id: u32,
}

/// How far the first part is.
enum Phase {
    /// Sets are coming.
    Collecting(SetCollector),
    /// They are being joined.
    Joining(SetJoin),
}

/// How the first part makes chunks.
#[derive(Debug, Clone, Copy)]
pub(super) struct Chunks {
    /// How many there are.
    pub(super) count: usize,
    /// Bytes of one for the CPU, and for a device.
    pub(super) bytes: [usize; 2],
    /// Whether a device is used from the first one on.
    pub(super) is_device_wanted: bool,
    /// Whether `auto` may compare all pairs on it.
    pub(super) tiling: Tiling,
}

/// Collects sets, and when all are there finds candidates.
pub(super) struct Prepare {
    /// `None` only while one phase is made of the other.
    phase: Option<Phase>,
    columns: Vec<Columns>,
    isa: Isa,
    spec: SetSimilarityJoin,
    chunks: Chunks,
    buffers: Buffers<Candidates>,
    price: Price,
    sets: u64,
    empty_sets: u64,
    nulls: u64,
    sent: u64,
}

impl Prepare {
    pub(super) fn new(
        collector: SetCollector,
        columns: Vec<Columns>,
        isa: Isa,
        chunks: Chunks,
        spec: &SetSimilarityJoin,
    ) -> Self {
        Self {
            phase: Some(Phase::Collecting(collector)),
            columns,
            isa,
            spec: spec.clone(),
            chunks,
            buffers: Buffers::new(chunks.count),
            price: Price::default(),
            sets: 0,
            empty_sets: 0,
            nulls: 0,
            sent: 0,
        }
    }

    /// Sends the next chunk, if there are candidates and a chunk is free.
    fn advance(&mut self, out: &mut Output) -> Flow {
        let Some(Phase::Joining(join)) = &mut self.phase else { return Flow::NeedInput };
        let Chunks { bytes, is_device_wanted, .. } = self.chunks;
        let output = self.spec.answers();
        let Some(mut chunk) = self.buffers.take(|| Candidates::new(output)) else {
            return Flow::AwaitReply;
        };
        let pays = is_device_wanted || self.price.is_paid();
        if !chunk.fill(join, bytes[usize::from(pays)], pays) {
            chunk.release_sets();
            self.buffers.give_back(chunk);
            // A chunk may come home unfinished.
            return if self.buffers.are_home() { Flow::NeedInput } else { Flow::AwaitReply };
        }
        self.price.spend(chunk.len());
        self.sent += 1;
        out.send_chunk(chunk.into_message());
        Flow::HaveOutput
    }

    fn collect(&mut self, port: usize, records: &RecordBatch) -> Result<(), OperatorError> {
        let Some(Phase::Collecting(collector)) = &mut self.phase else {
            unreachable!("no input follows the end of the inputs")
        };
        let side = if port == 0 { Side::Left } else { Side::Right };
        let Columns { id, set } = self.columns[port];
        let ids = records.column(id).as_primitive::<UInt32Type>();
        let sets = records.column(set).as_list::<i32>();
        let tokens = sets.values().as_primitive::<UInt32Type>();
        for row in 0..records.num_rows() {
            if ids.is_null(row) || sets.is_null(row) {
                self.nulls += 1;
                continue;
            }
            let id = ids.value(row);
            let ends = &sets.value_offsets()[row..=row + 1];
            let [begin, end] = [ends[0], ends[1]]
                .map(|end| usize::try_from(end).expect("the offsets of a list are not negative"));
            if tokens.null_count() > 0 && (begin..end).any(|token| tokens.is_null(token)) {
                return Err(Box::new(NullToken { id }));
            }
            collector.push(side, id, &tokens.values()[begin..end])?;
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
            let Chunks { tiling, .. } = self.chunks;
            let join = SetJoin::in_waves(&collection, self.spec.question(), self.isa, tiling)?;
            self.price.turn_to(join.sets());
            if let Some(tiler) = join.tiler() {
                self.price.spend_on_tiles(tiler.pairs(), tiler.sets().words());
            }
            self.phase = Some(Phase::Joining(join));
        }
        Ok(self.advance(out))
    }

    fn resume(&mut self, out: &mut Output) -> Result<Flow, OperatorError> {
        Ok(self.advance(out))
    }

    fn reply(&mut self, reply: Chunk, out: &mut Output) -> Result<Flow, OperatorError> {
        let mut chunk: Box<Candidates> = reply.into_box();
        if let Some(Phase::Joining(join)) = &mut self.phase {
            join.survived(chunk.survivors());
        }
        if chunk.take_up() {
            self.sent += 1;
            out.send_chunk(chunk.into_message());
            return Ok(Flow::HaveOutput);
        }
        self.buffers.give_back(chunk);
        Ok(self.advance(out))
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
            ("chunks", self.sent),
            ("chunk_buffers", self.buffers.made() as u64),
        ]
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
        self.verified += chunk.verified();
        match self.output {
            JoinOutput::Count => self.results += chunk.count(),
            JoinOutput::Pairs => {
                let pairs = chunk.similar(self.similarity);
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
