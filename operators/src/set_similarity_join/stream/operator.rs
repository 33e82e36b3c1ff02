//! Streaming join as an operator: all pairs of a batch, or its rows that pass, are sent before
//! the next batch is taken.

use std::time::Instant;

use arrow_array::{BooleanArray, ListArray, RecordBatch, UInt64Array};
use arrow_schema::{ArrowError, SchemaRef};
use arrow_select::filter::filter_record_batch;
use arrow_select::take::take_record_batch;
use trommel_engine::batch::Payload;
use trommel_engine::operator::{
    Counters, Flow, Fragment, Load, NamedInputs, Operator, OperatorError, Output,
};
use trommel_kernels::Isa;

use super::join::{JoinStep, StreamJoin, StreamRules};
use super::pane::Arrivals;
use crate::set_similarity_join::answer::chunk::JoinChunk;
use crate::set_similarity_join::candidates::chunk::CandidateChunk;
use crate::set_similarity_join::candidates::joined_sets::JoinedSets;
use crate::shared::columns::carry::CarriedRows;
use crate::shared::rejected::{BadRows, PORT};
use crate::shared::sets::{SetBatch, SetSource, TokenNumbers};
use crate::shared::window::clock::StreamClock;
use crate::wave::{Filled, Producer};

/// Bytes of a chunk if duplicates are dropped. The chunk is small, because a set with one similar
/// set need not be compared further.
const FIRST_CHUNK_BYTES: usize = 1 << 12;

/// Cuts batches into micro-batches and joins the micro-batches one after the other.
///
/// A micro-batch ends with its batch, or at the border of a cell.
pub(crate) struct Batcher {
    join: StreamJoin,
    source: SetSource,
    bad: BadRows,
    tokens: TokenNumbers,
    clock: StreamClock,
    batch: Option<OpenBatch>,
    empty_sets: u64,
    nulls: u64,
}

/// The batch that is being joined.
struct OpenBatch {
    records: RecordBatch,
    sets: SetBatch,
    /// Carried columns, if there are any.
    carried: Option<RecordBatch>,
    /// First row of the present micro-batch.
    begin: usize,
    /// Row after the last row of the present micro-batch.
    end: usize,
    /// For each place of the micro-batch: the row of the set in `records`.
    rows: Vec<usize>,
}

/// Outcome of [`Batcher::next`].
pub(crate) enum BatchStep {
    /// The chunk holds candidates from these sets.
    Chunk(JoinedSets),
    /// A micro-batch is joined; [`Batcher::settled`] has its rows. For each place: whether the set
    /// has no similar earlier set. Empty if the answer is each pair.
    Settled(Vec<bool>),
    /// The batch is joined to its end.
    End,
}

impl Batcher {
    pub(crate) fn new(rules: StreamRules, source: SetSource) -> Self {
        Self {
            clock: StreamClock::new(rules.window),
            bad: BadRows::new(rules.on_error, 1),
            join: StreamJoin::new(rules),
            tokens: TokenNumbers::new(source.set().item_type()),
            source,
            batch: None,
            empty_sets: 0,
            nulls: 0,
        }
    }

    /// Takes a batch. The previous batch must have reached [`BatchStep::End`].
    ///
    /// # Errors
    /// If a row has a fault and the action for such rows is to end the run, or if new items do not
    /// fit the memory.
    pub(crate) fn take(&mut self, input: Payload) -> Result<(), OperatorError> {
        let entered = input.origin().map_or_else(Instant::now, |origin| origin.entered);
        self.clock.enter(entered);
        let records = input.into_records();
        let (ids, sets) = self.source.read(0, &records, &mut self.bad)?;
        let carried = self.source.carried();
        let carried = (!carried.is_empty()).then(|| carried.of(&records, &ids)).transpose()?;
        let sets = SetBatch::new(ids.numbers, self.number(sets)?).ascending();
        self.batch = Some(OpenBatch { records, sets, carried, begin: 0, end: 0, rows: Vec::new() });
        Ok(())
    }

    /// Replaces the items of sets by their numbers. Between batches, items that have left the
    /// window may be forgotten, because the sets in the window keep their own numbers of tokens.
    fn number(&mut self, sets: ListArray) -> Result<ListArray, OperatorError> {
        let TokenNumbers::Named(names) = &mut self.tokens else { return Ok(sets) };
        if self.join.has_old_items(names) {
            self.join.forget_items(names);
        }
        let mut numbered = self.tokens.number(sets.clone(), self.join.budget()?);
        if let (Err(_), TokenNumbers::Named(names)) = (&numbered, &mut self.tokens) {
            self.join.forget_tokens()?;
            self.join.forget_items(names);
            numbered = self.tokens.number(sets, self.join.budget()?);
        }
        self.join.set_item_bytes(self.tokens.bytes());
        Ok(numbered?)
    }

    /// Continues with the batch: finds candidates for `chunk`, or begins the next micro-batch.
    pub(crate) fn next(&mut self, chunk: &mut CandidateChunk) -> Result<BatchStep, OperatorError> {
        let Some(batch) = &self.batch else { return Ok(BatchStep::End) };
        if !self.join.is_busy() {
            if batch.end == batch.records.num_rows() {
                self.batch = None;
                return Ok(BatchStep::End);
            }
            self.begin()?;
            if !self.join.is_busy() {
                return Ok(BatchStep::Settled(Vec::new()));
            }
        }
        Ok(match self.join.next_chunk(chunk)? {
            JoinStep::Chunk(sets) => BatchStep::Chunk(sets),
            JoinStep::Settled(is_first) => BatchStep::Settled(is_first),
        })
    }

    /// The micro-batch that has just settled.
    fn settled(&self) -> Option<SettledRows> {
        let OpenBatch { records, sets, begin, end, rows, .. } = self.batch.as_ref()?;
        // If `on_error` is not set, rows with nulls pass: no set is similar to a null.
        let is_usable = |row| !self.bad.have_nulls() || sets.get(row).is_some();
        Some(SettledRows {
            records: records.slice(*begin, end - begin),
            are_usable: (*begin..*end).map(is_usable).collect(),
            places: rows.iter().map(|row| row - begin).collect(),
        })
    }

    /// Begins a micro-batch with the next rows of the batch, as far as they are in one cell.
    fn begin(&mut self) -> Result<(), OperatorError> {
        let batch = self.batch.as_mut().expect("there are rows left");
        let sets = &batch.sets;
        let sets_max = self.clock.left_in_cell();
        self.join.open(self.clock.stamp())?;
        batch.begin = batch.end;
        let rows_left = batch.records.num_rows() - batch.begin;
        let rows = batch.begin..batch.begin + rows_left.min(sets_max);
        let mut arrivals = Arrivals::with_capacity(rows.len(), sets.tokens_of(rows));
        batch.rows.clear();
        let mut taken = 0;
        while batch.end < batch.records.num_rows() && taken < sets_max {
            let row = batch.end;
            batch.end += 1;
            let Some((id, tokens)) = sets.get(row) else {
                self.nulls += 1;
                continue;
            };
            let stamp = self.clock.advance();
            taken += 1;
            self.empty_sets += u64::from(tokens.is_empty());
            if !self.join.can_match(tokens.len()) {
                continue;
            }
            arrivals.push(id, tokens, stamp)?;
            batch.rows.push(row);
        }
        let carried = batch.carried.as_ref().map(|carried| rows_at(carried, &batch.rows));
        self.join.begin(arrivals, carried.transpose()?)
    }

    pub(crate) fn counters(&self) -> Counters {
        let join = self.join.counters();
        let mut counters = vec![
            ("sets", self.clock.position()),
            ("empty_sets", self.empty_sets),
            ("nulls", self.nulls),
            ("postings", join.postings),
            ("pre_candidates", join.pre_candidates),
            ("candidates", join.candidates),
            ("panes", self.join.panes() as u64),
            ("merges", self.join.merges()),
            ("renumberings", self.join.renumberings()),
            ("state_bytes", self.join.bytes() as u64),
        ];
        counters.extend(self.bad.counters());
        counters
    }
}

/// The rows of a micro-batch.
struct SettledRows {
    records: RecordBatch,
    /// Whether each row can be used.
    are_usable: Vec<bool>,
    /// The row of each set.
    places: Vec<usize>,
}

/// The given `rows` of a batch of carried columns.
fn rows_at(carried: &RecordBatch, rows: &[usize]) -> Result<CarriedRows, ArrowError> {
    let rows = UInt64Array::from_iter_values(rows.iter().map(|&row| row as u64));
    Ok(CarriedRows::of_batch(take_record_batch(carried, &rows)?))
}

/// Passes on the rows whose sets have no similar earlier set.
struct Deduplicate {
    batcher: Batcher,
    isa: Isa,
    chunk: CandidateChunk,
    verified: u64,
    duplicates: u64,
}

impl Deduplicate {
    fn send(&mut self, is_first: &[bool], out: &mut Output) -> Result<(), OperatorError> {
        let Some(settled) = self.batcher.settled() else { return Ok(()) };
        let SettledRows { records, are_usable: mut passes, places } = settled;
        for (row, &is_first) in places.into_iter().zip(is_first) {
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
        self.batcher.take(input)?;
        self.batcher.bad.take_rejected().into_iter().for_each(|rows| out.send_to(PORT, rows));
        self.resume(out)
    }

    fn resume(&mut self, out: &mut Output) -> Result<Flow, OperatorError> {
        loop {
            match self.batcher.next(&mut self.chunk)? {
                BatchStep::Chunk(sets) => {
                    let overlaps = self.chunk.verify(self.isa, &sets);
                    self.verified += self.chunk.len() as u64;
                    self.batcher.join.mark(&self.chunk, &overlaps);
                }
                BatchStep::Settled(is_first) => {
                    self.send(&is_first, out)?;
                    return Ok(Flow::HaveOutput);
                }
                BatchStep::End => return Ok(Flow::NeedInput),
            }
        }
    }

    fn counters(&self) -> Counters {
        let mut counters = self.batcher.counters();
        counters.extend([("verified", self.verified), ("duplicates", self.duplicates)]);
        counters
    }

    fn named_inputs(&self) -> NamedInputs {
        self.batcher.bad.named()
    }
}

/// PREPARE of a streaming join: chunks of the candidates of each batch.
pub(crate) struct StreamProducer {
    batcher: Batcher,
}

impl StreamProducer {
    pub(crate) fn new(rules: StreamRules, source: SetSource) -> Self {
        Self { batcher: Batcher::new(rules, source) }
    }
}

impl Producer for StreamProducer {
    type Chunk = JoinChunk;

    fn take(&mut self, _port: usize, batch: Payload) -> Result<(), OperatorError> {
        self.batcher.take(batch)
    }

    fn take_rejected(&mut self) -> Option<RecordBatch> {
        self.batcher.bad.take_rejected()
    }

    fn fill(&mut self, chunk: &mut JoinChunk) -> Result<Filled, OperatorError> {
        loop {
            match self.batcher.next(chunk.pairs_mut())? {
                BatchStep::Chunk(sets) => {
                    chunk.hold_pairs(sets);
                    return Ok(Filled::Chunk);
                }
                BatchStep::Settled(_) => {}
                BatchStep::End => return Ok(Filled::Nothing),
            }
        }
    }

    fn counters(&self) -> Counters {
        self.batcher.counters()
    }

    fn named_inputs(&self) -> NamedInputs {
        self.batcher.bad.named()
    }
}

/// An operator of one part that passes on the rows whose sets have no similar earlier set.
pub(crate) fn deduplicate(rules: StreamRules, source: SetSource, inputs: &[SchemaRef]) -> Fragment {
    let operator = Deduplicate {
        isa: rules.isa,
        batcher: Batcher::new(rules, source),
        chunk: CandidateChunk::with_bytes(FIRST_CHUNK_BYTES),
        verified: 0,
        duplicates: 0,
    };
    Fragment::operator(Load::Heavy, operator, inputs.to_vec())
}
