//! A join of a stream as an operator: what a batch has to say leaves with it.

use std::time::Instant;

use arrow_array::{BooleanArray, RecordBatch};
use arrow_schema::SchemaRef;
use arrow_select::filter::filter_record_batch;
use trommel_engine::batch::Payload;
use trommel_engine::operator::{Counters, Flow, Fragment, Load, Operator, OperatorError, Output};
use trommel_kernels::Isa;

use super::join::{JoinStep, StreamJoin, StreamRules};
use super::pane::Arrivals;
use crate::set_similarity_join::candidates::chunk::CandidateChunk;
use crate::set_similarity_join::candidates::joined_sets::JoinedSets;
use crate::set_similarity_join::verify::join_chunk::JoinChunk;
use crate::sets::{SetColumns, SetRows};
use crate::wave::{Filled, Producer};
use crate::window::Extent;

/// Bytes of a chunk when it is only asked whether there is a similar set: few, because a set that
/// has one need not be compared any more.
const FIRST_CHUNK_BYTES: usize = 1 << 12;

/// The sets of batches, as micro-batches on their way through a join.
pub(crate) struct Batcher {
    join: StreamJoin,
    columns: SetColumns,
    window: Extent,
    /// When the first batch entered, and how long after it the last one did.
    start: Option<Instant>,
    time: u64,
    /// How many sets have come.
    position: u64,
    batch: Option<OpenBatch>,
    empty_sets: u64,
    nulls: u64,
}

/// A batch whose rows are joined one micro-batch after the other.
struct OpenBatch {
    records: RecordBatch,
    /// The first row of the micro-batch, and the first one behind it.
    begin: usize,
    end: usize,
    /// By place of a set of the micro-batch: its row.
    rows: Vec<usize>,
}

/// What comes of a batch next.
pub(crate) enum Step {
    /// Candidates of these sets, in the chunk.
    Chunk(JoinedSets),
    /// All candidates of some [rows](Batcher::settled) have been found. By place of a set, unless each
    /// pair is asked for: whether it is still unmarked.
    Settled(Vec<bool>),
    /// The batch has ended.
    End,
}

impl Batcher {
    pub(crate) fn new(rules: StreamRules, columns: SetColumns) -> Self {
        Self {
            window: rules.window,
            join: StreamJoin::new(rules),
            columns,
            start: None,
            time: 0,
            position: 0,
            batch: None,
            empty_sets: 0,
            nulls: 0,
        }
    }

    /// Takes a batch, which must have been fed to its end before the next one comes.
    pub(crate) fn take(&mut self, input: Payload) {
        let entered = input.origin().map_or_else(Instant::now, |origin| origin.entered);
        let start = *self.start.get_or_insert(entered);
        let since = entered.saturating_duration_since(start).as_nanos();
        self.time = self.time.max(u64::try_from(since).unwrap_or(u64::MAX));
        let records = input.into_records();
        self.batch = Some(OpenBatch { records, begin: 0, end: 0, rows: Vec::new() });
    }

    /// Goes on with the batch: finds candidates, or takes more of its rows.
    pub(crate) fn next(&mut self, chunk: &mut CandidateChunk) -> Result<Step, OperatorError> {
        let Some(batch) = &self.batch else { return Ok(Step::End) };
        if !self.join.is_busy() {
            if batch.end == batch.records.num_rows() {
                self.batch = None;
                return Ok(Step::End);
            }
            self.begin()?;
            if !self.join.is_busy() {
                return Ok(Step::Settled(Vec::new()));
            }
        }
        Ok(match self.join.next_chunk(chunk)? {
            JoinStep::Chunk(sets) => Step::Chunk(sets),
            JoinStep::Settled(is_first) => Step::Settled(is_first),
        })
    }

    /// The rows that have settled last; by place of a set: its row among them.
    fn settled(&self) -> Option<(RecordBatch, impl Iterator<Item = usize>)> {
        let OpenBatch { records, begin, end, rows } = self.batch.as_ref()?;
        Some((records.slice(*begin, end - begin), rows.iter().map(move |row| row - begin)))
    }

    /// Makes a micro-batch of the next rows: those that come in the same cell.
    fn begin(&mut self) -> Result<(), OperatorError> {
        let batch = self.batch.as_mut().expect("there are rows left");
        let sets = SetRows::new(&batch.records, &self.columns);
        let sets_max = self.window.left_in_cell(self.position);
        let stamp = |position| match self.window {
            Extent::Nanoseconds(_) => self.time,
            Extent::Items(_) | Extent::Endless => position,
        };
        self.join.open(stamp(self.position))?;
        let mut arrivals = Arrivals::new();
        batch.begin = batch.end;
        batch.rows.clear();
        let mut taken = 0;
        while batch.end < batch.records.num_rows() && taken < sets_max {
            let row = batch.end;
            batch.end += 1;
            let Some((id, tokens)) = sets.get(row)? else {
                self.nulls += 1;
                continue;
            };
            let stamp = stamp(self.position);
            self.position += 1;
            taken += 1;
            self.empty_sets += u64::from(tokens.is_empty());
            if !self.join.can_match(tokens.len()) {
                continue;
            }
            arrivals.push(id, tokens, stamp)?;
            batch.rows.push(row);
        }
        let carried = match self.columns.carries() {
            true => Some(self.columns.carried_at(&batch.records, &batch.rows)?),
            false => None,
        };
        self.join.begin(arrivals, carried)
    }

    pub(crate) fn counters(&self) -> Counters {
        let join = self.join.counters();
        let (panes, merges, renumberings) = self.join.panes();
        vec![
            ("sets", self.position),
            ("empty_sets", self.empty_sets),
            ("nulls", self.nulls),
            ("postings", join.postings),
            ("pre_candidates", join.pre_candidates),
            ("candidates", join.candidates),
            ("panes", panes as u64),
            ("merges", merges),
            ("renumberings", renumberings),
            ("state_bytes", self.join.bytes() as u64),
        ]
    }
}

/// Passes on the rows whose sets have no earlier one that is similar.
struct Deduplicate {
    batcher: Batcher,
    isa: Isa,
    chunk: CandidateChunk,
    verified: u64,
    duplicates: u64,
}

impl Deduplicate {
    fn send(&mut self, is_first: &[bool], out: &mut Output) -> Result<(), OperatorError> {
        let Some((records, rows)) = self.batcher.settled() else { return Ok(()) };
        let mut passes = vec![true; records.num_rows()];
        for (row, &is_first) in rows.zip(is_first) {
            passes[row] = is_first;
            self.duplicates += u64::from(!is_first);
        }
        out.send(filter_record_batch(&records, &BooleanArray::from(passes))?);
        Ok(())
    }
}

impl Operator for Deduplicate {
    fn process(
        &mut self,
        _port: usize,
        input: Payload,
        out: &mut Output,
    ) -> Result<Flow, OperatorError> {
        self.batcher.take(input);
        self.resume(out)
    }

    fn resume(&mut self, out: &mut Output) -> Result<Flow, OperatorError> {
        loop {
            match self.batcher.next(&mut self.chunk)? {
                Step::Chunk(sets) => {
                    let overlaps = self.chunk.verify(self.isa, &sets);
                    self.verified += self.chunk.len() as u64;
                    self.batcher.join.mark(&self.chunk, &overlaps);
                }
                Step::Settled(is_first) => {
                    self.send(&is_first, out)?;
                    return Ok(Flow::HaveOutput);
                }
                Step::End => return Ok(Flow::NeedInput),
            }
        }
    }

    fn counters(&self) -> Counters {
        let mut counters = self.batcher.counters();
        counters.extend([("verified", self.verified), ("duplicates", self.duplicates)]);
        counters
    }
}

/// PREPARE of a join of a stream: candidates of each batch.
pub(crate) struct StreamProducer {
    batcher: Batcher,
}

impl StreamProducer {
    pub(crate) fn new(rules: StreamRules, columns: SetColumns) -> Self {
        Self { batcher: Batcher::new(rules, columns) }
    }
}

impl Producer for StreamProducer {
    type Chunk = JoinChunk;

    fn take(&mut self, _port: usize, batch: Payload) -> Result<(), OperatorError> {
        self.batcher.take(batch);
        Ok(())
    }

    fn fill(&mut self, chunk: &mut JoinChunk) -> Result<Filled, OperatorError> {
        loop {
            match self.batcher.next(chunk.pairs_mut())? {
                Step::Chunk(sets) => {
                    chunk.hold_pairs(sets);
                    return Ok(Filled::Chunk);
                }
                Step::Settled(_) => {}
                Step::End => return Ok(Filled::Nothing),
            }
        }
    }

    fn counters(&self) -> Counters {
        self.batcher.counters()
    }
}

/// An operator that lets sets pass which have no earlier one that is similar.
pub(crate) fn deduplicate(
    rules: StreamRules,
    columns: SetColumns,
    inputs: &[SchemaRef],
) -> Fragment {
    let operator = Deduplicate {
        isa: rules.isa,
        batcher: Batcher::new(rules, columns),
        chunk: CandidateChunk::with_bytes(FIRST_CHUNK_BYTES),
        verified: 0,
        duplicates: 0,
    };
    Fragment::operator(Load::Heavy, operator, inputs.to_vec())
}
