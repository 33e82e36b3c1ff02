//! GroupJoin: PPJoin over groups of sets with equal sizes and equal prefixes.
//!
//! ```text
//! group    | 3 9 . . . .. |      one posting and one look-up per token of the prefix;
//!          | 3 9 . . . .. |      a pair of groups is expanded to the pairs of their sets
//! ```
//!
//! Source: Bouros, Ge, Mamoulis, *Spatio-Textual Similarity Joins*, PVLDB 6(1), 2012, §5 (groups of
//! equal prefixes), in the form of Mann, Augsten, Bouros, PVLDB 9(9), 2016, §2; the expansion as in
//! Bellas, Gounaris 2018, §3.1. Sets are sorted by size and tokens, so a group is a range of sets.
//! The sets of one group are candidates of each other, and the common tokens include the whole
//! prefix.
//!
//! Departure from Bellas, Gounaris (§4.1.3): in that paper, the device verifies the pairs of the
//! first sets of groups, and the host verifies the pairs of the expansion, because the candidates
//! of the expansion are not contiguous. In this join, the expansion goes probe by probe, so
//! candidates are contiguous, and all pairs go into chunks.

use std::ops::Range;
use std::sync::Arc;

use trommel_kernels::overlap::Start;
use trommel_kernels::{Isa, Routine, run_compiled_for};

use super::prefix_index::{Entry, PrefixIndex, Verification};
use crate::set_similarity_join::candidates::chunk::CandidateChunk;
use crate::set_similarity_join::find::filters::Positions;
use crate::set_similarity_join::find::{Find, JoinCounters};
use crate::set_similarity_join::parameters::error::JoinError;
use crate::set_similarity_join::similarity::Bounds;
use crate::shared::budget::Budget;
use crate::shared::sets::SetCollection;

/// Consecutive sets with the same size, side and prefix.
#[derive(Debug, Clone, Copy)]
struct SetGroup {
    begin: u32,
    end: u32,
}

/// Sets of a group that are all candidates of the probing group.
#[derive(Debug, Clone, Copy)]
struct CandidateGroup {
    sets: SetGroup,
    verification: Verification,
}

/// Progress of the expansion of the last probing group.
#[derive(Debug, Default)]
struct Expansion {
    /// Sets of the group that are not yet probes.
    probes: Range<u32>,
    /// Index in `found` of the present candidates.
    place: usize,
    /// Number of the present candidates that are in a chunk.
    taken: u32,
}

/// The finder of GroupJoin.
pub(crate) struct GroupJoin {
    isa: Isa,
    is_two_sided: bool,
    groups: Vec<SetGroup>,
    index: PrefixIndex<Positions>,
    /// Next probing group.
    next: usize,
    /// Candidates of the last probing group.
    found: Vec<CandidateGroup>,
    expansion: Expansion,
}

/// The groups of a collection, in the order of the sets.
fn groups(collection: &SetCollection, bounds: Bounds) -> Vec<SetGroup> {
    let mut groups: Vec<SetGroup> = Vec::new();
    for run in collection.sizes() {
        let prefix = bounds.probe_prefix(run.size) as usize;
        for set in run.begin..run.end {
            let is_like = |group: &&mut SetGroup| {
                group.begin >= run.begin
                    && collection.side(group.begin) == collection.side(set)
                    && collection.set(group.begin)[..prefix] == collection.set(set)[..prefix]
            };
            match groups.last_mut().filter(is_like) {
                Some(group) => group.end = set + 1,
                None => groups.push(SetGroup { begin: set, end: set + 1 }),
            }
        }
    }
    groups
}

impl GroupJoin {
    pub(crate) fn new(
        collection: &Arc<SetCollection>,
        bounds: Bounds,
        isa: Isa,
        budget: &mut Budget,
    ) -> Result<Self, JoinError> {
        let of_group = size_of::<SetGroup>() + size_of::<CandidateGroup>();
        budget.take("the index", of_group * collection.len())?;
        let groups = groups(collection, bounds);
        let first_sets = groups.iter().map(|group| group.begin);
        Ok(Self {
            isa,
            is_two_sided: collection.is_two_sided(),
            index: PrefixIndex::new(collection, bounds, isa, first_sets, budget)?,
            groups,
            next: 0,
            found: Vec::new(),
            expansion: Expansion::default(),
        })
    }

    /// Finds the candidates of the next group.
    #[inline(always)]
    fn probe(&mut self, counters: &mut JoinCounters) {
        let Self { index, groups, next, found, .. } = self;
        let group = groups[*next];
        let number = u32::try_from(*next).expect("no more groups than sets");
        *next += 1;
        index.join(Entry { number, set: group.begin }, counters);
        found.clear();
        // Prefixes are equal within a group, so the first set stands for all sets of the group.
        for place in 0..index.found.len() {
            let candidate = index.found[place];
            let sets = groups[candidate.entry as usize];
            let verification = index.take(candidate, group.begin, sets.begin);
            found.push(CandidateGroup { sets, verification });
        }
        let range = &index.range;
        let can_be_similar = range.probe_prefix > 0 && !self.is_two_sided;
        if can_be_similar && group.end - group.begin > 1 {
            let prefix = u32::try_from(range.probe_prefix).expect("prefixes are below 2^31");
            let start = Start { probe: prefix, candidate: prefix, overlap: prefix };
            let verification = Verification { required: range.required[range.rank], start };
            found.push(CandidateGroup { sets: group, verification });
        }
        counters.candidates += found.len() as u64;
        self.expansion = Expansion { probes: group.begin..group.end, place: 0, taken: 0 };
    }

    /// Adds pairs to `chunk` until the chunk is full; true if more pairs are left.
    #[inline(always)]
    fn expand(&mut self, chunk: &mut CandidateChunk) -> bool {
        let Expansion { probes, place, taken } = &mut self.expansion;
        while probes.start < probes.end {
            while let Some(CandidateGroup { sets, verification }) = self.found.get(*place) {
                // Within its own group, a probe is paired only with the earlier sets.
                let end = sets.end.min(probes.start);
                for candidate in sets.begin + *taken..end {
                    if chunk.is_full() {
                        *taken = candidate - sets.begin;
                        return true;
                    }
                    let Verification { required, start } = *verification;
                    chunk.push(probes.start, candidate, required, start);
                }
                *place += 1;
                *taken = 0;
            }
            *place = 0;
            probes.start += 1;
        }
        false
    }
}

/// Fills a chunk.
struct Fill<'a> {
    join: &'a mut GroupJoin,
    chunk: &'a mut CandidateChunk,
    counters: &'a mut JoinCounters,
}

impl Routine for Fill<'_> {
    type Output = bool;

    #[inline(always)]
    fn run(self) -> bool {
        let Self { join, chunk, counters } = self;
        loop {
            if join.expand(chunk) {
                return true;
            }
            if join.next == join.groups.len() {
                return false;
            }
            join.probe(counters);
        }
    }
}

impl Find for GroupJoin {
    fn fill(&mut self, chunk: &mut CandidateChunk, counters: &mut JoinCounters) -> bool {
        run_compiled_for(self.isa, Fill { join: self, chunk, counters })
    }
}
