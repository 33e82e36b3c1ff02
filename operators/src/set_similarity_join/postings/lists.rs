//! The lengths of posting lists, and their division into slices.

use std::ops::{Range, RangeInclusive};

use crate::set_similarity_join::parameters::error::JoinError;
use crate::set_similarity_join::postings::signatures::{SetSignatures, words_for};
use crate::set_similarity_join::similarity::Bounds;
use crate::shared::budget::Budget;
use crate::shared::sets::{SETS_AHEAD, SetCollection};

/// Number of tokens that can be hashed in the time of a pair of postings that no signature drops.
const TOKENS_PER_PAIR: u64 = 8;

/// Number of pairs that can be tested in the time that building and looking up a posting takes.
pub(crate) const PAIRS_PER_POSTING: u64 = 16;

/// Number of tokens of the sets for each posting of all slices that are searched at once. The first
/// value is for slices without lists of their sets; the second value is for slices with lists,
/// which take as much memory again.
const TOKENS_PER_POSTING: [usize; 2] = [4, 8];

/// Number of cores from which on slices have lists of their sets. Making these lists takes as long
/// as a dozen slices take to go through all sets (0.26 s in comparison with 0.025 s of a core per
/// slice, for 3 M sets of 14 tokens at 0.5), and the number of slices grows with the cores.
pub(crate) const LISTING_CORES: usize = 4;

/// Approximate number of sets that are counted for an estimate.
const SAMPLED_SETS: usize = 2048;

/// Size of a group of sets from which one set is counted for an estimate: a larger group would make
/// the estimate too coarse, and a smaller group would save little time.
const SAMPLED_EVERY: RangeInclusive<usize> = 4..=64;

/// Number of searches for each core if there are several cores: one search that the core does, and
/// one search that waits.
pub(crate) const SEARCHES_PER_CORE: usize = 2;

/// Name of the memory in errors.
pub(crate) const INDEX: &str = "the index";

pub(crate) fn narrow(number: usize) -> u32 {
    u32::try_from(number).expect("tokens and sets have 32-bit numbers")
}

/// Numbers of postings.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct PostingCounts {
    /// Number of postings of all lists.
    pub(crate) postings: u64,
    /// Sum over all lists of half of the square of the length: about the number of pairs of
    /// postings of one list.
    pub(crate) pairs: u64,
}

impl PostingCounts {
    /// The numbers for lists of these lengths.
    pub(crate) fn of(lens: &[u32]) -> Self {
        let mut counts = Self::default();
        for len in lens.iter().map(|len| u64::from(*len)) {
            counts.postings += len;
            counts.pairs += len * len / 2;
        }
        counts
    }

    /// Work of a search of the lists, in pairs.
    pub(crate) fn weight(self) -> u64 {
        self.postings.saturating_mul(PAIRS_PER_POSTING).saturating_add(self.pairs)
    }

    /// Estimates the numbers: counts the postings of 1 in 4 to 1 in 64 sets, and scales the counts
    /// up.
    ///
    /// # Errors
    /// If the counts do not fit the memory.
    pub(crate) fn estimate(
        collection: &SetCollection,
        bounds: Bounds,
        budget: &Budget,
    ) -> Result<Self, JoinError> {
        let lists = ListLengths::lists(collection);
        budget.clone().take(INDEX, lists * size_of::<u32>())?;
        let mut lens = vec![0_u32; lists];
        let (sets, token_min) = (narrow(collection.len()), collection.unshared());
        let every = collection.len() / SAMPLED_SETS;
        let every = narrow(every.clamp(*SAMPLED_EVERY.start(), *SAMPLED_EVERY.end()));
        let (mut postings, mut pairs) = (0, 0);
        // A hash picks a set from each group, because neighbours are often alike.
        let any = |begin: u32| begin + (begin.wrapping_mul(0x9E37_79B1) >> 16) % every;
        for set in (0..sets).step_by(every as usize).map(any).filter(|set| *set < sets) {
            let prefix = bounds.probe_prefix(collection.size(set)) as usize;
            for token in &collection.set(set)[..prefix] {
                if let Some(list) = token.checked_sub(token_min) {
                    let len = &mut lens[list as usize];
                    postings += 1;
                    pairs += u64::from(*len);
                    *len += 1;
                }
            }
        }
        let every = u64::from(every);
        let pairs = every.saturating_mul(every.saturating_mul(pairs) + postings / 2);
        Ok(Self { postings: every * postings, pairs })
    }

    /// Words of a signature, or 0 if signatures do not pay: signatures pay if there are enough
    /// pairs of postings to test for each token that has to be hashed.
    pub(crate) fn words(self, collection: &SetCollection, bounds: Bounds) -> usize {
        let tokens = collection.tokens() as u64;
        let pays = self.pairs.saturating_mul(TOKENS_PER_PAIR) >= tokens;
        if pays { words_for(collection, bounds) } else { 0 }
    }
}

/// The lengths of the posting lists of all tokens that can be common to a pair.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ListLengths {
    /// Token of the first list.
    pub(crate) token_min: u32,
    pub(crate) lens: Vec<u32>,
    pub(crate) counts: PostingCounts,
}

impl ListLengths {
    /// Counts the postings of all probing prefixes.
    ///
    /// # Errors
    /// If the counts do not fit the memory.
    pub(crate) fn count(
        collection: &SetCollection,
        bounds: Bounds,
        budget: &mut Budget,
    ) -> Result<Self, JoinError> {
        let lists = Self::lists(collection);
        budget.take(INDEX, lists * size_of::<u32>())?;
        let mut lens = vec![0; lists];
        Self::add(collection, bounds, 0..narrow(collection.len()), &mut lens);
        Ok(Self::new(collection, lens))
    }

    /// Number of lists. A token before the first list occurs in no two sets of a pair, so a list of
    /// such a token would find nothing.
    pub(crate) fn lists(collection: &SetCollection) -> usize {
        (collection.distinct() - collection.unshared()) as usize
    }

    /// Adds the postings of some `sets` to the lengths of their lists.
    pub(crate) fn add(
        collection: &SetCollection,
        bounds: Bounds,
        sets: Range<u32>,
        lens: &mut [u32],
    ) {
        let token_min = collection.unshared();
        for run in collection.sizes() {
            let prefix = bounds.probe_prefix(run.size) as usize;
            for set in run.begin.max(sets.start)..run.end.min(sets.end) {
                collection.prefetch(set + SETS_AHEAD);
                for &token in &collection.set(set)[..prefix] {
                    if token >= token_min {
                        lens[(token - token_min) as usize] += 1;
                    }
                }
            }
        }
    }

    /// Lists of these lengths.
    pub(crate) fn new(collection: &SetCollection, lens: Vec<u32>) -> Self {
        let counts = PostingCounts::of(&lens);
        Self { token_min: collection.unshared(), lens, counts }
    }

    /// The planned lengths, or lengths that are counted here if there is no plan.
    ///
    /// # Errors
    /// If the counts do not fit the memory.
    pub(crate) fn planned(
        planned: &mut Planned,
        collection: &SetCollection,
        bounds: Bounds,
        budget: &mut Budget,
    ) -> Result<Self, JoinError> {
        let Some(lists) = planned.lists.take() else {
            return Self::count(collection, bounds, budget);
        };
        budget.take(INDEX, lists.lens.len() * size_of::<u32>())?;
        Ok(lists)
    }

    /// Divides the lists into slices for `cores` cores. A slice has at least `slice_min` postings,
    /// if there are so many postings.
    pub(crate) fn slices(
        &self,
        collection: &SetCollection,
        slice_min: usize,
        cores: usize,
    ) -> Slices {
        let len_max = self.lens.iter().max().map_or(0, |len| *len as usize);
        let all = usize::try_from(self.counts.postings).expect("at most one a token");
        let searches = if cores == 1 { 1 } else { SEARCHES_PER_CORE * cores };
        let per_posting = TOKENS_PER_POSTING[usize::from(cores >= LISTING_CORES)];
        let slice_max = slice_min.max(collection.tokens() / per_posting / searches);
        // The slices get about the same length, which makes no more slices than slices of the
        // maximum length. A list is in one slice only, so a slice may exceed that length by up to
        // one list.
        let count = all.div_ceil(slice_max.max(len_max)).max(1);
        let postings_max = (all.div_ceil(count) + len_max).min(all);
        Slices { slices: slices(&self.lens, postings_max), postings_max, len_max }
    }
}

/// Data of an index by postings that tasks have made before the index.
#[derive(Debug, Default)]
pub(crate) struct Planned {
    pub(crate) lists: Option<ListLengths>,
    pub(crate) signatures: Option<SetSignatures>,
    pub(crate) visits: Option<Visits>,
}

impl Planned {
    /// The lengths of the lists, if they are planned.
    pub(crate) fn lists(&self) -> Option<&ListLengths> {
        self.lists.as_ref()
    }
}

/// A division of lists into slices.
pub(crate) struct Slices {
    /// Lists of each slice.
    pub(crate) slices: Vec<Range<usize>>,
    /// Maximum number of postings of a slice, and length of the longest list.
    pub(crate) postings_max: usize,
    pub(crate) len_max: usize,
}

/// The sets that have a token of a slice in their prefix, for each slice.
#[derive(Debug)]
pub(crate) struct Visits {
    /// Lists of each slice.
    pub(crate) slices: Vec<Range<usize>>,
    /// By run of sets, then by slice: ascending numbers of sets.
    pub(crate) sets: Vec<Vec<Vec<u32>>>,
}

impl Visits {
    pub(crate) fn bytes(&self) -> usize {
        let sets: usize = self.sets.iter().flatten().map(Vec::capacity).sum();
        sets * size_of::<u32>()
    }

    /// Adds the numbers of some `sets` to the slices of the tokens in their prefixes. `slice_of`
    /// is the slice of each list.
    pub(crate) fn add(
        collection: &SetCollection,
        bounds: Bounds,
        sets: Range<u32>,
        slice_of: &[u16],
        visits: &mut [Vec<u32>],
    ) {
        let token_min = collection.unshared();
        for run in collection.sizes() {
            let prefix = bounds.probe_prefix(run.size) as usize;
            for set in run.begin.max(sets.start)..run.end.min(sets.end) {
                collection.prefetch(set + SETS_AHEAD);
                let mut before = u16::MAX;
                for &token in &collection.set(set)[..prefix] {
                    if token >= token_min {
                        // Tokens ascend, so slices ascend, too, and a repeated slice is the last
                        // slice.
                        let slice = slice_of[(token - token_min) as usize];
                        if slice != before {
                            visits[usize::from(slice)].push(set);
                            before = slice;
                        }
                    }
                }
            }
        }
    }
}

/// Cuts lists of the lengths `lens` into runs of at most `slice_max` postings.
fn slices(lens: &[u32], slice_max: usize) -> Vec<Range<usize>> {
    let (mut slices, mut begin, mut room) = (Vec::new(), 0, 0_usize);
    for (list, &len) in lens.iter().enumerate() {
        if room + len as usize > slice_max {
            slices.push(begin..list);
            (begin, room) = (list, 0);
        }
        room += len as usize;
    }
    if room > 0 {
        slices.push(begin..lens.len());
    }
    slices
}
