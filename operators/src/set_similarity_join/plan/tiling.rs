//! Choice between postings and tiles, per size of the probes: the cost model of `auto` when there
//! may be a device.
//!
//! A bucket is the sets of one size as probes. The postings of a bucket are counted, not estimated:
//! a pass over the sets works like the join, with the lengths of posting lists in place of the
//! lists.

use std::ops::Range;

use trommel_kernels::cuda;
use trommel_kernels::cuda::DeviceSets;
use trommel_kernels::cuda::signatures::SignedSets;
use trommel_kernels::signatures::words_for_mean_size;

use super::costs::DEVICE_PAIR;
use super::saved::saved_posting;
use crate::set_similarity_join::postings::lists::ListLengths;
use crate::set_similarity_join::postings::prefix::{SizeRange, list_of};
use crate::set_similarity_join::similarity::Bounds;
use crate::shared::sets::{SetCollection, SizeRun};
use crate::wave::{Access, DeviceChoice, Estimate};

/// Maximum number of sets whose postings are counted; of a larger collection, evenly spaced sets
/// are counted.
const COUNTED_SETS: usize = 1 << 18;

/// The sets of one size as probes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Bucket {
    /// Number of pairs of a set with an earlier set whose sizes fit; with two inputs, this includes
    /// pairs of one side.
    pairs: u64,
    /// Number of postings that the look-ups of the sets would read, after the size filter.
    postings: u64,
}

/// The sizes whose probes are joined by tiles.
#[derive(Debug, Clone)]
pub(crate) struct TiledRanks {
    /// By rank of the size: whether the probes of that size are joined by tiles.
    pub(crate) ranks: Vec<bool>,
    /// Whether the probes of other sizes have any posting to read.
    pub(crate) has_others: bool,
}

impl TiledRanks {
    /// All sizes.
    pub(crate) fn all(collection: &SetCollection) -> Self {
        Self { ranks: vec![true; collection.sizes().len()], has_others: false }
    }
}

/// Rule by which `auto` joins sizes by tiles of a device: each size for which tiles cost less than
/// postings, if the device pays.
#[derive(Debug, Clone)]
pub(crate) struct Tiling {
    /// `None` if no device may be used, or if the parameters name a kernel for candidate pairs: on
    /// a CPU, tiles would cost more than postings.
    choice: Option<DeviceChoice>,
}

impl Tiling {
    /// No size.
    pub(crate) fn never() -> Self {
        Self { choice: None }
    }

    /// The sizes for which the device of `choice` pays.
    pub(crate) fn of(choice: DeviceChoice) -> Self {
        Self { choice: Some(choice).filter(DeviceChoice::may_use_device) }
    }

    /// The sizes to be joined by tiles, in comparison with `cores` cores that search postings;
    /// `None` if there is no such size. `lists` has the lengths of all posting lists, if these are
    /// counted already.
    pub(crate) fn choose(
        &self,
        collection: &SetCollection,
        bounds: Bounds,
        cores: usize,
        lists: Option<&ListLengths>,
    ) -> Option<TiledRanks> {
        let has_device = |choice: &DeviceChoice| choice.is_required() || cuda::Device::has_driver();
        let mut choice = self.choice.clone().filter(has_device)?;
        let words = words_for_mean_size(collection.block().mean_size());
        let cost = TileCost {
            pair: DEVICE_PAIR * words as f64,
            posting: of_cores(saved_posting(collection, bounds), cores),
        };
        // Tiles save at most all pairs of postings. This test ends the choice for most joins on
        // several cores, because counting buckets takes one core a long time.
        let most = lists.map(|lists| lists.counts.pairs as f64 * cost.posting);
        if most.is_some_and(|most| most == 0.0 || !choice.may_pay(&Estimate::on_cpu(most))) {
            return None;
        }
        let step = u32::try_from(collection.len().div_ceil(COUNTED_SETS).max(1));
        let step = step.expect("sets have 32-bit numbers");
        let (tiled, saved) = choose(&buckets(collection, bounds, step), step == 1, cost);
        if saved == 0.0 || !choice.pays(&Estimate::on_cpu(saved)) {
            return None;
        }
        let has_room = match choice.open() {
            // On a CPU, tiles cost more than postings.
            Access::Missing | Access::Refused => choice.is_required(),
            Access::Open(_, free) => choice.is_required() || bytes_of(collection, words) <= free,
        };
        has_room.then_some(tiled)
    }
}

/// The time that `cores` cores need for postings that take one core `time`. Cores share the memory,
/// and often two cores share a processor: on a Xeon, two cores are 1.4 to 1.7 times as fast as one
/// core, and 16 cores are eight times as fast (bench/reports/set-join.md).
fn of_cores(time: f64, cores: usize) -> f64 {
    2.0 * time / (cores as f64 + 1.0)
}

/// Bytes of the sets on a device, with signatures of `words` words.
fn bytes_of(collection: &SetCollection, words: usize) -> usize {
    let sets = DeviceSets::bytes_of(collection.sets(), 0);
    sets + SignedSets::bytes(collection.len(), words)
}

/// Costs that are compared, in nanoseconds.
#[derive(Debug, Clone, Copy)]
struct TileCost {
    /// Cost of a pair of a tile.
    pair: f64,
    /// Cost of a posting on all cores together.
    posting: f64,
}

impl Bucket {
    /// Nanoseconds that tiles save; 0 if they cost more than postings.
    fn saved(self, cost: TileCost) -> f64 {
        (self.postings as f64 * cost.posting - self.pairs as f64 * cost.pair).max(0.0)
    }
}

/// The sizes for which tiles cost less, and the nanoseconds that tiles save.
///
/// Where postings were counted of some sets only, a size without a counted posting can have
/// postings: an index finds them if there is one for other sizes, or else tiles do.
fn choose(buckets: &[Bucket], are_exact: bool, cost: TileCost) -> (TiledRanks, f64) {
    let saved: Vec<f64> = buckets.iter().map(|bucket| bucket.saved(cost)).collect();
    let mut ranks: Vec<bool> = saved.iter().map(|saved| *saved > 0.0).collect();
    let mut others = buckets.iter().zip(&ranks).filter(|(_, is_tiled)| !**is_tiled);
    let has_others = others.any(|(bucket, _)| bucket.postings > 0);
    if !are_exact && !has_others {
        for (is_tiled, bucket) in ranks.iter_mut().zip(buckets) {
            *is_tiled |= bucket.pairs > 0;
        }
    }
    (TiledRanks { ranks, has_others }, saved.iter().sum())
}

/// The buckets of a collection, by rank of the size. The postings of each `step`-th set are
/// counted, and are scaled up to all sets.
///
/// # Cost
/// Three memory accesses per token of a counted prefix, and 4 bytes per posting list.
fn buckets(collection: &SetCollection, bounds: Bounds, step: u32) -> Vec<Bucket> {
    let sizes = collection.sizes();
    let mut lens = vec![0_u32; collection.sides() * collection.distinct() as usize];
    let mut range = SizeRange::default();
    let mut left = 0;
    // The sets whose numbers are multiples of the step.
    let counted =
        |sets: Range<u32>| (sets.start.next_multiple_of(step)..sets.end).step_by(step as usize);
    let add = |lens: &mut [u32], set: u32, by: fn(u32) -> u32| {
        let prefix = bounds.index_prefix(collection.size(set)) as usize;
        for &token in &collection.set(set)[..prefix] {
            let len = &mut lens[list_of(collection, collection.side(set), token)];
            *len = by(*len);
        }
    };
    (0..sizes.len())
        .map(|rank| {
            range.move_to(rank, sizes, bounds);
            // Sets that have become too small leave their lists, as in the join.
            for set in counted(left..range.set_min) {
                add(&mut lens, set, |len| len - 1);
            }
            left = range.set_min;
            let mut bucket = Bucket::default();
            let SizeRun { begin, end, .. } = sizes[rank];
            for set in counted(begin..end) {
                let partner = collection.partner_side(collection.side(set));
                let probe = &collection.set(set)[..range.probe_prefix];
                let found = |&token: &u32| u64::from(lens[list_of(collection, partner, token)]);
                bucket.postings += probe.iter().map(found).sum::<u64>();
                add(&mut lens, set, |len| len + 1);
            }
            // A counted set stands for `step` sets, so a pair of counted sets stands for `step`
            // squared pairs.
            bucket.postings = bucket.postings.saturating_mul(u64::from(step).pow(2));
            let (probes, before) = (end - begin, u64::from(sizes[rank].begin - range.set_min));
            let probes = u64::from(probes);
            bucket.pairs = probes * before + probes * (probes - 1) / 2;
            bucket
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::set_similarity_join::similarity::{Similarity, Threshold};
    use crate::shared::sets::{SetCollector, Side};

    fn bounds(numerator: u32, denominator: u32) -> Bounds {
        Bounds::new(Similarity::Jaccard, Threshold::new(numerator, denominator).unwrap()).unwrap()
    }

    /// Sets of 1 to 12 tokens; some tokens are frequent.
    fn sets(is_two_sided: bool) -> SetCollection {
        let mut sets = SetCollector::new(1 << 20);
        for id in 0..60_u32 {
            let tokens: Vec<u32> = (0..=id * 7 % 12).map(|token| token * token + id % 3).collect();
            let side = if is_two_sided && id % 2 == 1 { Side::Right } else { Side::Left };
            sets.push(side, id, &tokens).unwrap();
        }
        sets.finish().unwrap()
    }

    #[test]
    fn postings_are_those_of_all_earlier_sets_of_the_other_side_that_are_large_enough() {
        for (is_two_sided, bounds) in
            [(false, bounds(1, 2)), (false, bounds(9, 10)), (true, bounds(3, 5))]
        {
            let sets = sets(is_two_sided);
            let found = buckets(&sets, bounds, 1);
            for (bucket, run) in found.iter().zip(sets.sizes()) {
                let mut expected = Bucket::default();
                for probe in run.begin..run.end {
                    let looked_up = &sets.set(probe)[..bounds.probe_prefix(run.size) as usize];
                    for other in
                        (0..probe).filter(|&set| sets.size(set) >= bounds.size_min(run.size))
                    {
                        expected.pairs += 1;
                        let indexed = bounds.index_prefix(sets.size(other)) as usize;
                        let indexed = &sets.set(other)[..indexed];
                        let common = looked_up.iter().filter(|token| indexed.contains(token));
                        let is_partner = !is_two_sided || sets.side(probe) != sets.side(other);
                        expected.postings += if is_partner { common.count() as u64 } else { 0 };
                    }
                }
                assert_eq!(*bucket, expected, "size {}", run.size);
            }
            assert!(found.iter().any(|bucket| bucket.postings > 0));
        }
    }

    #[test]
    fn buckets_go_the_way_that_costs_less() {
        let bucket = |pairs, postings| Bucket { pairs, postings };
        // 1 ps a pair and word against 2.4 ns a posting.
        let buckets =
            [bucket(25_000, 10), bucket(22_000, 10), bucket(0, 0), bucket(1_400_000, 1000)];
        let cost = |words| TileCost { pair: 0.001 * words, posting: 2.4 };
        let (tiled, saved) = choose(&buckets, true, cost(1.0));
        assert_eq!((tiled.ranks, tiled.has_others), (vec![false, true, false, true], true));
        assert!((saved - 1_002.0).abs() < 1e-6, "{saved}");
        let (tiled, saved) = choose(&buckets[1..], true, cost(1.0));
        assert_eq!((tiled.ranks, tiled.has_others), (vec![true, false, true], false));
        assert!((saved - 1_002.0).abs() < 1e-6, "{saved}");
        assert_eq!(choose(&buckets, true, cost(3.0)).0.ranks, [false; 4]);
    }

    /// A pair is found by the tiles of the size of its later set, or by an index.
    #[test]
    fn no_size_with_postings_is_left_out_where_some_sets_are_counted() {
        let (sets, bounds) = (sets(false), bounds(1, 2));
        let all = buckets(&sets, bounds, 1);
        // Only large postings pay for the tiles of a size.
        for (step, pair) in (1..=sets.len()).flat_map(|step| [(step, 1e-9), (step, 1.0)]) {
            let step = u32::try_from(step).unwrap();
            let counted = buckets(&sets, bounds, step);
            let cost = TileCost { pair, posting: 1.0 };
            let (tiled, _) = choose(&counted, step == 1, cost);
            for (bucket, is_tiled) in all.iter().zip(&tiled.ranks) {
                let is_found = bucket.postings == 0 || *is_tiled || tiled.has_others;
                assert!(is_found, "one of {step} sets, {pair}: {bucket:?}");
            }
        }
        let bucket = |pairs, postings| Bucket { pairs, postings };
        let cost = TileCost { pair: 0.001, posting: 2.4 };
        let (tiled, _) = choose(&[bucket(7, 0), bucket(100, 10), bucket(0, 0)], false, cost);
        assert_eq!((tiled.ranks, tiled.has_others), (vec![true, true, false], false));
        let with_index = [bucket(7, 0), bucket(100, 10), bucket(1 << 20, 1)];
        let (tiled, _) = choose(&with_index, false, cost);
        assert_eq!((tiled.ranks, tiled.has_others), (vec![false, true, false], true));
    }
}
