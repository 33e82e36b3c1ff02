//! The way of `auto` on a CPU: postings, tiles or the prefixes of PPJoin, with the bitmap filter or
//! without.
//!
//! All ways find the same pairs. Postings win by far if lists are long and sets are short. Tiles
//! need no lists: tiles win if a collection is so small, or its lists are so long, that there are
//! fewer pairs of sets than pairs of postings whose sizes fit. PPJoin makes no signatures, and
//! verifies a pair once in place of a test in each common list: PPJoin wins if sets are so large
//! that signatures are slow to make, or so full that signatures rule nothing out. PPJoin with the
//! bitmap filter wins if lists are nearly empty, but most pairs that meet in a list are not
//! similar.
//!
//! Costs follow from counts: tokens, postings and pairs of postings, pairs whose sizes fit, and the
//! share of these pairs in a sample that signatures do not rule out.

use trommel_kernels::Isa;
use trommel_kernels::signatures::words_for_mean_size;

use super::costs::{self, LevelFactors, level_factors};
use super::sample::{Signed, spaced};
use crate::set_similarity_join::postings::lists::PostingCounts;
use crate::set_similarity_join::postings::signatures::words_for;
use crate::set_similarity_join::similarity::Bounds;
use crate::shared::sets::{SetCollection, SizeRun};

/// Number of sets whose pairs are tested for an estimate.
const SAMPLED_SETS: usize = 32;

/// Size below which sets are short: for short sets, the choice of postings may need no sample.
const SHORT: usize = 64;

/// A way to find candidates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    Postings,
    Tiles,
    Prefixes,
    SignedPrefixes,
}

/// Postings of a collection, and the bytes of the posting lists.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CountedLists {
    pub(crate) counts: PostingCounts,
    pub(crate) index_bytes: u64,
    /// Number of cores that search postings side by side.
    pub(crate) searches: u64,
}

/// Counts of a collection from which the costs of its join follow.
#[derive(Debug, Clone, Copy, PartialEq)]
struct CollectionCounts {
    sets: f64,
    tokens: f64,
    mean_size: usize,
    /// Nanoseconds of PPJoin per posting, and per pair of sets that PPJoin meets.
    prefix_posting: f64,
    prefix_pair: f64,
    postings: f64,
    /// Approximate number of pairs of postings of one list whose sizes fit.
    posting_pairs: f64,
    /// Pairs of sets whose sizes fit.
    pairs: f64,
    searches: f64,
    /// Words of a signature of postings, or 0.
    words: usize,
    /// Words of a signature of prefixes.
    prefix_words: usize,
    survivors: Survivors,
}

/// Share of the pairs that signatures do not rule out.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Survivors {
    of_postings: f64,
    of_tiles: f64,
    of_prefixes: f64,
}

/// The way that costs least.
pub(crate) fn choose(
    collection: &SetCollection,
    bounds: Bounds,
    lists: CountedLists,
    isa: Isa,
) -> Way {
    let CountedLists { counts: lists, index_bytes, searches } = lists;
    let sets = collection.len() as f64;
    let pairs = pairs_of_fitting_sizes(collection, bounds);
    // The share of pairs that fit is about the same for postings as for sets.
    let fitting = pairs / (sets * (sets - 1.0) / 2.0).max(1.0);
    let prefix_words = words_for(collection, bounds);
    let mut counts = CollectionCounts {
        sets,
        tokens: collection.tokens() as f64,
        mean_size: collection.block().mean_size(),
        prefix_posting: costs::prefix_posting(index_bytes),
        prefix_pair: costs::prefix_pair(size_of_val(collection.sets().tokens()) as u64),
        postings: lists.postings as f64,
        posting_pairs: lists.pairs as f64 * fitting,
        pairs,
        searches: searches as f64,
        words: lists.words(collection, bounds),
        prefix_words,
        survivors: Survivors::default(),
    };
    let factors = level_factors(isa);
    // Survivors only add to the costs of ways with signatures.
    let [(by_postings, _), others @ ..] = counts.costs(factors);
    let is_least = |cost: f64| others.iter().all(|(other, _)| cost <= *other);
    if counts.mean_size < SHORT && is_least(2.0 * by_postings) {
        return Way::Postings;
    }
    if counts.way(factors) == Way::Prefixes {
        return Way::Prefixes;
    }
    let tile_words = words_for_mean_size(collection.block().mean_size());
    let of_tiles = survivors(collection, bounds, tile_words);
    let of_prefixes = if prefix_words == tile_words {
        of_tiles
    } else {
        survivors(collection, bounds, prefix_words)
    };
    // Without signatures, positions still rule out most pairs of postings.
    let of_postings = if counts.words == 0 { 0.25 } else { of_prefixes };
    counts.survivors = Survivors { of_postings, of_tiles, of_prefixes };
    counts.way(factors)
}

impl CollectionCounts {
    /// The way that costs least.
    fn way(self, factors: LevelFactors) -> Way {
        let least =
            self.costs(factors).into_iter().min_by(|(left, _), (right, _)| left.total_cmp(right));
        least.expect("there are several ways").1
    }

    /// Nanoseconds of each way on a level with these times.
    fn costs(self, factors: LevelFactors) -> [(f64, Way); 4] {
        let Self { sets, tokens, postings, posting_pairs, pairs, survivors, .. } = self;
        let by_postings = sets * costs::POSTING_SET
            + postings * costs::posting(self.words) * factors.posting
            + posting_pairs * costs::POSTING_TEST * factors.posting_test
            + posting_pairs * survivors.of_postings * costs::POSTING_HIT;
        let tile_words = words_for_mean_size(self.mean_size);
        let by_tiles = tokens * costs::TILE_TOKEN
            + pairs * costs::tile_pair(tile_words) * factors.tile_test
            + pairs * survivors.of_tiles * costs::tile_hit(self.mean_size);
        // A pair of large sets meets in many lists, but PPJoin verifies each pair once.
        let met = posting_pairs.min(pairs);
        let lists = sets * costs::PREFIX_SET
            + postings * self.prefix_posting
            + posting_pairs * costs::PREFIX_TEST;
        let by_prefixes = lists + met * self.prefix_pair;
        let by_signed_prefixes = lists
            + tokens * costs::prefix_token(self.prefix_words)
            + met * survivors.of_prefixes * costs::SIGNED_PREFIX_HIT;
        [
            (by_postings / self.searches, Way::Postings),
            (by_tiles, Way::Tiles),
            (by_prefixes, Way::Prefixes),
            (by_signed_prefixes, Way::SignedPrefixes),
        ]
    }
}

/// Number of pairs of sets whose sizes fit, of any sides.
fn pairs_of_fitting_sizes(collection: &SetCollection, bounds: Bounds) -> f64 {
    let (sizes, mut first) = (collection.sizes(), 0);
    let of_size = |run: &SizeRun| {
        let size_min = bounds.size_min(run.size);
        while sizes[first].size < size_min.min(run.size) {
            first += 1;
        }
        let (probes, smaller) = (run.end - run.begin, run.begin - sizes[first].begin);
        let [probes, smaller] = [probes, smaller].map(f64::from);
        probes * smaller + probes * (probes - 1.0) / 2.0
    };
    sizes.iter().map(of_size).sum()
}

/// Share of the pairs whose sizes fit that signatures of `words` words do not rule out. The
/// estimate takes all pairs of [`SAMPLED_SETS`] sets; the sets are the same in each run.
fn survivors(collection: &SetCollection, bounds: Bounds, words: usize) -> f64 {
    let sampled = spaced(collection.len(), SAMPLED_SETS);
    let signed: Vec<Signed> = sampled.map(|set| Signed::new(collection, set, words)).collect();
    let (mut sample, mut survivors) = (0_u32, 0_u32);
    for (place, probe) in signed.iter().enumerate() {
        let smaller = signed[..place].iter().rev();
        for other in smaller.take_while(|other| probe.fits(other, bounds)) {
            sample += 1;
            survivors += u32::from(probe.passes(other, bounds));
        }
    }
    // A few survivors do not count: such survivors may be similar pairs, which each way has to
    // verify.
    f64::from(survivors.saturating_sub(1 + sample / 128)) / f64::from(sample.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts of generated collections of a million tokens.
    const GENERATED: CollectionCounts = CollectionCounts {
        sets: 31_248.0,
        tokens: 970_000.0,
        mean_size: 31,
        prefix_posting: 17.2,
        prefix_pair: 18.8,
        postings: 5e5,
        posting_pairs: 5.1e7,
        pairs: 4.3e8,
        searches: 1.0,
        words: 2,
        prefix_words: 2,
        survivors: Survivors { of_postings: 0.0, of_tiles: 0.0, of_prefixes: 0.0 },
    };

    #[test]
    fn each_way_is_chosen_where_it_is_the_fastest() {
        let way = |counts: CollectionCounts| counts.way(level_factors(Isa::Avx512));
        assert_eq!(way(GENERATED), Way::Postings);
        let few = CollectionCounts {
            sets: 5700.0,
            mean_size: 170,
            words: 8,
            prefix_words: 8,
            ..GENERATED
        };
        let few = CollectionCounts { pairs: 7e6, posting_pairs: 2.8e6, ..few };
        assert_eq!(way(few), Way::Tiles);
        // Signatures rule nothing out.
        let full = Survivors { of_postings: 1.0, of_tiles: 1.0, of_prefixes: 1.0 };
        assert_eq!(way(CollectionCounts { survivors: full, ..few }), Way::Prefixes);
        // Lists are nearly empty, and there are too many pairs for tiles.
        let empty = CollectionCounts { posting_pairs: 1e4, postings: 2e5, pairs: 1e12, ..few };
        assert_eq!(way(empty), Way::Prefixes);
        // There are enough pairs of postings to sign sets for.
        let signed = CollectionCounts { posting_pairs: 4e5, ..empty };
        assert_eq!(way(signed), Way::SignedPrefixes);
        assert_eq!(way(CollectionCounts { searches: 16.0, ..signed }), Way::Postings);
        let unsigned = CollectionCounts { sets: 1e5, words: 0, mean_size: 14, ..empty };
        let survivors = Survivors { of_postings: 0.25, ..Survivors::default() };
        assert_eq!(way(CollectionCounts { survivors, ..unsigned }), Way::Postings);
    }
}
