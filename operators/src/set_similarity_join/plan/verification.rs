//! Cost of the verification, for the rule of [`Device::Auto`](crate::wave::Device::Auto).
//!
//! The number of candidate pairs is known only at the end of a join: the bound that follows from
//! postings is a hundred times too high, because of signatures. The number of pairs in tiles is
//! known at the start.

use trommel_kernels::Isa;

use super::costs::{DEVICE_PAIR, tile_test, verified_pair};
use crate::set_similarity_join::candidates::joined_sets::JoinedSets;
use crate::shared::sets::SetBlock;
use crate::wave::Estimate;

/// Cost of `pairs` candidate pairs.
pub(crate) fn of_pairs(sets: &JoinedSets, pairs: usize) -> Estimate {
    let mean_size = sets.candidates().mean_size();
    Estimate { cpu_ns: pairs as f64 * verified_pair(mean_size), ..of_data(sets) }
}

/// Nanoseconds of a CPU core for `pairs` pairs in tiles, tested by signatures of `words` words on
/// the level `isa`.
pub(crate) fn of_tiles(pairs: u64, words: usize, isa: Isa) -> f64 {
    pairs as f64 * tile_test(words, isa)
}

/// Nanoseconds of a device for `pairs` pairs in tiles, tested by signatures of `words` words.
pub(crate) fn of_tiles_on_device(pairs: u64, words: usize) -> f64 {
    pairs as f64 * words as f64 * DEVICE_PAIR
}

/// Cost to send the sets to a device, without any verification.
pub(crate) fn of_data(sets: &JoinedSets) -> Estimate {
    let (probes, candidates) = (sets.probes(), sets.candidates());
    let bytes = |sets: &SetBlock| 4 * (sets.len() + sets.tokens()) as u64;
    let is_one = probes.version() == candidates.version();
    Estimate {
        data: Some([probes.version(), candidates.version()]),
        bytes: bytes(candidates) + if is_one { 0 } else { bytes(probes) },
        ..Estimate::default()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::shared::sets::{SetCollection, SetCollector, Side};

    fn sets(count: u32, size: u32) -> Arc<SetCollection> {
        let mut sets = SetCollector::new(1 << 30);
        for id in 0..count {
            let tokens: Vec<u32> = (0..size).map(|token| token + id).collect();
            sets.push(Side::Left, id, &tokens).unwrap();
        }
        Arc::new(sets.finish().unwrap())
    }

    #[test]
    fn pairs_cost_by_mean_size_and_sets_by_their_bytes() {
        let [first, second] = [sets(1000, 40), sets(1000, 40)];
        let self_join = JoinedSets::Collection(Arc::clone(&first));
        let cost = of_pairs(&self_join, 10);
        assert_eq!((cost.cpu_ns, cost.bytes), (400.0, 4 * (1000 + 40_000)));
        let (probes, candidates) = (Arc::clone(first.block()), Arc::clone(second.block()));
        let stream = JoinedSets::Stream { probes, candidates };
        assert_eq!(of_data(&stream).bytes, 2 * cost.bytes);
        assert_ne!(of_data(&stream).data, cost.data);
        assert!((of_tiles(1000, 4, Isa::Avx512) - 350.0).abs() < 1e-6);
        assert!((of_tiles(1000, 4, Isa::Avx2) - 910.0).abs() < 1e-6);
    }
}
