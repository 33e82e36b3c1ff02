//! PREPARE of the join of a collection: collects all sets, then finds their candidates.

use std::sync::Arc;

use arrow_array::RecordBatch;
use trommel_engine::batch::Payload;
use trommel_engine::operator::{Counters, OperatorError};

use super::cost::tiling::Tiling;
use super::cost::verification;
use super::find::JoinCounters;
use super::join::{JoinQuestion, SetJoin};
use super::verify::join_chunk::JoinChunk;
use crate::sets::{Carrier, SetCollector, SetColumns, SetRows, Side};
use crate::wave::{Cost, Filled, Producer};

/// Progress of the join.
enum Phase {
    /// Before the inputs have ended.
    Collecting(SetCollector),
    /// After that.
    Joining(SetJoin),
}

/// Collects the sets of one or two inputs, then makes chunks of their candidates.
pub(super) struct CollectionProducer {
    /// `None` only within [`Producer::finish`].
    phase: Option<Phase>,
    columns: Vec<SetColumns>,
    /// Carried columns, if there are any.
    carrier: Option<Carrier>,
    question: JoinQuestion,
    size_min: usize,
    tiling: Tiling,
    /// Whether a chunk of tiles has come back.
    has_answered_tiles: bool,
    /// Whether tiles were planned for a device that is lost, and have been dropped.
    is_planned_anew: bool,
    sets: u64,
    empty_sets: u64,
    nulls: u64,
}

impl CollectionProducer {
    /// A producer that adds all sets of at least `size_min` tokens to `collector`, and then joins
    /// them.
    pub(super) fn new(
        collector: SetCollector,
        columns: Vec<SetColumns>,
        question: JoinQuestion,
        size_min: usize,
        tiling: Tiling,
    ) -> Self {
        Self {
            phase: Some(Phase::Collecting(collector)),
            carrier: SetColumns::carrier(&columns),
            columns,
            question,
            size_min,
            tiling,
            has_answered_tiles: false,
            is_planned_anew: false,
            sets: 0,
            empty_sets: 0,
            nulls: 0,
        }
    }

    /// A producer whose inputs have ended.
    #[cfg(test)]
    pub(super) fn of_join(join: SetJoin, question: JoinQuestion) -> Self {
        Self {
            phase: Some(Phase::Joining(join)),
            carrier: None,
            columns: Vec::new(),
            question,
            size_min: 1,
            tiling: Tiling::Never,
            has_answered_tiles: false,
            is_planned_anew: false,
            sets: 0,
            empty_sets: 0,
            nulls: 0,
        }
    }

    /// Adds the sets of a batch from input `port`.
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
            // With carried columns, rows are numbered instead of ids, null rows too; ids follow
            // at the end.
            let row_id = self.carrier.as_mut().map_or(id, |carrier| carrier.number_row(side, id));
            if set.is_none() {
                self.nulls += 1;
                continue;
            }
            self.sets += 1;
            self.empty_sets += u64::from(tokens.is_empty());
            if tokens.len() >= self.size_min {
                collector.push(side, row_id, tokens).map_err(|error| error.of_set(id))?;
            }
        }
        Ok(())
    }
}

impl Producer for CollectionProducer {
    type Chunk = JoinChunk;

    fn take(&mut self, port: usize, batch: Payload) -> Result<(), OperatorError> {
        self.collect(port, &batch.into_records())
    }

    fn finish(&mut self) -> Result<(), OperatorError> {
        let Some(Phase::Collecting(collector)) = self.phase.take() else {
            unreachable!("the inputs end once")
        };
        let mut collection = collector.finish()?;
        if let Some(carrier) = self.carrier.take() {
            let (ids, columns) = carrier.finish(self.question.tuning.carried_batch_bytes)?;
            collection.carry(&ids, columns);
        }
        let join = SetJoin::in_waves(&Arc::new(collection), self.question, &self.tiling)?;
        self.phase = Some(Phase::Joining(join));
        Ok(())
    }

    fn expected(&self) -> Option<Cost> {
        let Some(Phase::Joining(join)) = &self.phase else { return None };
        let tiler = join.tiler()?;
        Some(verification::of_tiles(join.sets(), tiler.pairs(), tiler.sets().words()))
    }

    fn fill(&mut self, chunk: &mut JoinChunk) -> Result<Filled, OperatorError> {
        let Some(Phase::Joining(join)) = &mut self.phase else { return Ok(Filled::Nothing) };
        if let Some(sets) = join.next_tiles(chunk.tiles_mut()) {
            chunk.hold_tiles(sets);
            return Ok(Filled::Chunk);
        }
        if join.next_chunk(chunk.pairs_mut()) {
            chunk.hold_pairs(join.sets().clone());
            return Ok(Filled::Chunk);
        }
        Ok(Filled::Nothing)
    }

    fn landed(&mut self, chunk: &mut JoinChunk) {
        let Some(Phase::Joining(join)) = &mut self.phase else { return };
        join.count_survivors(chunk.survivors());
        if chunk.has_tiles() {
            // Chunks land in the order in which they were sent. If the first one is given back,
            // its device has answered none, and each later chunk of tiles is given back, too.
            self.is_planned_anew |=
                chunk.is_given_back() && !self.has_answered_tiles && join.plan_for_cpu();
            if self.is_planned_anew {
                chunk.drop_tiles();
            }
            self.has_answered_tiles = true;
        }
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
        ]
    }
}
