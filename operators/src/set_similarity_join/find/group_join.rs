//! GroupJoin: PPJoin over groups of sets that have the same size and the same prefix.
//!
//! ```text
//! groups   | 3 9 . . . .. |      one entry a token in the index, one look-up a token;
//!          | 3 9 . . . .. |      a pair of groups is expanded to the pairs of their sets
//! ```
//!
//! Source: Bouros, Ge, Mamoulis, *Spatio-Textual Similarity Joins*, PVLDB 6(1), 2012, §5 (groups of
//! equal prefixes), in the form of Mann, Augsten, Bouros, PVLDB 9(9), 2016, §2; the expansion as in
//! Bellas, Gounaris 2018, §3.1. Sets are sorted by size and tokens, so a group is a range of them.
//! The sets of one group are candidates of each other, with their prefix as common tokens.
//!
//! Departure: there (§4.1.3) the device verifies pairs of groups' first sets, and the host those of
//! the expansion, whose candidates are not contiguous. Here the expansion goes probe by probe, so
//! that they are, and all of them go to whoever verifies chunks.

use std::ops::Range;
use std::sync::Arc;

use trommel_kernels::overlap::Start;

use crate::budget::Budget;
use crate::set_similarity_join::candidates::chunk::CandidateChunk;
use crate::set_similarity_join::error::JoinError;
use crate::set_similarity_join::find::prefix::{
    PostingRange, SizeRange, empty_lists, list_of, lists_bytes,
};
use crate::set_similarity_join::find::prefix_join::{
    PrefixPosting, prefixes_by_rank, start_after_prefix,
};
use crate::set_similarity_join::find::{Find, JoinCounters};
use crate::set_similarity_join::similarity::Bounds;
use crate::sets::SetCollection;

/// Sets of the same size, side and prefix.
#[derive(Debug, Clone, Copy)]
struct SetGroup {
    begin: u32,
    end: u32,
    /// The rank of their size.
    rank: u32,
}

/// A group that a probing group has candidates in.
#[derive(Debug, Clone, Copy)]
struct CandidateGroup {
    begin: u32,
    end: u32,
    required: u32,
    start: Start,
}

/// How far the expansion of the last group has come.
#[derive(Debug, Default)]
struct Expansion {
    /// Sets of the group that are still to be handed over.
    probes: Range<u32>,
    /// The place in `found` of the candidates in hand.
    place: usize,
    /// How many of them have been handed over.
    taken: u32,
}

pub(crate) struct GroupJoin {
    collection: Arc<SetCollection>,
    bounds: Bounds,
    /// By rank: how many tokens of a set it is found by.
    prefixes: Vec<usize>,
    groups: Vec<SetGroup>,
    lists: Vec<PostingRange>,
    postings: Vec<PrefixPosting>,
    range: SizeRange,
    /// The next probing group.
    next: usize,
    /// Matches with the probing group, by group; 0 but for those in `matched`.
    matches: Vec<u32>,
    matched: Vec<u32>,
    found: Vec<CandidateGroup>,
    expansion: Expansion,
}

fn groups(collection: &SetCollection, bounds: Bounds) -> Vec<SetGroup> {
    let mut groups: Vec<SetGroup> = Vec::new();
    for (rank, run) in (0..).zip(collection.sizes()) {
        let prefix = bounds.probe_prefix(run.size) as usize;
        for set in run.begin..run.end {
            let is_like = |group: &&mut SetGroup| {
                group.rank == rank
                    && collection.side(group.begin) == collection.side(set)
                    && collection.set(group.begin)[..prefix] == collection.set(set)[..prefix]
            };
            match groups.last_mut().filter(is_like) {
                Some(group) => group.end = set + 1,
                None => groups.push(SetGroup { begin: set, end: set + 1, rank }),
            }
        }
    }
    groups
}

impl GroupJoin {
    pub(crate) fn new(
        collection: &Arc<SetCollection>,
        bounds: Bounds,
        budget: &mut Budget,
    ) -> Result<Self, JoinError> {
        // Its matches, and places among those that were matched and the candidates.
        let of_group = size_of::<SetGroup>() + 2 * size_of::<u32>() + size_of::<CandidateGroup>();
        budget.take("the index", lists_bytes(collection) + of_group * collection.len())?;
        let groups = groups(collection, bounds);
        let prefixes = prefixes_by_rank(collection, bounds);
        let indexed = groups.iter().map(|group| (group.begin, prefixes[group.rank as usize]));
        let (lists, room) = empty_lists(collection, indexed);
        budget.take("the index", room * size_of::<PrefixPosting>())?;
        Ok(Self {
            collection: Arc::clone(collection),
            bounds,
            matches: vec![0; groups.len()],
            groups,
            prefixes,
            lists,
            postings: vec![PrefixPosting::default(); room],
            range: SizeRange::default(),
            next: 0,
            matched: Vec::new(),
            found: Vec::new(),
            expansion: Expansion::default(),
        })
    }

    /// Finds the groups with candidates of the next group, and adds it to the index.
    fn probe(&mut self, counters: &mut JoinCounters) {
        let group = self.groups[self.next];
        let (rank, number) = (group.rank as usize, self.next);
        self.next += 1;
        if number == 0 || rank != self.range.rank {
            self.range.move_to(rank, self.collection.sizes(), self.bounds);
        }
        self.match_groups(group, counters);
        let Self { collection, range, lists, postings, .. } = self;
        let number = u32::try_from(number).expect("no more groups than sets");
        let (tokens, side) = (collection.set(group.begin), collection.side(group.begin));
        for (left, &token) in (0..=range.size).rev().zip(&tokens[..range.index_prefix]) {
            let list = &mut lists[list_of(collection, side, token)];
            postings[list.end as usize] = PrefixPosting { set: number, rank: group.rank, left };
            list.end += 1;
        }
        self.find(group, counters);
    }

    fn match_groups(&mut self, group: SetGroup, counters: &mut JoinCounters) {
        let Self { collection, range, lists, .. } = self;
        let partner_side = collection.partner_side(collection.side(group.begin));
        let tokens = collection.set(group.begin);
        for (left, &token) in (0..=range.size).rev().zip(&tokens[..range.probe_prefix]) {
            let list = &mut lists[list_of(collection, partner_side, token)];
            let postings = &self.postings[list.begin as usize..list.end as usize];
            let is_small = |posting: &&PrefixPosting| (posting.rank as usize) < range.rank_min;
            let small = postings.iter().take_while(is_small).count();
            list.begin += u32::try_from(small).expect("lists have 32-bit ends");
            counters.postings += postings.len() as u64;
            counters.pre_candidates += (postings.len() - small) as u64;
            for posting in &postings[small..] {
                let matches = &mut self.matches[posting.set as usize];
                if *matches == 0 {
                    if left.min(posting.left) < range.required[posting.rank as usize] {
                        continue;
                    }
                    self.matched.push(posting.set);
                }
                *matches += 1;
            }
        }
    }

    /// Says where the pairs of the matched groups, and those within the group, begin.
    fn find(&mut self, group: SetGroup, counters: &mut JoinCounters) {
        let Self { collection, range, .. } = self;
        counters.candidates += self.matched.len() as u64;
        self.found.clear();
        for other in self.matched.drain(..) {
            let SetGroup { begin, end, rank } = self.groups[other as usize];
            let matches = std::mem::take(&mut self.matches[other as usize]);
            let start = start_after_prefix(
                (collection.set(group.begin), range.probe_prefix),
                (collection.set(begin), self.prefixes[rank as usize]),
                matches,
            );
            let required = range.required[rank as usize];
            self.found.push(CandidateGroup { begin, end, required, start });
        }
        let can_be_similar = range.probe_prefix > 0 && !collection.is_two_sided();
        if can_be_similar && group.end - group.begin > 1 {
            counters.candidates += 1;
            let prefix = u32::try_from(range.probe_prefix).expect("prefixes are below 2^31");
            self.found.push(CandidateGroup {
                begin: group.begin,
                end: group.end,
                required: range.required[range.rank],
                start: Start { probe: prefix, candidate: prefix, overlap: prefix },
            });
        }
        self.expansion = Expansion { probes: group.begin..group.end, place: 0, taken: 0 };
    }

    /// Hands pairs over until the chunk is full; true if there are more.
    fn expand(&mut self, chunk: &mut CandidateChunk) -> bool {
        let Expansion { probes, place, taken } = &mut self.expansion;
        while probes.start < probes.end {
            while let Some(found) = self.found.get(*place) {
                // Within a group, a set is paired with those before it.
                let end = found.end.min(probes.start);
                for candidate in found.begin + *taken..end {
                    if chunk.is_full() {
                        *taken = candidate - found.begin;
                        return true;
                    }
                    chunk.push(probes.start, candidate, found.required, found.start);
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

impl Find for GroupJoin {
    fn fill(&mut self, chunk: &mut CandidateChunk, counters: &mut JoinCounters) -> bool {
        loop {
            if self.expand(chunk) {
                return true;
            }
            if self.next == self.groups.len() {
                return false;
            }
            self.probe(counters);
        }
    }
}
