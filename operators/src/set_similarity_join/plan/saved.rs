//! The time that a device saves the CPU per pair of postings: the test by signatures, and for pairs
//! that pass the verification.
//!
//! The share of pairs that pass is estimated from a sample. Only sets with a common token in their
//! prefixes are paired: such pairs pass more often than pairs of any two sets.

use std::collections::HashMap;

use rapidhash::fast::RandomState;

use super::costs::{SAVED_TEST, verified_pair};
use super::sample::{Signed, spaced};
use crate::set_similarity_join::postings::signatures::words_for;
use crate::set_similarity_join::similarity::Bounds;
use crate::shared::sets::SetCollection;

/// Sampled sets on one side of a pair; each set is a bit of a word.
const PROBES: usize = 64;

/// Sampled sets on the other side.
const PARTNERS: usize = 1024;

/// Maximum number of tokens of a prefix that are compared: the last tokens, which are the most
/// frequent tokens.
const TOKENS: usize = 1024;

/// Share of the pairs passing the test by signatures that pass the test by positions, too.
/// Measured: 0.44 to 0.73, for sentences and descriptions at .5 to .25.
const NEAR: f64 = 0.6;

/// Nanoseconds of a pair of postings that a device would save.
///
/// # Cost
/// At most a million look-ups in a table of 65,536 tokens, one per token of the sampled prefixes,
/// and 65,536 comparisons of signatures.
pub(crate) fn saved_posting(collection: &SetCollection, bounds: Bounds) -> f64 {
    let words = words_for(collection, bounds);
    let Met { pairs, passed } = Met::sample(collection, bounds, words);
    let hit = verified_pair(collection.block().mean_size());
    SAVED_TEST + hit * passed as f64 / pairs.max(1) as f64 * NEAR
}

/// Number of pairs of postings of one list whose sizes fit.
#[derive(Debug, Default, PartialEq, Eq)]
struct Met {
    pairs: u64,
    /// Number of these pairs that pass the test by signatures.
    passed: u64,
}

impl Met {
    /// The pairs among sampled sets, which are at equal distances in the order of sizes.
    fn sample(collection: &SetCollection, bounds: Bounds, words: usize) -> Self {
        let prefix = |set: u32| {
            let prefix = bounds.probe_prefix(collection.size(set)) as usize;
            &collection.set(set)[prefix.saturating_sub(TOKENS)..prefix]
        };
        let mut has_token: HashMap<u32, u64, RandomState> = HashMap::default();
        let mut probes = Vec::with_capacity(PROBES);
        for set in spaced(collection.len(), PROBES) {
            for token in prefix(set) {
                *has_token.entry(*token).or_default() |= 1 << probes.len();
            }
            probes.push(Signed::new(collection, set, words));
        }
        let mut met = Self::default();
        for set in spaced(collection.len(), PARTNERS) {
            let mut common = [0_u64; PROBES];
            for token in prefix(set) {
                let mut having = has_token.get(token).map_or(0, |having| *having);
                while having != 0 {
                    common[having.trailing_zeros() as usize] += 1;
                    having &= having - 1;
                }
            }
            if common == [0; PROBES] {
                continue;
            }
            let partner = Signed::new(collection, set, words);
            for (probe, common) in probes.iter().zip(common) {
                if common > 0 && probe.fits(&partner, bounds) {
                    met.pairs += common;
                    met.passed += common * u64::from(probe.passes(&partner, bounds));
                }
            }
        }
        met
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::set_similarity_join::similarity::{Similarity, Threshold};
    use crate::shared::sets::{SetCollector, Side};
    use crate::testing::sets::families;

    #[test]
    fn pairs_that_share_a_token_of_their_prefixes_are_counted() {
        let mut sets = SetCollector::new(1 << 30);
        for (id, set) in (0..).zip(families(50, 12, 3)) {
            sets.push(Side::Left, id, &set.into_iter().collect::<Vec<_>>()).unwrap();
        }
        let sets = sets.finish().unwrap();
        // Fewer sets than are sampled: all pairs, from both sides.
        let count = u32::try_from(sets.len()).unwrap();
        for percent in [50, 80] {
            let threshold = Threshold::new(percent, 100).unwrap();
            let bounds = Bounds::new(Similarity::Jaccard, threshold).unwrap();
            let prefix = |set: u32| &sets.set(set)[..bounds.probe_prefix(sets.size(set)) as usize];
            let mut expected = Met::default();
            for (left, right) in (0..count).flat_map(|left| (0..left).map(move |r| (left, r))) {
                let common = prefix(left).iter().filter(|token| prefix(right).contains(token));
                let common = common.count() as u64;
                // The sets are by size.
                if sets.size(right) >= bounds.size_min(sets.size(left)) {
                    expected.pairs += 2 * common;
                    let (left, right) = (sets.set(left), sets.set(right));
                    let both = left.iter().filter(|token| right.contains(token)).count();
                    let required = percent as usize * (left.len() + right.len());
                    let is_similar = both * (100 + percent as usize) >= required;
                    expected.passed += 2 * common * u64::from(is_similar);
                }
            }
            // Signatures of 512 bits rule out nearly all pairs that are not similar.
            let found = Met::sample(&sets, bounds, 8);
            assert_eq!(found.pairs, expected.pairs);
            let passed = expected.passed..=expected.passed + expected.pairs / 20;
            assert!(passed.contains(&found.passed), "{found:?} {expected:?}");
            assert!(expected.passed > 0);
        }
    }

    #[test]
    fn of_long_prefixes_the_last_tokens_are_compared() {
        let tokens: Vec<u32> = (0..).take(5 * TOKENS).collect();
        let mut sets = SetCollector::new(1 << 30);
        sets.push(Side::Left, 0, &tokens).unwrap();
        sets.push(Side::Left, 1, &tokens).unwrap();
        let sets = sets.finish().unwrap();
        let bounds = Bounds::new(Similarity::Jaccard, Threshold::new(1, 2).unwrap()).unwrap();
        let both = 2 * TOKENS as u64;
        assert_eq!(Met::sample(&sets, bounds, 8), Met { pairs: both, passed: both });
    }
}
