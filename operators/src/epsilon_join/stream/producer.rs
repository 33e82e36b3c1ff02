//! Streaming join: each vector is joined on arrival to the earlier vectors of its window.
//!
//! ```text
//! batch ──► micro-batch ──► directory ──► joined with itself and with each pane ──► pairs
//!                               │
//!                               ▼
//!    [ pane   ]  [ pane   ]  [ pane ][ p ][p]      merged as they age, dropped when they expire
//! ```
//!
//! A micro-batch is a batch, or a part of a batch that is in one cell and has at most
//! [`Tuning::micro_batch`](crate::epsilon_join::parameters::tuning::Tuning) vectors. So the load
//! determines the size of micro-batches: a source sends the vectors that it has, and a single
//! vector does not wait for more vectors. A pane is an immutable block of vectors with its own
//! directory: a chunk of a micro-batch that is still searched refers to the panes with which its
//! search began. Panes are [merged](super::merging) while micro-batches are joined, and the parts
//! of a merge are searched until the merge has ended. Each pair is kept only if its older vector is
//! in the window, so pairs do not depend on micro-batches, panes or the progress of merges.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use arrow_array::RecordBatch;
use arrow_schema::ArrowError;
use trommel_engine::batch::Payload;
use trommel_engine::operator::{Counters, Ending, NamedInputs, OperatorError};

use super::merging::{COMPONENTS_MIN, Merged, Merging};
use super::stored::StoredVectors;
use crate::epsilon_join::answer::chunk::{EpsilonChunk, KeptPairs, Task};
use crate::epsilon_join::answer::join::PartedJoin;
use crate::epsilon_join::data::built::{Built, Collected, Sides, directory_bytes};
use crate::epsilon_join::data::copies::{Copies, copies_bytes};
use crate::epsilon_join::data::side::{Side, VECTORS_MAX, VectorBatch};
use crate::epsilon_join::parameters::error::EpsilonJoinError;
use crate::epsilon_join::parameters::options::EpsilonOutput;
use crate::epsilon_join::parameters::rules::Rules;
use crate::shared::budget::{Budget, BudgetFull};
use crate::shared::rejected::BadRows;
use crate::shared::state::SnapshotFile;
use crate::shared::window::Extent;
use crate::shared::window::clock::StreamClock;
use crate::shared::window::panes::{Pane, Panes};
use crate::wave::{Filled, Producer};

/// Name of the memory for the copy of merged panes, in errors.
const MERGE: &str = "the merge";

/// Consecutive vectors of one cell.
struct VectorPane {
    built: Arc<Built>,
    cell: u64,
    bytes: usize,
}

impl VectorPane {
    fn new(built: impl Into<Arc<Built>>, cell: u64) -> Self {
        let built = built.into();
        Self { bytes: built.bytes(), built, cell }
    }
}

impl Pane for VectorPane {
    fn cell(&self) -> u64 {
        self.cell
    }

    fn newest(&self) -> u64 {
        self.built.stamps.last().copied().unwrap_or_default()
    }

    fn weight(&self) -> usize {
        // The weight counts rows, because a merge copies all rows even if there are few distinct
        // vectors.
        self.built.ids.len()
    }

    fn bytes(&self) -> usize {
        self.bytes
    }

    fn may_merge(parts: &[Self]) -> bool {
        parts.iter().map(Self::weight).sum::<usize>() <= VECTORS_MAX
    }
}

/// The batch that is being joined: its rows, and the first row that is not joined yet.
struct OpenBatch {
    vectors: VectorBatch,
    begin: usize,
}

/// Joins the micro-batches of a stream one after the other.
pub(crate) struct StreamProducer {
    rules: Rules,
    window: Extent,
    side: Side,
    bad: BadRows,
    /// Rows so far.
    vectors: u64,
    panes: Panes<VectorPane>,
    merging: Merging,
    /// The failure of a merge, which ends the run.
    failed: Option<ArrowError>,
    batch: Option<OpenBatch>,
    /// Tasks of the last micro-batch that are not in the wave yet.
    tasks: VecDeque<Task>,
    clock: StreamClock,
    /// The file for the window at the end of the stream.
    snapshot: Option<SnapshotFile>,
}

impl StreamProducer {
    pub(crate) fn new(
        rules: Rules,
        window: Extent,
        (side, bad): (Side, BadRows),
        snapshot: Option<SnapshotFile>,
    ) -> Self {
        Self {
            merging: Merging::new(rules.clone()),
            rules,
            window,
            side,
            bad,
            vectors: 0,
            panes: Panes::default(),
            failed: None,
            batch: None,
            tasks: VecDeque::new(),
            clock: StreamClock::new(window),
            snapshot,
        }
    }

    /// Continues from the state of an earlier stream. The stream has no batch yet.
    pub(crate) fn restore(&mut self, bytes: &[u8]) -> Result<(), OperatorError> {
        let dims = self.side.dims();
        let stored = StoredVectors::read(bytes, as_number(dims), self.window)?;
        self.clock.resume(stored.position, stored.time);
        let window = self.window;
        let mut first = 0;
        for stamps in
            stored.stamps.chunk_by(|left, right| window.cell(*left) == window.cell(*right))
        {
            let rows = first..first + stamps.len();
            first = rows.end;
            let has_directory = self.rules.has_directory(u64::MAX, dims);
            let directory = if has_directory { directory_bytes(stamps.len(), dims) } else { 0 };
            let row = dims * size_of::<f32>() + size_of::<u32>() + size_of::<u64>();
            self.make_room(stamps.len() * row + directory)?;
            let collected = Collected {
                coordinates: stored.coordinates[rows.start * dims..rows.end * dims].to_vec(),
                dims,
                epsilon: self.rules.epsilon,
                ids: stored.ids[rows].to_vec(),
                copies: None,
                carried: None,
                has_directory,
                stamps: stamps.to_vec(),
            };
            let pane = self.pane(collected);
            self.panes.add(pane);
        }
        Ok(())
    }

    /// The vectors that later vectors may join with, and the progress of the stream.
    fn stored(&self) -> StoredVectors {
        let (position, time) = (self.clock.position(), self.clock.time());
        let mut stored = StoredVectors { position, time, ..StoredVectors::default() };
        let next = stored.next(self.window);
        for pane in &*self.panes {
            let Built { ids, stamps, .. } = &*pane.built;
            let gone = stamps.partition_point(|&stamp| !self.window.reaches(stamp, next));
            stored.ids.extend_from_slice(&ids[gone..]);
            stored.stamps.extend_from_slice(&stamps[gone..]);
            // Zeros of both signs are equal, and all copies have the coordinates of the first copy;
            // adding 0 makes the state the same for any division into batches.
            let rows = (gone..ids.len()).flat_map(|row| pane.built.row(row));
            stored.coordinates.extend(rows.map(|coordinate| coordinate + 0.0));
        }
        stored
    }

    /// Begins the next micro-batch; false if the batch is used up.
    fn begin(&mut self) -> Result<bool, OperatorError> {
        let Some(OpenBatch { vectors, begin }) = &mut self.batch else { return Ok(false) };
        let rows = (vectors.len() - *begin)
            .min(self.clock.left_in_cell())
            .min(self.rules.tuning.micro_batch);
        if rows == 0 {
            self.batch = None;
            return Ok(false);
        }
        let part = vectors.slice(*begin, rows);
        *begin += rows;
        let stamps: Vec<u64> = (0..rows).map(|_| self.clock.advance()).collect();
        let (first, last) = (stamps[0], stamps[rows - 1]);
        drop(self.panes.expire(self.window, first));
        // The number of pairs of a stream is not known, and is assumed to be large enough for
        // directories to pay.
        let dims = self.side.dims();
        let has_directory = self.rules.has_directory(u64::MAX, dims);
        let directory = if has_directory { directory_bytes(rows, dims) } else { 0 };
        let may_join_once = self.rules.may_join_copies_once();
        let copies = if may_join_once { copies_bytes(rows) } else { 0 };
        self.make_room(part.bytes() + directory + copies)?;
        let mut asked = Budget::new(usize::MAX);
        self.side.append(part, &mut asked)?;
        let mut collected = self.side.take(&self.rules, has_directory, stamps, &mut asked)?;
        if may_join_once && Copies::pay_in_stream(&collected.coordinates, dims, &self.rules.tuning)
        {
            collected.copies = Some(Copies::group(&mut collected.coordinates, dims));
        }
        let pane = self.pane(collected);
        self.list_tasks(&pane.built, last);
        self.panes.add(pane);
        self.merging.earn(rows, self.side.dims());
        self.begin_merge();
        Ok(true)
    }

    /// Asks for `bytes` of a micro-batch before these bytes are allocated. If there is no room, the
    /// merge is given up.
    fn make_room(&mut self, bytes: usize) -> Result<(), EpsilonJoinError> {
        if self.ask_for("the micro-batch", bytes).is_err() {
            self.merging.cancel();
            self.ask_for("the micro-batch", bytes)?;
        }
        Ok(())
    }

    /// Asks for `bytes` in addition to all present data.
    fn ask_for(&self, what: &'static str, bytes: usize) -> Result<(), BudgetFull> {
        let mut budget = self.rules.memory.budget();
        budget.take("the vectors in the window", self.bytes())?;
        budget.take(MERGE, self.merging.bytes())?;
        budget.reserve(what, bytes)
    }

    /// A pane of vectors of one cell; [`make_room`](Self::make_room) has reserved its bytes.
    fn pane(&self, collected: Collected) -> VectorPane {
        let cell = self.window.cell(collected.stamps.first().copied().unwrap_or_default());
        let like = self.largest().filter(|_| collected.ids.len() < COMPONENTS_MIN);
        let like = like.and_then(|built| built.directory());
        VectorPane::new(collected.build(self.rules.isa, like), cell)
    }

    /// The vectors of the largest pane.
    fn largest(&self) -> Option<&Arc<Built>> {
        let panes = self.panes.iter().map(|pane| &pane.built);
        panes.max_by_key(|built| built.len())
    }

    /// Begins the next merge, if no merge is under way.
    fn begin_merge(&mut self) {
        if self.merging.is_running() {
            return;
        }
        let room = self.rules.memory.bytes().saturating_sub(self.bytes());
        let Some(run) = self.panes.run_to_merge(room) else { return };
        let panes = &self.panes[run];
        let rows = panes.iter().map(Pane::weight).sum();
        let copies = if self.rules.may_join_copies_once() { copies_bytes(rows) } else { 0 };
        let bytes = panes.iter().map(Pane::bytes).sum::<usize>() + copies;
        if self.ask_for(MERGE, bytes).is_err() {
            // Another stage has taken the room meanwhile.
            return;
        }
        let parts = panes.iter().map(|pane| Arc::clone(&pane.built)).collect();
        let Some(largest) = self.largest().cloned() else { return };
        self.merging.begin(parts, bytes, largest);
    }

    /// Replaces the parts of a merge that have not expired by the merged pane.
    fn put(&mut self, merged: Merged) {
        let Merged { parts, built } = merged;
        let is_part = |pane: &VectorPane| parts.iter().any(|part| Arc::ptr_eq(part, &pane.built));
        let Some(begin) = self.panes.iter().position(is_part) else { return };
        let len = self.panes[begin..].iter().take_while(|pane| is_part(pane)).count();
        let (run, cell) = (begin..begin + len, self.panes[begin].cell);
        self.panes.replace(run, VectorPane::new(built, cell));
    }

    /// Lists the work of a micro-batch whose newest stamp is `last`.
    fn list_tasks(&mut self, built: &Arc<Built>, last: u64) {
        let are_looked_up = self.rules.output == EpsilonOutput::First;
        let within = Sides { left: Arc::clone(built), right: None, are_looked_up };
        // All vectors of a cell are in one window, so the join within the micro-batch needs no test
        // of the window.
        self.list_join(&within, None);
        for pane in 0..self.panes.len() {
            let left = Arc::clone(&self.panes[pane].built);
            let oldest = left.stamps.first().copied().unwrap_or_default();
            let window = (!self.window.reaches(oldest, last)).then_some(self.window);
            let right = Some(Arc::clone(built));
            self.list_join(&Sides { left, right, are_looked_up }, window);
        }
        // The report sends the rows without an earlier partner, or adds the pairs of equal vectors.
        let is_counted = self.rules.output == EpsilonOutput::Count && within.have_copies();
        if are_looked_up || is_counted {
            self.tasks.push_back(Task::Report { sides: within, partners: None });
        }
    }

    fn list_join(&mut self, sides: &Sides, window: Option<Extent>) {
        let Rules { kernels, tuning, .. } = self.rules;
        let parts = PartedJoin::new(sides, tuning.block_rows).parts();
        let step = parts.div_ceil(kernels).clamp(1, tuning.chunk_parts);
        for begin in (0..parts).step_by(step) {
            let parts = begin..parts.min(begin + step);
            let sides = sides.clone();
            let kept = window.map_or(KeptPairs::All, KeptPairs::Within);
            self.tasks.push_back(Task::Join { sides, partners: None, parts, kept });
        }
    }

    /// Bytes of the panes.
    fn bytes(&self) -> usize {
        self.panes.iter().map(Pane::bytes).sum()
    }
}

impl Producer for StreamProducer {
    type Chunk = EpsilonChunk;

    fn take(&mut self, _port: usize, batch: Payload) -> Result<(), OperatorError> {
        if self.clock.is_new() {
            self.snapshot.as_ref().map_or(Ok(()), SnapshotFile::probe)?;
        }
        let entered = batch.origin().map_or_else(Instant::now, |origin| origin.entered);
        self.clock.enter(entered);
        let records = batch.into_records();
        self.vectors += records.num_rows() as u64;
        let vectors = self.side.accept(self.rules.isa, &records, &mut self.bad)?;
        self.batch = Some(OpenBatch { vectors, begin: 0 });
        Ok(())
    }

    fn take_rejected(&mut self) -> Option<RecordBatch> {
        self.bad.take_rejected()
    }

    fn fill(&mut self, chunk: &mut EpsilonChunk) -> Result<Filled, OperatorError> {
        if let Some(error) = self.failed.take() {
            return Err(error.into());
        }
        loop {
            if let Some(task) = self.tasks.pop_front().or_else(|| self.merging.paid_task()) {
                chunk.task = task;
                return Ok(Filled::Chunk);
            }
            if !self.begin()? {
                let has_task = self.merging.has_task();
                return Ok(if has_task { Filled::Spare } else { Filled::Nothing });
            }
        }
    }

    fn fill_spare(&mut self, chunk: &mut EpsilonChunk) -> Result<bool, OperatorError> {
        let task = self.merging.task();
        let is_filled = task.is_some();
        chunk.task = task.unwrap_or_default();
        Ok(is_filled)
    }

    fn landed(&mut self, chunk: &mut EpsilonChunk) {
        if !matches!(chunk.task, Task::Gather(_) | Task::Build { .. }) {
            return;
        }
        match self.merging.landed(std::mem::take(&mut chunk.task)) {
            Ok(Some(merged)) => {
                self.put(merged);
                self.begin_merge();
            }
            Ok(None) => {}
            Err(error) => self.failed = Some(error),
        }
    }

    fn port_ended(&mut self, _port: usize, ending: Ending) {
        self.snapshot.iter_mut().for_each(|file| file.input_ended(ending));
    }

    fn end(&mut self) -> Result<(), OperatorError> {
        let Some(file) = self.snapshot.take() else { return Ok(()) };
        let dims = as_number(self.side.dims());
        Ok(file.write(self.stored().write(dims, self.window))?)
    }

    fn counters(&self) -> Counters {
        let mut counters = vec![
            ("vectors", self.vectors),
            ("panes", self.panes.len() as u64),
            ("merges", self.panes.merges()),
            ("state_bytes", (self.bytes() + self.merging.bytes()) as u64),
        ];
        counters.extend(self.bad.counters());
        counters
    }

    fn named_inputs(&self) -> NamedInputs {
        self.bad.named()
    }
}

/// The number of coordinates of a vector, at most 4,096, in 32 bits.
fn as_number(dims: usize) -> u32 {
    u32::try_from(dims).expect("at most 4,096")
}
