//! AllPairs and PPJoin: an index of prefixes, which each set looks its own prefix up in before it
//! is added.
//!
//! ```text
//! probe  | 3 9 | 12 40 ..      lists of 3 and 9 ──► sets not too small ──► (PPJoin: that can still
//!        prefix                reach the required overlap from the match on) ──► candidates
//! ```
//!
//! Sources: Bayardo, Ma, Srikant, *Scaling Up All Pairs Similarity Search*, WWW 2007, §3 (prefixes,
//! sizes); Xiao, Wang, Lin, Yu, *Efficient Similarity Joins for Near Duplicate Detection*, WWW
//! 2008, §4 (positions); in the form of Mann, Augsten, Bouros, PVLDB 9(9), 2016, §2: matches in the
//! prefixes are counted, and verification begins behind the prefix that ends first (§3).
//!
//! Departure: postings are laid end to end, sized by a pass that counts them.

use std::sync::Arc;

use trommel_kernels::overlap::Start;

use crate::budget::Budget;
use crate::set_similarity_join::candidates::chunk::CandidateChunk;
use crate::set_similarity_join::error::JoinError;
use crate::set_similarity_join::find::prefix::{
    PostingRange, SizeRange, empty_lists, index_prefixes, list_of, lists_bytes,
};
use crate::set_similarity_join::find::{Find, JoinCounters};
use crate::set_similarity_join::similarity::Bounds;
use crate::sets::SetCollection;

/// A set that has a token in its prefix.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct PrefixPosting {
    /// The set, or a group of sets.
    pub(crate) set: u32,
    /// The rank of its size.
    pub(crate) rank: u32,
    /// How many tokens it has from this one on.
    pub(crate) left: u32,
}

/// AllPairs, or with `POSITIONAL` PPJoin.
pub(crate) struct PrefixJoin<const POSITIONAL: bool> {
    collection: Arc<SetCollection>,
    bounds: Bounds,
    /// By rank: how many tokens of a set it is found by.
    prefixes: Vec<usize>,
    lists: Vec<PostingRange>,
    postings: Vec<PrefixPosting>,
    range: SizeRange,
    /// The next probe.
    next: u32,
    /// Matches with the probe, by set; 0 but for those in `found`.
    matches: Vec<u32>,
    /// Candidates of the last probe, each a set and the rank of its size, from `emitted` on not yet
    /// handed over.
    found: Vec<(u32, u32)>,
    emitted: usize,
}

impl<const POSITIONAL: bool> PrefixJoin<POSITIONAL> {
    pub(crate) fn new(
        collection: &Arc<SetCollection>,
        bounds: Bounds,
        budget: &mut Budget,
    ) -> Result<Self, JoinError> {
        // Its matches, and a place among the candidates.
        let of_set = size_of::<u32>() + size_of::<(u32, u32)>();
        budget.take("the index", lists_bytes(collection) + of_set * collection.len())?;
        let (lists, room) = empty_lists(collection, index_prefixes(collection, bounds));
        budget.take("the index", room * size_of::<PrefixPosting>())?;
        Ok(Self {
            collection: Arc::clone(collection),
            bounds,
            prefixes: prefixes_by_rank(collection, bounds),
            lists,
            postings: vec![PrefixPosting::default(); room],
            range: SizeRange::default(),
            next: 0,
            matches: vec![0; collection.len()],
            found: Vec::new(),
            emitted: 0,
        })
    }

    /// Finds the candidates of the next probe, and adds it to the index.
    fn probe(&mut self, counters: &mut JoinCounters) {
        let Self { collection, range, lists, postings, .. } = self;
        let probe = self.next;
        self.next += 1;
        let sizes = collection.sizes();
        if probe == 0 {
            range.move_to(0, sizes, self.bounds);
        } else if probe == sizes[range.rank].end {
            range.move_to(range.rank + 1, sizes, self.bounds);
        }
        let side = collection.side(probe);
        let partner_side = collection.partner_side(side);
        let tokens = collection.set(probe);
        for (left, &token) in (0..=range.size).rev().zip(&tokens[..range.probe_prefix]) {
            let list = &mut lists[list_of(collection, partner_side, token)];
            let (begin, end) = (list.begin as usize, list.end as usize);
            let postings = &postings[begin..end];
            let small = postings.iter().take_while(|posting| posting.set < range.set_min).count();
            list.begin += u32::try_from(small).expect("lists have 32-bit ends");
            counters.postings += postings.len() as u64;
            counters.pre_candidates += (postings.len() - small) as u64;
            for posting in &postings[small..] {
                let matches = &mut self.matches[posting.set as usize];
                if *matches == 0 {
                    let is_lost = POSITIONAL
                        && left.min(posting.left) < range.required[posting.rank as usize];
                    if is_lost {
                        continue;
                    }
                    self.found.push((posting.set, posting.rank));
                }
                *matches += 1;
            }
        }
        let rank = u32::try_from(range.rank).expect("below the number of sets");
        for (left, &token) in (0..=range.size).rev().zip(&tokens[..range.index_prefix]) {
            let list = &mut lists[list_of(collection, side, token)];
            postings[list.end as usize] = PrefixPosting { set: probe, rank, left };
            list.end += 1;
        }
    }
}

impl<const POSITIONAL: bool> Find for PrefixJoin<POSITIONAL> {
    fn fill(&mut self, chunk: &mut CandidateChunk, counters: &mut JoinCounters) -> bool {
        loop {
            while let Some(&(candidate, rank)) = self.found.get(self.emitted) {
                if chunk.is_full() {
                    return true;
                }
                self.emitted += 1;
                let matches = std::mem::take(&mut self.matches[candidate as usize]);
                let probe = self.next - 1;
                let start = start_after_prefix(
                    (self.collection.set(probe), self.range.probe_prefix),
                    (self.collection.set(candidate), self.prefixes[rank as usize]),
                    matches,
                );
                chunk.push(probe, candidate, self.range.required[rank as usize], start);
            }
            counters.candidates += self.found.len() as u64;
            self.found.clear();
            self.emitted = 0;
            if self.next as usize == self.collection.len() {
                return false;
            }
            self.probe(counters);
        }
    }
}

/// By rank of the size: how many tokens of a set it is found by.
pub(crate) fn prefixes_by_rank(collection: &SetCollection, bounds: Bounds) -> Vec<usize> {
    collection.sizes().iter().map(|run| bounds.index_prefix(run.size) as usize).collect()
}

/// Where the verification of a pair begins whose prefixes have so many common tokens: behind the
/// prefix that ends with the smaller token, since all its common tokens have been counted; and in
/// the other set behind as many tokens, since so many of them are common and not greater.
pub(crate) fn start_after_prefix(
    (probe, probe_prefix): (&[u32], usize),
    (candidate, candidate_prefix): (&[u32], usize),
    matches: u32,
) -> Start {
    let position = |prefix| u32::try_from(prefix).expect("prefixes are below 2^31");
    if probe[probe_prefix - 1] < candidate[candidate_prefix - 1] {
        Start { probe: position(probe_prefix), candidate: matches, overlap: matches }
    } else {
        Start { probe: matches, candidate: position(candidate_prefix), overlap: matches }
    }
}
