//! The panes, and a micro-batch on its way through them.

use std::sync::Arc;

use trommel_engine::operator::OperatorError;
use trommel_kernels::Isa;

use super::super::bounds::{Bounds, Similarity};
use super::super::carried::Carried;
use super::super::chunk::{CandidateChunk, JoinedSets};
use super::super::collector::{Budget, JoinError, SetCollector, TOKENS_MAX};
use super::super::join::{JoinAlgorithm, JoinCounters, SetJoin};
use super::super::threshold::Threshold;
use super::look_up::{LookUp, Probes};
use super::pane::{Arrival, Members, Pane};
use super::window::Extent;

/// A pane is made anew together with what came after it if it is at most so many times as large.
const GROWTH: usize = 2;

/// What is joined, and how.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rules {
    pub(crate) similarity: Similarity,
    pub(crate) threshold: Threshold,
    pub(crate) bounds: Bounds,
    /// How pairs within a micro-batch are found.
    pub(crate) algorithm: JoinAlgorithm,
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
    /// The oldest first.
    panes: Vec<Pane>,
    batch: Option<MicroBatch>,
    counters: JoinCounters,
    merges: u64,
}

/// Sets of one cell that came together.
struct MicroBatch {
    probes: Arc<Probes>,
    cell: u64,
    /// By place: whether no earlier set is known to be similar.
    is_first: Vec<bool>,
    step: Step,
}

/// How far a micro-batch is.
enum Step {
    /// It is joined to itself.
    Own(Box<SetJoin>),
    /// It is looked up in the pane before so many.
    Panes { left: usize, look_up: Option<LookUp> },
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
        let (panes, counters) = (Vec::new(), JoinCounters::default());
        Self { rules, panes, batch: None, counters, merges: 0 }
    }

    pub(super) fn counters(&self) -> JoinCounters {
        self.counters
    }

    /// Panes, and how often some were made one.
    pub(super) fn panes(&self) -> (usize, u64) {
        (self.panes.len(), self.merges)
    }

    /// Bytes of all panes.
    pub(super) fn bytes(&self) -> usize {
        self.panes.iter().map(Pane::bytes).sum()
    }

    /// Forgets the panes that no set can be similar to that comes at this time or later.
    pub(super) fn forget(&mut self, stamp: u64) {
        self.panes.retain(|pane| self.rules.window.reaches(pane.newest, stamp));
    }

    fn budget(&self) -> Result<Budget, JoinError> {
        let mut budget = Budget::new(self.rules.memory_max);
        budget.take("the sets in the window", self.bytes())?;
        Ok(budget)
    }

    /// Whether a set of so many tokens can be similar to any, at least to itself.
    pub(super) fn can_match(&self, tokens: usize) -> bool {
        let Rules { bounds, size_min, .. } = self.rules;
        let is_reachable = |size| bounds.index_prefix(size) > 0;
        tokens >= size_min && u32::try_from(tokens).is_ok_and(is_reachable)
    }

    /// For the sets of a micro-batch, of which the first one comes at this time.
    ///
    /// # Errors
    /// If what is remembered does not fit the memory.
    pub(super) fn collector(&mut self, stamp: u64) -> Result<SetCollector, OperatorError> {
        self.forget(stamp);
        self.close_cells(self.rules.window.cell(stamp))?;
        let collector = SetCollector::within(self.budget()?);
        Ok(if self.rules.is_each_pair { collector } else { collector.without_copies() })
    }

    /// Begins to join a micro-batch: sets of one cell, whose ids are indexes into `arrivals`, in
    /// the order in which they came, and so are the rows that go with them. Its chunks follow from
    /// [`Self::next_chunk`].
    pub(super) fn begin(
        &mut self,
        mut sets: SetCollector,
        arrivals: Vec<Arrival>,
        carried: Option<Carried>,
    ) -> Result<(), OperatorError> {
        let Some(first) = arrivals.first() else { return Ok(()) };
        let cell = self.rules.window.cell(first.stamp);
        let firsts: Vec<u64> = arrivals.iter().map(|arrival| arrival.stamp).collect();
        sets.reserve("the columns", carried.as_ref().map_or(0, Carried::bytes))?;
        let members = Arc::new(Members::new(sets, arrivals, carried)?);
        let mut is_first = vec![false; firsts.len()];
        let places = || members.sets.places().iter().map(|&place| place as usize);
        places().for_each(|place| is_first[place] = true);
        let stamps = places().map(|place| firsts[place]).collect();
        let Rules { similarity, threshold, algorithm, isa, .. } = self.rules;
        let own = SetJoin::new(&members.sets, similarity, threshold, algorithm, isa)?;
        let signatures = members.signatures();
        let probes = Arc::new(Probes { members, stamps, signatures });
        let step = Step::Own(Box::new(own));
        self.batch = Some(MicroBatch { probes, cell, is_first, step });
        Ok(())
    }

    /// Whether a micro-batch is under way.
    pub(super) fn is_busy(&self) -> bool {
        self.batch.is_some()
    }

    /// Puts the next candidates of the micro-batch in the chunk, in place of what it holds.
    ///
    /// # Errors
    /// If the pane does not fit the memory.
    ///
    /// # Panics
    /// If no micro-batch is under way.
    pub(super) fn next_chunk(&mut self, chunk: &mut CandidateChunk) -> Result<Next, OperatorError> {
        chunk.clear();
        let batch = self.batch.as_mut().expect("a micro-batch is under way");
        let sets = batch.next_chunk(&mut self.panes, &self.rules, chunk, &mut self.counters);
        match sets {
            Some(sets) => {
                self.counters.verified += chunk.len() as u64;
                Ok(Next::Chunk(sets))
            }
            None => self.settle().map(Next::Settled),
        }
    }

    /// Takes notice of similar pairs: their newer sets need not be looked up any more.
    pub(super) fn mark(&mut self, sets: &JoinedSets, chunk: &CandidateChunk, overlaps: &[u32]) {
        let Some(batch) = &mut self.batch else { return };
        let is_own = Arc::ptr_eq(&sets.probes, &sets.candidates);
        for (probe, candidate, _) in chunk.similar(overlaps) {
            let is_probe_older = is_own && sets.probes.is_left(probe, candidate);
            let newer = if is_probe_older { candidate } else { probe };
            batch.is_first[batch.probes.members.sets.places()[newer as usize] as usize] = false;
        }
    }

    /// Makes the micro-batch a pane, together with those before it that are not much larger.
    fn settle(&mut self) -> Result<Vec<bool>, OperatorError> {
        let MicroBatch { probes, cell, is_first, .. } =
            self.batch.take().expect("a micro-batch is under way");
        let members = Arc::clone(&probes.members);
        let mut begin = self.panes.len();
        let (mut weight, mut tokens) = (members.weight(), members.sets.tokens());
        while let Some(pane) = begin.checked_sub(1).map(|index| &self.panes[index]) {
            let is_room = pane.members.sets.tokens() <= TOKENS_MAX - tokens;
            if pane.cell != cell || pane.members.weight() > GROWTH * weight || !is_room {
                break;
            }
            weight += pane.members.weight();
            tokens += pane.members.sets.tokens();
            begin -= 1;
        }
        self.merge(begin, Some(members), cell)?;
        Ok(is_first)
    }

    /// Makes one pane of each cell but this one.
    fn close_cells(&mut self, open: u64) -> Result<(), OperatorError> {
        let Some(cell) = self.panes.last().map(|pane| pane.cell) else { return Ok(()) };
        let begin = self.panes.partition_point(|pane| pane.cell < cell);
        let tokens: usize = self.panes[begin..].iter().map(|pane| pane.members.sets.tokens()).sum();
        if cell == open || begin + 1 == self.panes.len() || tokens > TOKENS_MAX {
            return Ok(());
        }
        self.merge(begin, None, cell)
    }

    /// Makes one pane of those from `begin` on and of what came after them.
    fn merge(
        &mut self,
        begin: usize,
        newest: Option<Arc<Members>>,
        cell: u64,
    ) -> Result<(), OperatorError> {
        let Rules { bounds, is_each_pair, .. } = self.rules;
        let members = match newest {
            Some(newest) if begin == self.panes.len() => newest,
            newest => {
                self.merges += 1;
                let older = self.panes[begin..].iter().rev().map(|pane| &*pane.members);
                let parts = newest.as_deref().into_iter().chain(older);
                Arc::new(Members::merged(parts, is_each_pair, self.budget()?)?)
            }
        };
        self.panes.truncate(begin);
        self.panes.push(Pane::new(members, cell, bounds, self.budget()?)?);
        Ok(())
    }
}

impl MicroBatch {
    fn next_chunk(
        &mut self,
        panes: &mut [Pane],
        rules: &Rules,
        chunk: &mut CandidateChunk,
        counters: &mut JoinCounters,
    ) -> Option<JoinedSets> {
        let Self { probes, is_first, step, .. } = self;
        let newer = &probes.members;
        let is_wanted =
            |set: u32| rules.is_each_pair || is_first[newer.sets.places()[set as usize] as usize];
        loop {
            match step {
                Step::Own(own) => {
                    if own.next_chunk(chunk) {
                        return Some(own.sets().clone());
                    }
                    let JoinCounters { postings, pre_candidates, candidates, .. } = own.counters();
                    counters.postings += postings;
                    counters.pre_candidates += pre_candidates;
                    counters.candidates += candidates;
                    *step = Step::Panes { left: panes.len(), look_up: None };
                }
                Step::Panes { left: 0, look_up: None } => return None,
                Step::Panes { left, look_up: look_up @ None } => {
                    *left -= 1;
                    let numbered = panes[*left].number(newer, rules.bounds, is_wanted);
                    *look_up = Some(LookUp::new(probes, numbered, rules.bounds, rules.window));
                }
                Step::Panes { left, look_up: all @ Some(_) } => {
                    let look_up = all.as_mut().expect("just seen");
                    let pane = &mut panes[*left];
                    let numbered = Arc::clone(look_up.numbered());
                    if !look_up.fill(pane, is_wanted, chunk, counters) {
                        *all = None;
                    }
                    if !chunk.is_empty() {
                        let candidates = Arc::clone(&pane.members.sets);
                        return Some(JoinedSets { probes: numbered, candidates });
                    }
                }
            }
        }
    }
}
