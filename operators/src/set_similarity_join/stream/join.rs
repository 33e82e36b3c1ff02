//! State of a streaming join, and the micro-batch that is being joined.

use std::hash::BuildHasher;
use std::sync::Arc;

use hashbrown::HashMap;
use rapidhash::fast::RandomState;
use trommel_engine::operator::OperatorError;
use trommel_kernels::Isa;
use trommel_kernels::sets::{SetStore, sort_lists};
use trommel_kernels::stream_postings::Posting;

use super::look_up::{FoundPair, IndexFull, LastProbes, SearchScope, StreamFinder};
use super::pane::{Arrivals, SetPane};
use super::tokens::{Dictionary, RENUMBERING_BYTES, TOKENS_NUMBERED_MAX, number_of};
use crate::set_similarity_join::candidates::chunk::CandidateChunk;
use crate::set_similarity_join::candidates::joined_sets::JoinedSets;
use crate::set_similarity_join::find::JoinCounters;
use crate::set_similarity_join::parameters::error::JoinError;
use crate::set_similarity_join::parameters::tuning::Tuning;
use crate::set_similarity_join::similarity::Bounds;
use crate::shared::budget::{Allowance, Budget, BudgetFull};
use crate::shared::columns::carry::CarriedRows;
use crate::shared::names::ItemNames;
use crate::shared::rejected::OnError;
use crate::shared::sets::SetBlock;
use crate::shared::window::Extent;
use crate::shared::window::panes::{Pane as _, Panes};

/// Number of the first set. This number is close to the end of `u32`, so that numbers wrap around
/// in every stream, not only in long streams.
const FIRST: u32 = u32::MAX - 31;

/// Number of tested postings for each token of the window from which on renumbering pays.
/// Renumbering a token costs as much as testing about 32 postings; 4 times that cost keeps the
/// share of renumbering below a quarter of the look-ups' cost.
const POSTINGS_PER_TOKEN: u64 = 4 * 32;

/// Parameters of a streaming join.
#[derive(Debug, Clone)]
pub(crate) struct StreamRules {
    pub(crate) bounds: Bounds,
    pub(crate) isa: Isa,
    pub(crate) window: Extent,
    /// Whether the answer is each pair. If not, the answer is only which sets have no similar
    /// earlier set; then one set of several equal sets is enough.
    pub(crate) is_each_pair: bool,
    /// Action for rows that cannot be used.
    pub(crate) on_error: Option<OnError>,
    /// Minimum number of tokens of a set; a smaller set is similar to no set.
    pub(crate) size_min: usize,
    /// Bytes of all state.
    pub(crate) memory: Allowance,
    pub(crate) tuning: Tuning,
}

/// Joins each set to the earlier sets of its window.
pub(super) struct StreamJoin {
    rules: StreamRules,
    dictionary: Dictionary,
    finder: StreamFinder,
    /// Panes from the oldest to the newest.
    panes: Panes<SetPane>,
    /// Number of the next set; 0 follows 2^32 - 1.
    next: u32,
    duplicates: Duplicates,
    batch: Option<MicroBatch>,
    counters: JoinCounters,
    renumberings: u64,
    /// Bytes of the items for which the tokens stand.
    item_bytes: usize,
    /// Number of postings that were tested before the last renumbering.
    postings_then: u64,
}

/// Sets of one cell that arrived together.
struct MicroBatch {
    /// The pane that the sets become.
    pane: SetPane,
    /// `None` if the answer is each pair.
    firsts: Option<Firsts>,
}

/// Marks for the sets of a micro-batch that have a similar earlier set.
///
/// A *place* counts all sets that arrived; a set's number in the pane counts only the sets that
/// were not dropped as duplicates.
struct Firsts {
    /// For each set: the stamp of its arrival.
    arrived: Vec<u64>,
    /// For each set: its place.
    places: Vec<u32>,
    /// For each place: whether no similar earlier set is known.
    is_first: Vec<bool>,
}

impl Firsts {
    /// Whether no similar earlier set of a set is known.
    fn may_be_first(&self, set: u32) -> bool {
        self.is_first[self.places[set as usize] as usize]
    }
}

/// The distinct sets of the present cell.
#[derive(Debug, Default)]
struct Duplicates {
    hasher: RandomState,
    /// Number of a set by the hash of its tokens; of sets with equal hashes, the number of the
    /// first set.
    sets: HashMap<u64, u32, RandomState>,
    cell: u64,
}

/// Outcome of [`StreamJoin::next_chunk`].
pub(super) enum JoinStep {
    /// The chunk holds candidates from these sets.
    Chunk(JoinedSets),
    /// No candidates are left, and the micro-batch has become a pane. For each place: whether no
    /// pair of the set was [marked](StreamJoin::mark). Empty if the answer is each pair.
    Settled(Vec<bool>),
}

impl StreamJoin {
    pub(super) fn new(rules: StreamRules) -> Self {
        Self {
            finder: StreamFinder::new(rules.bounds, rules.is_each_pair, &rules.tuning),
            rules,
            dictionary: Dictionary::default(),
            panes: Panes::default(),
            next: FIRST,
            duplicates: Duplicates::default(),
            batch: None,
            counters: JoinCounters::default(),
            renumberings: 0,
            item_bytes: 0,
            postings_then: 0,
        }
    }

    pub(super) fn counters(&self) -> JoinCounters {
        self.counters
    }

    /// Number of panes.
    pub(super) fn panes(&self) -> usize {
        self.panes.len()
    }

    /// Number of times that panes were merged.
    pub(super) fn merges(&self) -> u64 {
        self.panes.merges()
    }

    /// Number of times that tokens were renumbered.
    pub(super) fn renumberings(&self) -> u64 {
        self.renumberings
    }

    /// Bytes of the state.
    pub(super) fn bytes(&self) -> usize {
        let Self { dictionary, finder, panes, duplicates, batch, .. } = self;
        let of_batch = batch.iter().map(|batch| &batch.pane);
        let panes: usize = panes.iter().chain(of_batch).map(SetPane::bytes).sum();
        panes + dictionary.bytes() + finder.bytes() + duplicates.bytes() + self.item_bytes
    }

    /// The budget that is left after all state except the items for which the tokens stand.
    ///
    /// # Errors
    /// If the state does not fit.
    pub(super) fn budget(&self) -> Result<Budget, BudgetFull> {
        let mut budget = self.rules.memory.budget();
        budget.take("the sets in the window", self.bytes() - self.item_bytes)?;
        Ok(budget)
    }

    /// Counts `bytes` of the items for which the tokens stand as memory.
    pub(super) fn set_item_bytes(&mut self, bytes: usize) {
        self.item_bytes = bytes;
    }

    /// Whether most of the items `names` may belong only to sets that have left the window.
    pub(super) fn has_old_items(&self, names: &ItemNames) -> bool {
        names.len() > 2 * self.dictionary.len() + self.rules.tuning.items_min
    }

    /// Forgets the items for which no token stands. No micro-batch is being joined.
    pub(super) fn forget_items(&mut self, names: &mut ItemNames) {
        let mut used = vec![false; names.len()];
        self.dictionary.tokens().iter().for_each(|&token| used[token as usize] = true);
        let numbers = names.retain(&used);
        self.dictionary.rename(|token| numbers[token as usize]);
        self.item_bytes = names.bytes();
    }

    /// Forgets the tokens that have left the window, if there is memory for the renumbering. No
    /// micro-batch is being joined.
    ///
    /// # Errors
    /// If the index does not fit the memory.
    pub(super) fn forget_tokens(&mut self) -> Result<(), JoinError> {
        self.renumber(&mut [], 0)
    }

    /// Number of bytes by which the state can grow.
    fn room(&self) -> usize {
        self.rules.memory.bytes().saturating_sub(self.bytes())
    }

    /// Whether a set of `tokens` tokens can be similar to any set, at least to an equal set.
    pub(super) fn can_match(&self, tokens: usize) -> bool {
        tokens >= self.rules.size_min
            && u32::try_from(tokens).is_ok_and(|size| self.finder.prefix(size) > 0)
    }

    /// Prepares for a micro-batch whose first set has `stamp`: drops expired panes, and closes the
    /// last cell if `stamp` is in another cell.
    ///
    /// # Errors
    /// If columns cannot be joined.
    pub(super) fn open(&mut self, stamp: u64) -> Result<(), OperatorError> {
        self.forget(stamp);
        let cell = self.rules.window.cell(stamp);
        self.duplicates.switch_cell(cell);
        let room = self.room();
        Ok(self.panes.close_cells(cell, room)?)
    }

    /// Drops the panes that are outside the window of a set with `stamp`, and their postings.
    fn forget(&mut self, stamp: u64) {
        let Self { panes, finder, rules, next, .. } = self;
        let expired: Vec<SetPane> = panes.expire(rules.window, stamp).collect();
        let end = panes.first().map_or(*next, |pane| pane.begin);
        expired.iter().for_each(|pane| finder.remove(&pane.sets, end));
    }

    /// Begins to join a micro-batch: sets of one cell in the order of arrival, with one row of
    /// `carried` per set. [`Self::next_chunk`] finds its candidates.
    ///
    /// # Errors
    /// If the sets do not fit the memory.
    pub(super) fn begin(
        &mut self,
        mut arrivals: Arrivals,
        carried: Option<CarriedRows>,
    ) -> Result<(), OperatorError> {
        let Some(&first) = arrivals.stamps.first() else { return Ok(()) };
        let cell = self.rules.window.cell(first);
        let held = arrivals.bytes() + carried.as_ref().map_or(0, CarriedRows::bytes);
        self.make_room(&arrivals, held)?;
        let hashes = (!self.rules.is_each_pair).then(|| self.duplicates.hash(&arrivals));
        self.dictionary.replace(&mut arrivals.tokens);
        // Renumbering comes before the sets are numbered and indexed: the sets then get the new
        // numbers at once.
        if self.should_renumber() {
            self.renumber(&mut arrivals.tokens, held)?;
        }
        arrivals.tokens.iter_mut().for_each(|token| *token = number_of(*token));
        sort_lists(self.rules.isa, &arrivals.offsets, &mut arrivals.tokens);
        let firsts = hashes.map(|hashes| self.drop_duplicates(&mut arrivals, &hashes));
        let Arrivals { offsets, tokens, ids, stamps } = arrivals;
        let sets = SetStore::new(offsets, tokens);
        let sets = Arc::new(SetBlock::new(sets, ids, carried));
        let begin = self.next;
        self.next = begin.wrapping_add(narrow(sets.len()));
        let oldest = self.panes.first().map_or(begin, |pane| pane.begin);
        self.finder.last_probes.widen(oldest, begin, self.next);
        self.finder.begin(self.rules.isa, &sets);
        let newest = stamps.iter().copied().max().unwrap_or_default();
        let batch_bytes = self.rules.tuning.carried_batch_bytes;
        let pane = SetPane { sets, stamps, begin, cell, newest, batch_bytes };
        self.batch = Some(MicroBatch { pane, firsts });
        self.widen_index(0);
        Ok(())
    }

    /// Makes sure that there are numbers and memory for a micro-batch that takes `held` bytes
    /// itself. If memory gets short, tokens that have left the window are forgotten while there is
    /// still room to renumber the remaining tokens.
    fn make_room(&mut self, arrivals: &Arrivals, held: usize) -> Result<(), JoinError> {
        let (sets, tokens) = (arrivals.len(), arrivals.tokens.len());
        let is_room_left = self.room_for(sets, tokens, held).is_ok_and(|mut budget| {
            budget.take("the numbers of tokens", self.renumbering_bytes()).is_ok()
        });
        if !is_room_left && self.dictionary.may_forget() {
            self.renumber(&mut [], held)?;
        }
        self.room_for(sets, tokens, held).map(drop)
    }

    /// The budget after a micro-batch of `sets` sets with `tokens` tokens that takes `held` bytes.
    fn room_for(&self, sets: usize, tokens: usize, held: usize) -> Result<Budget, JoinError> {
        let of_window = sets + self.panes.iter().map(|pane| pane.sets.len()).sum::<usize>();
        let slots = self.dictionary.len() + tokens;
        for (what, number, most) in [
            ("sets in the window", of_window, self.rules.tuning.window_sets_max),
            ("different tokens", slots, TOKENS_NUMBERED_MAX),
        ] {
            if number > most {
                return Err(JoinError::TooMany { what, most });
            }
        }
        let mut budget = self.rules.memory.budget();
        budget.take("the sets in the window", self.bytes())?;
        budget.take("the sets", held)?;
        let duplicates = if self.rules.is_each_pair { 0 } else { self.duplicates.growth(sets) };
        budget.take("the numbers of tokens", self.dictionary.growth(tokens))?;
        let last_probes = LastProbes::bytes_for(of_window);
        budget.take("the index", self.finder.index.growth(slots) + last_probes + duplicates)?;
        Ok(budget)
    }

    /// Gives the index all memory that nothing else uses; `held` bytes are used in addition to the
    /// state.
    fn widen_index(&mut self, held: usize) {
        let left = self.room().saturating_sub(held);
        let Self { dictionary, finder, .. } = self;
        let bytes_max = left.saturating_add(finder.index.bytes_of_postings());
        finder.index.widen(dictionary.len(), bytes_max);
    }

    /// Whether renumbering the tokens is likely to pay.
    fn should_renumber(&self) -> bool {
        let tokens: usize = self.panes.iter().map(|pane| pane.sets.tokens()).sum();
        let tested = self.counters.postings - self.postings_then;
        self.dictionary.is_outgrown()
            || self.finder.index.is_wasteful()
            || tested / POSTINGS_PER_TOKEN > tokens as u64
    }

    /// Bytes that renumbering needs while it runs: the tables, and one pane that is copied and
    /// signed.
    fn renumbering_bytes(&self) -> usize {
        let of_pane = |pane: &SetPane| pane.bytes_of_sets() + size_of::<u64>() * pane.sets.len();
        let of_panes = self.panes.iter().map(of_pane).max();
        RENUMBERING_BYTES * self.dictionary.len() + of_panes.unwrap_or(0)
    }

    /// Renumbers the tokens by their frequency in the window and in `slots`, the tokens of a
    /// micro-batch that takes `held` bytes, and rebuilds the index. Without room for the tables,
    /// the numbers stay as they are.
    ///
    /// # Cost
    /// Sorts all sets of the window and adds all sets to the index.
    fn renumber(&mut self, slots: &mut [u32], held: usize) -> Result<(), JoinError> {
        if held.saturating_add(self.renumbering_bytes()) > self.room() {
            return Ok(());
        }
        self.renumberings += 1;
        self.postings_then = self.counters.postings;
        let mut counts = vec![0_u32; self.dictionary.len()];
        let of_panes = self.panes.iter().flat_map(|pane| pane.sets.sets().tokens());
        let of_panes = of_panes.map(|&token| number_of(token));
        for slot in of_panes.chain(slots.iter().copied()) {
            let count = &mut counts[slot as usize];
            *count = count.saturating_add(1);
        }
        let moved = self.dictionary.renumber(counts);
        slots.iter_mut().for_each(|slot| *slot = moved[*slot as usize]);
        // The new numbers change the order of the tokens, hence the prefix of each set.
        self.finder.index.clear();
        for pane in self.panes.iter_mut() {
            pane.renumber(self.rules.isa, |token| number_of(moved[number_of(token) as usize]));
        }
        drop(moved);
        self.widen_index(held);
        for pane in self.panes.iter() {
            let added = self.finder.add(self.rules.isa, pane);
            added.map_err(|IndexFull| self.index_error())?;
        }
        self.finder.index.shrink();
        Ok(())
    }

    /// The error for a full index.
    fn index_error(&self) -> JoinError {
        if let Some(most) = self.finder.index.binding_limit() {
            return JoinError::TooMany { what: "postings", most };
        }
        // The present state fits the budget, but the next growth of a list does not fit.
        let allowed = self.rules.memory.bytes();
        let needed = self.bytes().max(allowed).saturating_add(size_of::<Posting>());
        BudgetFull { what: "the index", needed, allowed }.into()
    }

    /// Drops sets that equal an earlier set of the same cell, and renews the stamp of the set that
    /// stays. Such a set is a duplicate, and later sets find the set that stays.
    ///
    /// `hashes` has a hash for each set. If two different sets have equal hashes, the second set is
    /// kept like any other set: a collision costs memory, not correctness.
    fn drop_duplicates(&mut self, arrivals: &mut Arrivals, hashes: &[u64]) -> Firsts {
        let mut is_first = vec![true; arrivals.len()];
        let mut kept: Vec<u32> = Vec::with_capacity(arrivals.len());
        let mut arrived = Vec::with_capacity(arrivals.len());
        for (place, &hash) in (0_u32..).zip(hashes) {
            let stamp = arrivals.stamps[place as usize];
            let number = self.next.wrapping_add(narrow(kept.len()));
            // The first set with this hash: a set of this micro-batch, a set of a pane, or this set
            // itself.
            let known = *self.duplicates.sets.entry(hash).or_insert(number);
            let tokens = arrivals.set(place as usize);
            let in_batch = known.wrapping_sub(self.next) as usize;
            if let Some(&original) = kept.get(in_batch) {
                if arrivals.set(original as usize) == tokens {
                    arrivals.stamps[original as usize] = stamp;
                    is_first[place as usize] = false;
                    continue;
                }
            } else if known != number {
                let first = self.panes[0].begin;
                let age = known.wrapping_sub(first);
                let is_before = |pane: &SetPane| pane.begin.wrapping_sub(first) <= age;
                let index = self.panes.partition_point(is_before) - 1;
                let pane = &mut self.panes[index];
                let set = known.wrapping_sub(pane.begin);
                if pane.sets.set(set) == tokens {
                    pane.refresh(set, stamp);
                    is_first[place as usize] = false;
                    continue;
                }
            }
            kept.push(place);
            arrived.push(stamp);
        }
        if kept.len() < arrivals.len() {
            arrivals.retain(&is_first);
        }
        Firsts { arrived, places: kept, is_first }
    }

    /// Whether a micro-batch is being joined.
    pub(super) fn is_busy(&self) -> bool {
        self.batch.is_some()
    }

    /// Replaces the content of `chunk` by the next candidates of the micro-batch.
    ///
    /// # Errors
    /// If the index does not fit the memory, or columns cannot be joined.
    ///
    /// # Panics
    /// If no micro-batch is being joined.
    pub(super) fn next_chunk(
        &mut self,
        chunk: &mut CandidateChunk,
    ) -> Result<JoinStep, OperatorError> {
        chunk.clear();
        let Self { rules, finder, panes, batch, counters, .. } = self;
        let batch = batch.as_mut().expect("a micro-batch is being joined");
        loop {
            if let Some(sets) = batch.emit(finder, panes, chunk) {
                counters.verified += chunk.len() as u64;
                return Ok(JoinStep::Chunk(sets));
            }
            let SetPane { sets, stamps, begin, .. } = &batch.pane;
            let firsts = batch.firsts.as_ref();
            let scope = SearchScope {
                sets,
                stamps,
                arrived: firsts.map_or(stamps, |firsts| &firsts.arrived),
                begin: *begin,
                panes,
                window: rules.window,
                is_settled: &|set| firsts.is_some_and(|firsts| !firsts.may_be_first(set)),
                isa: rules.isa,
            };
            match finder.find(&scope, counters) {
                Ok(true) => {}
                Ok(false) => return self.settle().map(JoinStep::Settled),
                Err(IndexFull) => return Err(self.index_error().into()),
            }
        }
    }

    /// Marks the newer sets of the similar pairs of `chunk`; further candidates of a marked set are
    /// skipped.
    pub(super) fn mark(&mut self, chunk: &CandidateChunk, overlaps: &[u32]) {
        let firsts = self.batch.as_mut().and_then(|batch| batch.firsts.as_mut());
        let Some(Firsts { places, is_first, .. }) = firsts else { return };
        for (probe, ..) in chunk.similar(overlaps) {
            is_first[places[probe as usize] as usize] = false;
        }
    }

    /// Turns the micro-batch into a pane.
    fn settle(&mut self) -> Result<Vec<bool>, OperatorError> {
        let room = self.room();
        let MicroBatch { pane, firsts } = self.batch.take().expect("a micro-batch is being joined");
        if !pane.sets.is_empty() {
            self.panes.push(pane, room)?;
        }
        Ok(firsts.map_or_else(Vec::new, |firsts| firsts.is_first))
    }
}

impl MicroBatch {
    /// Adds found candidates of one pane to `chunk`, and returns their sets; `None` if no candidate
    /// is left.
    fn emit(
        &self,
        StreamFinder { found, handed_over, .. }: &mut StreamFinder,
        panes: &[SetPane],
        chunk: &mut CandidateChunk,
    ) -> Option<JoinedSets> {
        let mut pane = None;
        for &FoundPair { pane: of, probe, set, required, start } in &found[*handed_over..] {
            if chunk.is_full() || pane.is_some_and(|pane| pane != of) {
                break;
            }
            *handed_over += 1;
            // An earlier chunk can have marked the probe in the meantime.
            if self.firsts.as_ref().is_none_or(|firsts| firsts.may_be_first(probe)) {
                pane = Some(of);
                chunk.push(probe, set, required, start);
            }
        }
        let probes = &self.pane.sets;
        let candidates = panes.get(pane? as usize).map_or(probes, |pane| &pane.sets);
        Some(JoinedSets::Stream { probes: Arc::clone(probes), candidates: Arc::clone(candidates) })
    }
}

impl Duplicates {
    /// Forgets the sets of the previous cell. Renewed stamps of these sets would keep their panes
    /// longer than a window and a cell.
    fn switch_cell(&mut self, cell: u64) {
        if self.cell != cell {
            self.sets.clear();
            self.cell = cell;
        }
    }

    /// For each set: a hash of its tokens.
    fn hash(&self, arrivals: &Arrivals) -> Vec<u64> {
        (0..arrivals.len()).map(|set| self.hasher.hash_one(arrivals.set(set))).collect()
    }

    fn bytes(&self) -> usize {
        Self::bytes_for(self.sets.capacity())
    }

    fn bytes_for(capacity: usize) -> usize {
        (size_of::<(u64, u32)>() + 1) * capacity * 8 / 7
    }

    /// Maximum bytes that `sets` more sets take.
    fn growth(&self, sets: usize) -> usize {
        let len = self.sets.len() + sets;
        let is_room = len <= self.sets.capacity();
        if is_room { 0 } else { Self::bytes_for((2 * len).next_power_of_two()) }
    }
}

fn narrow(sets: usize) -> u32 {
    u32::try_from(sets).expect("a batch has fewer than 2^31 rows")
}
