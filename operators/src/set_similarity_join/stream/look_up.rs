//! The candidates of a micro-batch in a pane.
//!
//! ```text
//! probe  unknown | 3 9 | 12 40 ..     lists of 3 and 9 ──► sizes, positions, signatures ──► new?
//!                prefix                                     ──► still in the window? ──► candidates
//! ```
//!
//! Sources: as [`super::super::prefix_join`] for positions, and `postings` of the kernels for
//! signatures. Other than there, sets on both sides of the probe's size are partners.

use std::sync::Arc;

use trommel_kernels::overlap::Start;

use super::super::bounds::Bounds;
use super::super::chunk::CandidateChunk;
use super::super::collection::{SetCollection, SizeRun};
use super::super::join::JoinCounters;
use super::super::prefix::start_behind_match;
use super::pane::{Members, Pane};
use super::window::Extent;

/// The sizes that the sets of one size can be similar to.
///
/// Sizes are named by their rank among those that occur in the pane.
#[derive(Debug, Default)]
struct Reach {
    /// The size of the probes.
    size: u32,
    /// The least rank.
    rank_min: usize,
    /// By rank, from `rank_min` on.
    limits: Vec<Limits>,
}

/// What a pair needs.
#[derive(Debug, Clone, Copy)]
struct Limits {
    required: u32,
    /// Where in the candidate the first common token can be.
    position_max: u32,
    /// In how many bits the signatures can differ.
    distance_max: u32,
}

impl Reach {
    fn new(size: u32, sizes: &[SizeRun], bounds: Bounds) -> Self {
        let size_min = bounds.size_min(size);
        let rank_min = sizes.partition_point(|run| run.size < size_min);
        let rank_end = sizes.partition_point(|run| bounds.size_min(run.size) <= size);
        let limits = sizes.get(rank_min..rank_end).unwrap_or_default().iter().map(|run| {
            let required = bounds.required(size, run.size);
            let distance = u64::from(size) + u64::from(run.size) - 2 * u64::from(required);
            Limits {
                required,
                position_max: run.size - required,
                distance_max: u32::try_from(distance).unwrap_or(u32::MAX),
            }
        });
        Self { size, rank_min, limits: limits.collect() }
    }

    /// What a pair with a set of this rank needs, if it has so many tokens of the probe left.
    #[inline]
    fn limits(&self, rank: usize, left: u32) -> Option<Limits> {
        self.limits.get(rank - self.rank_min).copied().filter(|limits| limits.required <= left)
    }
}

/// A set that may be similar to the probe.
#[derive(Debug, Clone, Copy)]
struct Found {
    set: u32,
    required: u32,
    start: Start,
}

/// Sets that are looked up.
#[derive(Debug)]
pub(super) struct Probes {
    pub(super) members: Arc<Members>,
    /// By set: when it came; of equal sets that were made one, the first.
    pub(super) stamps: Vec<u64>,
    /// By set.
    pub(super) signatures: Vec<u64>,
}

/// Looks up one set of a micro-batch after the other.
pub(super) struct LookUp {
    probes: Arc<Probes>,
    /// The probes in the numbering of the pane.
    numbered: Arc<SetCollection>,
    bounds: Bounds,
    window: Extent,
    reach: Reach,
    /// The rank of the probe's size in the micro-batch.
    rank: usize,
    /// The next probe.
    next: u32,
    /// Candidates of the last probe, from `emitted` on not yet handed over.
    found: Vec<Found>,
    emitted: usize,
}

impl LookUp {
    /// Looks up probes, which are `numbered` by the pane.
    pub(super) fn new(
        probes: &Arc<Probes>,
        numbered: SetCollection,
        bounds: Bounds,
        window: Extent,
    ) -> Self {
        Self {
            probes: Arc::clone(probes),
            numbered: Arc::new(numbered),
            bounds,
            window,
            reach: Reach::default(),
            rank: 0,
            next: 0,
            found: Vec::new(),
            emitted: 0,
        }
    }

    /// The probes in the numbering of the pane.
    pub(super) fn numbered(&self) -> &Arc<SetCollection> {
        &self.numbered
    }

    /// Adds candidates to the chunk, until it is full or there are no more; true while there may be
    /// more. Only sets that `is_wanted` are looked up.
    pub(super) fn fill(
        &mut self,
        pane: &mut Pane,
        is_wanted: impl Fn(u32) -> bool,
        chunk: &mut CandidateChunk,
        counters: &mut JoinCounters,
    ) -> bool {
        let probes = Arc::clone(&self.probes);
        let sizes = probes.members.sets.sizes();
        loop {
            if self.emitted < self.found.len() && !is_wanted(self.next - 1) {
                self.emitted = self.found.len();
            }
            for &Found { set, required, start } in &self.found[self.emitted..] {
                if chunk.is_full() {
                    return true;
                }
                self.emitted += 1;
                chunk.push(self.next - 1, set, required, start);
            }
            let Some(run) = sizes.get(self.rank) else { return false };
            if self.next == run.end {
                self.rank += 1;
                continue;
            }
            let probe = self.next;
            self.next += 1;
            self.found.clear();
            self.emitted = 0;
            if self.reach.size != run.size {
                self.reach = Reach::new(run.size, pane.members.sets.sizes(), self.bounds);
            }
            if is_wanted(probe) {
                self.look_up(probe, pane, counters);
            }
            counters.candidates += self.found.len() as u64;
        }
    }

    /// Finds the candidates of a probe.
    fn look_up(&mut self, probe: u32, pane: &mut Pane, counters: &mut JoinCounters) {
        let Self { probes, reach, found, window, .. } = self;
        let tokens = self.numbered.set(probe);
        let known = &tokens[..tokens.partition_point(|&token| token < pane.unknown())];
        let Some(loosest) = reach.limits.first() else { return };
        let Pane { members, index, met, oldest, .. } = pane;
        let signature = probes.signatures[probe as usize];
        let stamp = probes.stamps[probe as usize];
        let is_live = |set: u32| window.reaches(members.stamps[set as usize], stamp);
        let are_all_live = window.reaches(*oldest, stamp);
        met.next_probe();
        let lefts = (1..=u32::try_from(known.len()).expect("at most 2^31 tokens")).rev();
        for ((position, &token), left) in (0_u32..).zip(known).zip(lefts) {
            if left < loosest.required {
                break;
            }
            let list = index.postings(token);
            let small = list.partition_point(|posting| posting.rank() < reach.rank_min);
            counters.postings += (list.len() - small) as u64;
            for posting in &list[small..] {
                let Some(limits) = reach.limits(posting.rank(), left) else { break };
                let distance = (posting.signature ^ signature).count_ones();
                if posting.position() > limits.position_max || distance > limits.distance_max {
                    continue;
                }
                counters.pre_candidates += 1;
                let set = posting.set;
                if met.meet(set) && (are_all_live || is_live(set)) {
                    let start = start_behind_match(position, posting.position());
                    found.push(Found { set, required: limits.required, start });
                }
            }
        }
    }
}
