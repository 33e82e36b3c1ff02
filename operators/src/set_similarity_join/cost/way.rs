//! The way of `auto` on a CPU: postings, tiles or the prefixes of PPJoin.
//!
//! All three find the same pairs. Postings win by far where lists are long and sets are short.
//! Tiles need no lists: they win where a collection is so small, or its lists so long, that fewer
//! pairs of sets than pairs of postings fit. PPJoin makes no signatures, and a pair costs it one
//! verification, not a test in each common list: it wins where sets are so large that signatures
//! are slow to make, or full and rule nothing out.
//!
//! Costs follow from counts: tokens, postings and pairs of postings, pairs whose sizes fit, and
//! the share of a sample of such pairs that their signatures do not rule out.

use trommel_kernels::Isa;
use trommel_kernels::sets::sign;
use trommel_kernels::signatures::{WORDS, words_for_mean_size};

use super::constants::{
    POSTING_HIT_PS, POSTING_SET_PS, POSTING_TEST_PS, PREFIX_PAIR_PS, PREFIX_SET_PS, PREFIX_TEST_PS,
    SAVED_HIT_PS, SAVED_PS_MAX, SAVED_TEST_PS, SIGNED_TOKEN_PS, level_percent, posting_ps,
    prefix_posting_ps, tile_hit_ps, tile_pair_ps,
};
use crate::set_similarity_join::find::posting_join::ListLengths;
use crate::set_similarity_join::find::prefix::lists_bytes;
use crate::set_similarity_join::find::signatures::words_for;
use crate::set_similarity_join::similarity::Bounds;
use crate::sets::{SetCollection, SizeRun};

/// Maximum pairs of a sample.
const SAMPLE: u64 = 256;

/// Sets per pair of a sample, so that a sample costs little.
const SETS_PER_SAMPLE: u64 = 64;

/// Sets of this size are short: their postings need not be compared closely.
const SHORT: u64 = 64;

/// A way to find candidates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    Postings,
    Tiles,
    Prefixes,
}

/// Counts of a collection from which the costs of its join follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Counts {
    sets: u64,
    tokens: u64,
    mean_size: u64,
    /// Picoseconds of PPJoin per posting.
    prefix_posting_ps: u64,
    postings: u64,
    /// Pairs of postings of one list whose sizes fit, about.
    posting_pairs: u64,
    /// Pairs of sets whose sizes fit.
    pairs: u64,
    /// Words of a signature of postings, or 0.
    words: u64,
    /// Pairs out of `SAMPLE` that their signatures, of postings and of tiles, do not rule out.
    survivors: [u64; 2],
}

/// The way that costs least.
pub(crate) fn choose(
    collection: &SetCollection,
    bounds: Bounds,
    lists: &ListLengths,
    isa: Isa,
) -> Way {
    let sets = collection.len() as u64;
    let all = sets.saturating_mul(sets.saturating_sub(1)) / 2;
    let pairs = pairs_of_fitting_sizes(collection, bounds);
    // Of postings, about the same share fits as of sets.
    let fitting = u128::from(lists.posting_pairs) * u128::from(pairs) / u128::from(all.max(1));
    let words = lists.words(collection, bounds);
    let mut counts = Counts {
        sets,
        tokens: collection.tokens() as u64,
        mean_size: collection.block().mean_size() as u64,
        prefix_posting_ps: prefix_posting_ps(lists_bytes(collection)),
        postings: lists.postings,
        posting_pairs: u64::try_from(fitting).unwrap_or(u64::MAX),
        pairs,
        words: words as u64,
        survivors: [0, 0],
    };
    let levels = level_percent(isa);
    // Survivors only add to the costs of postings and tiles.
    let [by_postings, by_tiles, by_prefixes] = counts.costs(levels);
    if counts.mean_size < SHORT && by_postings <= by_tiles.min(by_prefixes) / 2 {
        return Way::Postings;
    }
    if by_prefixes < by_postings.min(by_tiles) {
        return Way::Prefixes;
    }
    let tile_words = words_for_mean_size(collection.block().mean_size());
    let of_tiles = survivors(collection, bounds, tile_words);
    let of_postings =
        if words == tile_words { of_tiles } else { survivors(collection, bounds, words) };
    counts.survivors = [of_postings, of_tiles];
    counts.way(levels)
}

impl Counts {
    fn way(self, levels: [u64; 2]) -> Way {
        let [by_postings, by_tiles, by_prefixes] = self.costs(levels);
        if by_postings <= by_tiles.min(by_prefixes) {
            Way::Postings
        } else if by_tiles <= by_prefixes {
            Way::Tiles
        } else {
            Way::Prefixes
        }
    }

    /// Picoseconds by postings, tiles and prefixes, on a level whose tests of postings and of tiles
    /// take these percents of the time with AVX-512.
    fn costs(self, levels: [u64; 2]) -> [u128; 3] {
        let Self { mean_size, words, survivors, .. } = self;
        let [sets, tokens, postings, posting_pairs, pairs] =
            [self.sets, self.tokens, self.postings, self.posting_pairs, self.pairs].map(u128::from);
        let share = |of: u128, survivors: u64| of * u128::from(survivors) / u128::from(SAMPLE);
        let tests = |of: u128, ps: u64, percent: u64| of * u128::from(ps * percent) / 100;
        let by_postings = sets * u128::from(POSTING_SET_PS)
            + postings * u128::from(posting_ps(words))
            + tests(posting_pairs, POSTING_TEST_PS, levels[0])
            + share(posting_pairs, survivors[0]) * u128::from(POSTING_HIT_PS);
        let tile_words = words_for_mean_size(usize::try_from(mean_size).unwrap_or(usize::MAX));
        let by_tiles = tokens * u128::from(SIGNED_TOKEN_PS)
            + tests(pairs, tile_pair_ps(tile_words as u64), levels[1])
            + share(pairs, survivors[1]) * u128::from(tile_hit_ps(mean_size));
        // A pair of large sets meets in many lists.
        let by_prefixes = sets * u128::from(PREFIX_SET_PS)
            + postings * u128::from(self.prefix_posting_ps)
            + posting_pairs * u128::from(PREFIX_TEST_PS)
            + posting_pairs.min(pairs) * u128::from(PREFIX_PAIR_PS);
        [by_postings, by_tiles, by_prefixes]
    }
}

/// Picoseconds of a posting that a device would save.
pub(super) fn saved_posting_ps(collection: &SetCollection, bounds: Bounds) -> u64 {
    let words = words_for(collection, bounds);
    let hits = SAVED_HIT_PS * survivors(collection, bounds, words) / SAMPLE;
    (SAVED_TEST_PS + hits).min(SAVED_PS_MAX)
}

/// Number of pairs of sets whose sizes fit, of any sides.
fn pairs_of_fitting_sizes(collection: &SetCollection, bounds: Bounds) -> u64 {
    let (sizes, mut first) = (collection.sizes(), 0);
    let of_size = |run: &SizeRun| {
        let size_min = bounds.size_min(run.size);
        while sizes[first].size < size_min.min(run.size) {
            first += 1;
        }
        let (probes, smaller) = (run.end - run.begin, run.begin - sizes[first].begin);
        let probes = u64::from(probes);
        probes * u64::from(smaller) + probes * (probes - 1) / 2
    };
    sizes.iter().map(of_size).fold(0, u64::saturating_add)
}

/// Number of pairs that signatures of `words` words do not rule out, of [`SAMPLE`] pairs whose
/// sizes fit; estimated from fewer, if there are few sets. The sample is the same in each run.
fn survivors(collection: &SetCollection, bounds: Bounds, words: usize) -> u64 {
    let sets = u32::try_from(collection.len()).expect("sets have 32-bit numbers");
    if words == 0 || sets < 2 {
        // Without signatures, positions rule most pairs of postings out.
        return SAMPLE / 4;
    }
    let sample = (u64::from(sets) / SETS_PER_SAMPLE).clamp(SAMPLE / 4, SAMPLE);
    let mut state = 1_u64;
    let mut below = |end: u32| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        u32::try_from(((state >> 32) * u64::from(end)) >> 32).expect("below `end`")
    };
    let survives = |_: &u64| {
        let probe = 1 + below(sets - 1);
        let size = collection.size(probe);
        let size_min = bounds.size_min(size);
        let rank = collection.sizes().partition_point(|run| run.size < size_min);
        let first = collection.sizes().get(rank).map_or(probe, |run| run.begin.min(probe));
        if first == probe {
            return false;
        }
        let other = first + below(probe - first);
        let [mut left, mut right] = [[0; WORDS[WORDS.len() - 1]]; 2];
        sign(collection.set(probe), &mut left[..words]);
        sign(collection.set(other), &mut right[..words]);
        let differing = left.iter().zip(&right).map(|(left, right)| (left ^ right).count_ones());
        let other_size = collection.size(other);
        let required = u64::from(bounds.required(size, other_size));
        u64::from(differing.sum::<u32>()) + 2 * required <= u64::from(size) + u64::from(other_size)
    };
    // A few are chance: similar pairs, which each way has to verify.
    let survivors = ((0..sample).filter(survives).count() as u64).saturating_sub(1 + sample / 128);
    survivors * SAMPLE / sample
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts of generated collections of a million tokens.
    const GENERATED: Counts = Counts {
        sets: 31_248,
        tokens: 970_000,
        mean_size: 31,
        prefix_posting_ps: 19_000,
        postings: 500_000,
        posting_pairs: 51_000_000,
        pairs: 430_000_000,
        words: 2,
        survivors: [0, 0],
    };

    #[test]
    fn each_way_is_chosen_where_it_is_the_fastest() {
        assert_eq!(GENERATED.way([100, 100]), Way::Postings);
        let few = Counts { sets: 5700, mean_size: 170, words: 8, ..GENERATED };
        let few = Counts { pairs: 7_000_000, posting_pairs: 2_800_000, ..few };
        assert_eq!(few.way([100, 100]), Way::Tiles);
        // Signatures rule nothing out.
        assert_eq!(Counts { survivors: [SAMPLE; 2], ..few }.way([100, 100]), Way::Prefixes);
        // Lists are nearly empty, and there are too many pairs for tiles.
        let empty = Counts { posting_pairs: 10_000, postings: 200_000, pairs: 1 << 40, ..few };
        assert_eq!(empty.way([100, 100]), Way::Prefixes);
        let unsigned = Counts { sets: 70_000, words: 0, mean_size: 14, ..empty };
        let unsigned = Counts { survivors: [SAMPLE / 4, 0], ..unsigned };
        assert_eq!(unsigned.way([100, 100]), Way::Postings);
    }
}
