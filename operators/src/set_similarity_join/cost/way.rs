//! The way of `auto` on a CPU: postings, tiles or the prefixes of PPJoin, with the bitmap filter or
//! without.
//!
//! All find the same pairs. Postings win by far where lists are long and sets are short.
//! Tiles need no lists: they win where a collection is so small, or its lists so long, that fewer
//! pairs of sets than pairs of postings fit. PPJoin makes no signatures, and a pair costs it one
//! verification, not a test in each common list: it wins where sets are so large that signatures
//! are slow to make, or full and rule nothing out. With the bitmap filter, it wins where lists are
//! nearly empty, but most pairs that meet in one are not similar.
//!
//! Costs follow from counts: tokens, postings and pairs of postings, pairs whose sizes fit, and
//! the share of a sample of such pairs that their signatures do not rule out.

use trommel_kernels::Isa;
use trommel_kernels::signatures::words_for_mean_size;

use super::constants::{
    LevelPercents, POSTING_HIT_PS, POSTING_SET_PS, POSTING_TEST_PS, PREFIX_SET_PS, PREFIX_TEST_PS,
    SIGNED_PREFIX_HIT_PS, TILE_TOKEN_PS, level_percents, posting_ps, prefix_pair_ps,
    prefix_posting_ps, prefix_token_ps, tile_hit_ps, tile_pair_ps,
};
use super::sample::{Signed, spaced};
use crate::set_similarity_join::find::posting_lists::PostingCounts;
use crate::set_similarity_join::find::prefix_index::index_bytes;
use crate::set_similarity_join::find::signatures::words_for;
use crate::set_similarity_join::similarity::Bounds;
use crate::sets::{SetCollection, SizeRun};

/// Pairs of which the number of survivors is a share.
const SAMPLE: u64 = 256;

/// Number of sets whose pairs are tested for an estimate.
const SAMPLED_SETS: usize = 32;

/// Sets of this size are short: their postings need not be compared closely.
const SHORT: u64 = 64;

/// A way to find candidates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    Postings,
    Tiles,
    Prefixes,
    SignedPrefixes,
}

/// Counts of a collection from which the costs of its join follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Counts {
    sets: u64,
    tokens: u64,
    mean_size: u64,
    /// Picoseconds of PPJoin per posting, and per pair of sets that it meets.
    prefix_posting_ps: u64,
    prefix_pair_ps: u64,
    postings: u64,
    /// Pairs of postings of one list whose sizes fit, about.
    posting_pairs: u64,
    /// Pairs of sets whose sizes fit.
    pairs: u64,
    /// Cores that search postings side by side.
    searches: u64,
    /// Words of a signature of postings, or 0.
    words: u64,
    /// Words of a signature of prefixes.
    prefix_words: u64,
    survivors: Survivors,
}

/// Pairs out of [`SAMPLE`] that their signatures do not rule out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Survivors {
    of_postings: u64,
    of_tiles: u64,
    of_prefixes: u64,
}

/// The way that costs least, if postings are searched by `searches` cores.
pub(crate) fn choose(
    collection: &SetCollection,
    bounds: Bounds,
    lists: PostingCounts,
    searches: u64,
    isa: Isa,
) -> Way {
    let sets = collection.len() as u64;
    let all = sets.saturating_mul(sets.saturating_sub(1)) / 2;
    let pairs = pairs_of_fitting_sizes(collection, bounds);
    // Of postings, about the same share fits as of sets.
    let fitting = u128::from(lists.pairs) * u128::from(pairs) / u128::from(all.max(1));
    let prefix_words = words_for(collection, bounds);
    let mut counts = Counts {
        sets,
        tokens: collection.tokens() as u64,
        mean_size: collection.block().mean_size() as u64,
        prefix_posting_ps: prefix_posting_ps(index_bytes(collection, lists.postings)),
        prefix_pair_ps: prefix_pair_ps(size_of_val(collection.sets().tokens()) as u64),
        postings: lists.postings,
        posting_pairs: u64::try_from(fitting).unwrap_or(u64::MAX),
        pairs,
        searches,
        words: lists.words(collection, bounds) as u64,
        prefix_words: prefix_words as u64,
        survivors: Survivors::default(),
    };
    let percents = level_percents(isa);
    // Survivors only add to the costs of ways with signatures.
    let [(by_postings, _), others @ ..] = counts.costs(percents);
    let is_least = |cost: u128| others.iter().all(|(other, _)| cost <= *other);
    if counts.mean_size < SHORT && is_least(2 * by_postings) {
        return Way::Postings;
    }
    if counts.way(percents) == Way::Prefixes {
        return Way::Prefixes;
    }
    let tile_words = words_for_mean_size(collection.block().mean_size());
    let of_tiles = survivors(collection, bounds, tile_words);
    let of_prefixes = if prefix_words == tile_words {
        of_tiles
    } else {
        survivors(collection, bounds, prefix_words)
    };
    // Without signatures, positions rule most pairs of postings out.
    let of_postings = if counts.words == 0 { SAMPLE / 4 } else { of_prefixes };
    counts.survivors = Survivors { of_postings, of_tiles, of_prefixes };
    counts.way(percents)
}

impl Counts {
    /// The way that costs least.
    fn way(self, percents: LevelPercents) -> Way {
        let least = self.costs(percents).into_iter().min_by_key(|(cost, _)| *cost);
        least.expect("there are several ways").1
    }

    /// Picoseconds of each way on a level with these times.
    fn costs(self, percents: LevelPercents) -> [(u128, Way); 4] {
        let Self { mean_size, words, survivors, .. } = self;
        let [sets, tokens, postings, posting_pairs, pairs] =
            [self.sets, self.tokens, self.postings, self.posting_pairs, self.pairs].map(u128::from);
        let share = |of: u128, survivors: u64| of * u128::from(survivors) / u128::from(SAMPLE);
        let on_level = |of: u128, ps: u64, percent: u64| of * u128::from(ps * percent) / 100;
        let by_postings = sets * u128::from(POSTING_SET_PS)
            + on_level(postings, posting_ps(words), percents.posting)
            + on_level(posting_pairs, POSTING_TEST_PS, percents.posting_test)
            + share(posting_pairs, survivors.of_postings) * u128::from(POSTING_HIT_PS);
        let tile_words = words_for_mean_size(usize::try_from(mean_size).unwrap_or(usize::MAX));
        let by_tiles = tokens * u128::from(TILE_TOKEN_PS)
            + on_level(pairs, tile_pair_ps(tile_words as u64), percents.tile_test)
            + share(pairs, survivors.of_tiles) * u128::from(tile_hit_ps(mean_size));
        // A pair of large sets meets in many lists.
        let met = posting_pairs.min(pairs);
        let lists = sets * u128::from(PREFIX_SET_PS)
            + postings * u128::from(self.prefix_posting_ps)
            + posting_pairs * u128::from(PREFIX_TEST_PS);
        let by_prefixes = lists + met * u128::from(self.prefix_pair_ps);
        let by_signed_prefixes = lists
            + tokens * u128::from(prefix_token_ps(self.prefix_words))
            + share(met, survivors.of_prefixes) * u128::from(SIGNED_PREFIX_HIT_PS);
        [
            (by_postings / u128::from(self.searches), Way::Postings),
            (by_tiles, Way::Tiles),
            (by_prefixes, Way::Prefixes),
            (by_signed_prefixes, Way::SignedPrefixes),
        ]
    }
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

/// Number of pairs that signatures of `words` words do not rule out, out of [`SAMPLE`] pairs whose
/// sizes fit. An estimate from all pairs of [`SAMPLED_SETS`] sets, which are the same in each run.
fn survivors(collection: &SetCollection, bounds: Bounds, words: usize) -> u64 {
    let sampled = spaced(collection.len(), SAMPLED_SETS);
    let signed: Vec<Signed> = sampled.map(|set| Signed::new(collection, set, words)).collect();
    let (mut sample, mut survivors) = (0, 0);
    for (place, probe) in signed.iter().enumerate() {
        let smaller = signed[..place].iter().rev();
        for other in smaller.take_while(|other| probe.fits(other, bounds)) {
            sample += 1;
            survivors += u64::from(probe.passes(other, bounds));
        }
    }
    // A few are chance: similar pairs, which each way has to verify.
    u64::saturating_sub(survivors, 1 + sample / 128) * SAMPLE / sample.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts of generated collections of a million tokens.
    const GENERATED: Counts = Counts {
        sets: 31_248,
        tokens: 970_000,
        mean_size: 31,
        prefix_posting_ps: 17_200,
        prefix_pair_ps: 18_800,
        postings: 500_000,
        posting_pairs: 51_000_000,
        pairs: 430_000_000,
        searches: 1,
        words: 2,
        prefix_words: 2,
        survivors: Survivors { of_postings: 0, of_tiles: 0, of_prefixes: 0 },
    };

    #[test]
    fn each_way_is_chosen_where_it_is_the_fastest() {
        let way = |counts: Counts| counts.way(level_percents(Isa::Avx512));
        assert_eq!(way(GENERATED), Way::Postings);
        let few = Counts { sets: 5700, mean_size: 170, words: 8, prefix_words: 8, ..GENERATED };
        let few = Counts { pairs: 7_000_000, posting_pairs: 2_800_000, ..few };
        assert_eq!(way(few), Way::Tiles);
        // Signatures rule nothing out.
        let of_prefixes = SAMPLE;
        let full = Survivors { of_postings: SAMPLE, of_tiles: SAMPLE, of_prefixes };
        assert_eq!(way(Counts { survivors: full, ..few }), Way::Prefixes);
        // Lists are nearly empty, and there are too many pairs for tiles.
        let empty = Counts { posting_pairs: 10_000, postings: 200_000, pairs: 1 << 40, ..few };
        assert_eq!(way(empty), Way::Prefixes);
        // There are enough pairs of postings to sign sets for.
        let signed = Counts { posting_pairs: 400_000, ..empty };
        assert_eq!(way(signed), Way::SignedPrefixes);
        assert_eq!(way(Counts { searches: 16, ..signed }), Way::Postings);
        let unsigned = Counts { sets: 100_000, words: 0, mean_size: 14, ..empty };
        let survivors = Survivors { of_postings: SAMPLE / 4, ..Survivors::default() };
        assert_eq!(way(Counts { survivors, ..unsigned }), Way::Postings);
    }
}
