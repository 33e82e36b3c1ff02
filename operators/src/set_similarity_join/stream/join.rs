//! What is remembered of a stream, and a micro-batch on its way through it.

use std::hash::BuildHasher;
use std::sync::Arc;

use hashbrown::HashMap;
use rapidhash::fast::RandomState;
use trommel_engine::operator::OperatorError;
use trommel_kernels::Isa;
use trommel_kernels::arrivals::Posting;
use trommel_kernels::overlap::SetStore;

use super::super::bounds::Bounds;
use super::super::carried::Carried;
use super::super::chunk::{CandidateChunk, JoinedSets};
use super::super::collection::SetCollection;
use super::super::collector::{Budget, JoinError, TOKENS_MAX};
use super::super::join::JoinCounters;
use super::look_up::{Among, Finder, Found, IndexFull, Met};
use super::pane::{Arrivals, Pane, SET_BYTES};
use super::tokens::{Dictionary, TOKENS_NUMBERED_MAX, number_of};
use super::window::Extent;

/// Panes are made one with what came after them if they are at most so many times as large.
const GROWTH: usize = 2;

/// Candidates that are looked for at a time; and when it is only asked whether there is a similar
/// set, because a set that has one need not be looked up any more.
const FOUND_MAX: usize = 1 << 14;
const FOUND_FIRST_MAX: usize = 1 << 8;

/// The number of the first set. It is not long to 0 from here, so that every stream gets there.
const FIRST: u32 = u32::MAX - 31;

/// Postings that are tested in the time that it takes to number a token anew, and four times that:
/// numbering costs at most a quarter of what the look-ups do that call for it.
const POSTINGS_PER_TOKEN: u64 = 4 * 32;

/// What is joined, and how.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rules {
    pub(crate) bounds: Bounds,
    pub(crate) isa: Isa,
    pub(crate) window: Extent,
    /// Whether each pair is asked for, or only which sets have an earlier one that is similar.
    /// Then of equal sets only the last one need be remembered.
    pub(crate) is_each_pair: bool,
    /// Sets of fewer tokens are similar to none.
    pub(crate) size_min: usize,
    pub(crate) memory_max: usize,
}

/// Joins sets to those before them.
pub(super) struct StreamJoin {
    rules: Rules,
    dictionary: Dictionary,
    finder: Finder,
    /// The oldest first.
    panes: Vec<Pane>,
    /// The number of the next set; 0 comes after 2^32 - 1.
    next: u32,
    copies: Copies,
    batch: Option<MicroBatch>,
    counters: JoinCounters,
    merges: u64,
    renumberings: u64,
    /// Postings that had been tested when tokens were last numbered.
    postings_then: u64,
}

/// Sets of one cell that came together.
struct MicroBatch {
    /// What will be remembered of them.
    pane: Pane,
    /// By set: when it came.
    arrived: Vec<u64>,
    /// By set: its place among those that came.
    places: Vec<u32>,
    /// By place: whether no earlier set is known to be similar.
    is_first: Vec<bool>,
    /// By pane, from `emitted` on not yet handed over.
    found: Vec<Found>,
    emitted: usize,
}

/// Which sets of the present cell are there, to leave out copies of them.
#[derive(Debug, Default)]
struct Copies {
    hasher: RandomState,
    /// The number of a set, by the hash of its tokens.
    sets: HashMap<u64, u32, RandomState>,
    cell: u64,
}

/// What came of asking for the next chunk.
pub(super) enum Next {
    /// Candidates of these sets.
    Chunk(JoinedSets),
    /// There are no more, and the micro-batch has become a pane. By place: whether no earlier set
    /// was [marked](StreamJoin::mark) as similar.
    Settled(Vec<bool>),
}

impl StreamJoin {
    pub(super) fn new(rules: Rules) -> Self {
        Self {
            rules,
            dictionary: Dictionary::default(),
            finder: Finder::new(rules.bounds),
            panes: Vec::new(),
            next: FIRST,
            copies: Copies::default(),
            batch: None,
            counters: JoinCounters::default(),
            merges: 0,
            renumberings: 0,
            postings_then: 0,
        }
    }

    pub(super) fn counters(&self) -> JoinCounters {
        self.counters
    }

    /// Panes, how often some were made one, and how often tokens were numbered.
    pub(super) fn panes(&self) -> (usize, u64, u64) {
        (self.panes.len(), self.merges, self.renumberings)
    }

    /// Bytes of all that is remembered.
    pub(super) fn bytes(&self) -> usize {
        let Self { dictionary, finder, panes, copies, .. } = self;
        let panes: usize = panes.iter().map(Pane::bytes).sum();
        panes + dictionary.bytes() + finder.bytes() + copies.bytes()
    }

    fn budget(&self) -> Result<Budget, JoinError> {
        let mut budget = Budget::new(self.rules.memory_max);
        budget.take("the sets in the window", self.bytes())?;
        Ok(budget)
    }

    /// Whether a set of so many tokens can be similar to any, at least to itself.
    pub(super) fn can_match(&mut self, tokens: usize) -> bool {
        tokens >= self.rules.size_min
            && u32::try_from(tokens).is_ok_and(|size| self.finder.prefix(size) > 0)
    }

    /// Makes ready for a micro-batch, of which the first set comes at this time.
    ///
    /// # Errors
    /// If what is remembered does not fit the memory.
    pub(super) fn open(&mut self, stamp: u64) -> Result<(), OperatorError> {
        self.forget(stamp);
        let cell = self.rules.window.cell(stamp);
        self.copies.turn_to(cell);
        self.close_cells(cell)
    }

    /// Forgets the panes that no set can be similar to that comes at this time or later.
    fn forget(&mut self, stamp: u64) {
        let is_live = |pane: &Pane| self.rules.window.reaches(pane.newest, stamp);
        let dropped = self.panes.iter().position(is_live).unwrap_or(self.panes.len());
        let end = self.panes.get(dropped).map_or(self.next, |pane| pane.begin);
        for pane in self.panes.drain(..dropped) {
            self.finder.remove(&pane.sets, end);
        }
    }

    /// Begins to join a micro-batch: sets of one cell, in the order in which they came, and so are
    /// the rows that go with them. Its chunks follow from [`Self::next_chunk`].
    ///
    /// # Errors
    /// If it does not fit the memory.
    pub(super) fn begin(
        &mut self,
        mut arrivals: Arrivals,
        carried: Option<Carried>,
    ) -> Result<(), OperatorError> {
        let Some(&first) = arrivals.stamps.first() else { return Ok(()) };
        let cell = self.rules.window.cell(first);
        self.make_room(&arrivals, carried.as_ref().map_or(0, Carried::bytes))?;
        let hashes = if self.rules.is_each_pair { Vec::new() } else { self.copies.hash(&arrivals) };
        for token in &mut arrivals.tokens {
            *token = self.dictionary.slot(*token);
        }
        if self.should_renumber() {
            self.renumber(&mut arrivals.tokens)?;
        }
        arrivals.tokens.iter_mut().for_each(|token| *token = number_of(*token));
        (0..arrivals.len()).for_each(|set| arrivals.set_mut(set).sort_unstable());
        let mut is_first = vec![true; arrivals.len()];
        let mut places: Vec<u32> = (0..).take(arrivals.len()).collect();
        let arrived = if self.rules.is_each_pair {
            arrivals.stamps.clone()
        } else {
            self.leave_out_copies(&mut arrivals, &hashes, &mut is_first, &mut places)
        };
        let Arrivals { offsets, tokens, ids, stamps } = arrivals;
        let sets = SetStore::new(offsets, tokens);
        let sets = Arc::new(SetCollection::of_stream(sets, ids, carried.map(Arc::new)));
        let begin = self.next;
        self.next = begin.wrapping_add(narrow(sets.len()));
        let oldest = self.panes.first().map_or(begin, |pane| pane.begin);
        self.finder.met.widen(oldest, begin, self.next);
        self.widen_index();
        self.finder.begin(self.rules.isa, &sets);
        let newest = stamps.iter().copied().max().unwrap_or_default();
        let pane = Pane { sets, stamps, begin, cell, newest };
        let (found, emitted) = (Vec::new(), 0);
        self.batch = Some(MicroBatch { pane, arrived, places, is_first, found, emitted });
        Ok(())
    }

    /// Makes sure that there is memory for a micro-batch; if there is none, by forgetting tokens
    /// that are not in the window any more.
    fn make_room(&mut self, arrivals: &Arrivals, carried: usize) -> Result<(), OperatorError> {
        let (sets, tokens) = (arrivals.len(), arrivals.tokens.len());
        if self.dictionary.len() + tokens > TOKENS_NUMBERED_MAX {
            return Err(JoinError::TooManyTokens.into());
        }
        let result = self.room_for(sets, tokens, carried);
        if result.is_ok() || !self.dictionary.may_forget() {
            return Ok(result?);
        }
        self.renumber(&mut [])?;
        Ok(self.room_for(sets, tokens, carried)?)
    }

    fn room_for(&self, sets: usize, tokens: usize, carried: usize) -> Result<(), JoinError> {
        let mut budget = self.budget()?;
        budget.take("the columns", carried)?;
        budget.take("the sets", SET_BYTES * sets + size_of::<u32>() * tokens)?;
        let copies = if self.rules.is_each_pair { 0 } else { self.copies.growth(sets) };
        budget.take("the numbers of tokens", self.dictionary.growth(tokens))?;
        let slots = self.dictionary.len() + tokens;
        let held: usize = self.panes.iter().map(|pane| pane.sets.len()).sum();
        let met = Met::bytes_for(held + sets);
        budget.take("the index", self.finder.index.growth(slots) + met + copies)
    }

    fn widen_index(&mut self) {
        let Self { rules, dictionary, finder, .. } = self;
        let index = size_of_val(finder.index.postings());
        let others = self.panes.iter().map(Pane::bytes).sum::<usize>()
            + dictionary.bytes()
            + finder.bytes().saturating_sub(index);
        let left = rules.memory_max.saturating_sub(others);
        finder.index.widen(dictionary.len(), left / size_of::<Posting>());
    }

    /// Whether numbering tokens anew is likely to pay.
    fn should_renumber(&self) -> bool {
        let tokens: usize = self.panes.iter().map(|pane| pane.sets.tokens()).sum();
        let looked_at = self.counters.postings - self.postings_then;
        self.dictionary.is_outgrown()
            || self.finder.index.is_wasteful()
            || looked_at / POSTINGS_PER_TOKEN > tokens as u64
    }

    /// Numbers the tokens anew, by how often they are in the window and in the slots of a
    /// micro-batch, and makes the index anew.
    ///
    /// # Cost
    /// Sorts all sets and adds them to the index.
    fn renumber(&mut self, slots: &mut [u32]) -> Result<(), OperatorError> {
        self.renumberings += 1;
        self.postings_then = self.counters.postings;
        let mut counts = vec![0_u32; self.dictionary.len()];
        let of_panes = self.panes.iter().flat_map(|pane| pane.sets.all_tokens());
        let of_panes = of_panes.map(|&token| number_of(token));
        for slot in of_panes.chain(slots.iter().copied()) {
            let count = &mut counts[slot as usize];
            *count = count.saturating_add(1);
        }
        let moved = self.dictionary.renumber(&counts);
        drop(counts);
        slots.iter_mut().for_each(|slot| *slot = moved[*slot as usize]);
        self.finder.index.clear();
        for pane in &mut self.panes {
            pane.renumber(|token| number_of(moved[number_of(token) as usize]));
        }
        drop(moved);
        self.widen_index();
        for pane in &self.panes {
            let added = self.finder.add(self.rules.isa, pane);
            added.map_err(|IndexFull| self.index_error())?;
        }
        self.finder.index.shrink();
        Ok(())
    }

    /// Says that the index needs more memory than there is.
    fn index_error(&self) -> JoinError {
        let mut budget = Budget::new(self.rules.memory_max);
        // What there is fits, and the room that is asked for, of twice the longest list, does not.
        let needed = self.bytes().max(self.rules.memory_max) + size_of::<Posting>();
        budget.take("the index", needed).expect_err("more than is allowed")
    }

    /// Leaves out sets of a micro-batch that are equal to one before them in their cell, which is
    /// remembered in their stead and as long; and says when the others came.
    fn leave_out_copies(
        &mut self,
        arrivals: &mut Arrivals,
        hashes: &[u64],
        is_first: &mut [bool],
        places: &mut Vec<u32>,
    ) -> Vec<u64> {
        let mut kept: Vec<u32> = Vec::with_capacity(places.len());
        let mut arrived = Vec::with_capacity(places.len());
        for (place, &hash) in (0_u32..).zip(hashes) {
            let stamp = arrivals.stamps[place as usize];
            let number = self.next.wrapping_add(narrow(kept.len()));
            let known = *self.copies.sets.entry(hash).or_insert(number);
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
                let is_before = |pane: &Pane| pane.begin.wrapping_sub(first) <= age;
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
        if kept.len() < places.len() {
            arrivals.retain(is_first);
        }
        *places = kept;
        arrived
    }

    /// Whether a micro-batch is under way.
    pub(super) fn is_busy(&self) -> bool {
        self.batch.is_some()
    }

    /// Puts the next candidates of the micro-batch in the chunk, in place of what it holds.
    ///
    /// # Errors
    /// If the index, or a pane, does not fit the memory.
    ///
    /// # Panics
    /// If no micro-batch is under way.
    pub(super) fn next_chunk(&mut self, chunk: &mut CandidateChunk) -> Result<Next, OperatorError> {
        chunk.clear();
        let Self { rules, finder, panes, batch, counters, .. } = self;
        let batch = batch.as_mut().expect("a micro-batch is under way");
        let found_max = if rules.is_each_pair { FOUND_MAX } else { FOUND_FIRST_MAX };
        loop {
            if let Some(sets) = batch.hand_over(panes, rules.is_each_pair, chunk) {
                counters.verified += chunk.len() as u64;
                return Ok(Next::Chunk(sets));
            }
            (batch.found, batch.emitted) = (std::mem::take(&mut batch.found), 0);
            batch.found.clear();
            let among = Among {
                sets: &batch.pane.sets,
                stamps: &batch.pane.stamps,
                arrived: &batch.arrived,
                begin: batch.pane.begin,
                panes,
                window: rules.window,
                isa: rules.isa,
            };
            match finder.find(&among, &mut batch.found, found_max, counters) {
                Ok(()) if batch.found.is_empty() => return self.settle().map(Next::Settled),
                Ok(()) => batch.found.sort_by_key(|found| found.pane),
                Err(IndexFull) => return Err(self.index_error().into()),
            }
        }
    }

    /// Takes notice of similar pairs: their newer sets need not be looked up any more.
    pub(super) fn mark(&mut self, chunk: &CandidateChunk, overlaps: &[u32]) {
        let Some(batch) = &mut self.batch else { return };
        for (probe, ..) in chunk.similar(overlaps) {
            batch.is_first[batch.places[probe as usize] as usize] = false;
        }
    }

    /// Makes the micro-batch a pane, together with those before it that are not much larger.
    fn settle(&mut self) -> Result<Vec<bool>, OperatorError> {
        let MicroBatch { pane, is_first, .. } =
            self.batch.take().expect("a micro-batch is under way");
        if pane.sets.is_empty() {
            return Ok(is_first);
        }
        let mut begin = self.panes.len();
        let (mut weight, mut tokens) = (pane.weight(), pane.sets.tokens());
        while let Some(before) = begin.checked_sub(1).map(|index| &self.panes[index]) {
            let is_room = before.sets.tokens() <= TOKENS_MAX - tokens;
            if before.cell != pane.cell || before.weight() > GROWTH * weight || !is_room {
                break;
            }
            weight += before.weight();
            tokens += before.sets.tokens();
            begin -= 1;
        }
        self.panes.push(pane);
        self.merge(begin)?;
        Ok(is_first)
    }

    /// Makes one pane of each cell but this one.
    fn close_cells(&mut self, open: u64) -> Result<(), OperatorError> {
        let Some(cell) = self.panes.last().map(|pane| pane.cell) else { return Ok(()) };
        if cell == open {
            return Ok(());
        }
        let begin = self.panes.partition_point(|pane| pane.cell < cell);
        let tokens: usize = self.panes[begin..].iter().map(|pane| pane.sets.tokens()).sum();
        if tokens > TOKENS_MAX { Ok(()) } else { self.merge(begin) }
    }

    /// Makes one pane of those from `begin` on.
    fn merge(&mut self, begin: usize) -> Result<(), OperatorError> {
        let parts = &self.panes[begin..];
        if parts.len() > 1 {
            self.budget()?.take("sets that are copied", parts.iter().map(Pane::bytes).sum())?;
            let merged = Pane::merged(parts)?;
            self.merges += 1;
            self.panes.truncate(begin);
            self.panes.push(merged);
        }
        Ok(())
    }
}

impl MicroBatch {
    /// Puts candidates of one pane in the chunk, if there are any; says whose they are.
    fn hand_over(
        &mut self,
        panes: &[Pane],
        is_each_pair: bool,
        chunk: &mut CandidateChunk,
    ) -> Option<JoinedSets> {
        let mut pane = None;
        for &Found { pane: of, probe, set, required, start } in &self.found[self.emitted..] {
            if chunk.is_full() || pane.is_some_and(|pane| pane != of) {
                break;
            }
            self.emitted += 1;
            if is_each_pair || self.is_first[self.places[probe as usize] as usize] {
                pane = Some(of);
                chunk.push(probe, set, required, start);
            }
        }
        let probes = &self.pane.sets;
        let candidates = panes.get(pane? as usize).map_or(probes, |pane| &pane.sets);
        Some(JoinedSets { probes: Arc::clone(probes), candidates: Arc::clone(candidates) })
    }
}

impl Copies {
    /// Sets of this cell come now.
    fn turn_to(&mut self, cell: u64) {
        if self.cell != cell {
            self.sets.clear();
            self.cell = cell;
        }
    }

    /// By set: a hash of its tokens.
    fn hash(&self, arrivals: &Arrivals) -> Vec<u64> {
        (0..arrivals.len()).map(|set| self.hasher.hash_one(arrivals.set(set))).collect()
    }

    fn bytes(&self) -> usize {
        Self::bytes_for(self.sets.capacity())
    }

    fn bytes_for(capacity: usize) -> usize {
        (size_of::<(u64, u32)>() + 1) * capacity * 8 / 7
    }

    /// Bytes that so many sets more may take.
    fn growth(&self, sets: usize) -> usize {
        let len = self.sets.len() + sets;
        let is_room = len <= self.sets.capacity();
        if is_room { 0 } else { Self::bytes_for((2 * len).next_power_of_two()) }
    }
}

fn narrow(sets: usize) -> u32 {
    u32::try_from(sets).expect("a batch has fewer than 2^31 rows")
}
