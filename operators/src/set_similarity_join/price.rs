//! When a device pays: what `device: "auto"` goes by.
//!
//! A device answers pairs faster than a CPU, but it has to be opened and the sets have to be sent.
//! How many candidates a join has is known at its end: from the postings only a bound follows,
//! which signatures undercut a hundred times. So candidates are verified on the CPU until that has
//! cost as much as the device will, and from then on on the device. Whatever the number of
//! candidates, this costs at most twice what the better of both would have (the *ski rental* rule:
//! Karlin, Manasse, Rudolph, Sleator, *Competitive Snoopy Caching*, Algorithmica 3, 1988). Costs
//! are modelled, not timed, so that a run is the same each time.

use super::chunk::JoinedSets;
use super::collection::SetCollection;

/// Opening a device: the driver and its context, 0.2 to 0.4 s beside an H200, the kernels and
/// pinned memory, 0.02 to 0.07 s (docs/gpu.md).
pub(super) const OPENING_NS: u64 = 400_000_000;

/// What the host sends while it copies from pageable memory (docs/gpu.md, *The whole way*).
const BYTES_PER_NS: u64 = 6;

/// What a CPU needs for a pair of sets of this mean size: measured 26, 59, 91 and 250 ns at 13, 49,
/// 117 and 491 (docs/gpu.md, one core).
fn pair_ns(mean_size: u64) -> u64 {
    20 + mean_size / 2
}

/// What a CPU needs to test a pair of a tile, in picoseconds a word of the signature: with AVX-512
/// 155, 89 and 85 at 1, 4 and 8 words (`trommel-bench signatures`).
const TILE_PAIR_PS: u64 = 100;

/// What the CPU has spent, and when it is enough.
#[derive(Debug, Default)]
pub(super) struct Price {
    /// On all pairs.
    spent_ns: u64,
    /// On those of the present sets.
    spent_on_sets_ns: u64,
    /// The present sets, what sending them costs, and a pair of them.
    versions: Option<[u64; 2]>,
    sending_ns: u64,
    pair_ns: u64,
}

impl Price {
    /// Candidates of these sets come now.
    pub(super) fn turn_to(&mut self, JoinedSets { probes, candidates }: &JoinedSets) {
        let versions = Some([probes.version(), candidates.version()]);
        if self.versions == versions {
            return;
        }
        self.versions = versions;
        let bytes = |sets: &SetCollection| 4 * (sets.len() + sets.tokens()) as u64;
        let is_one = probes.version() == candidates.version();
        let bytes = bytes(candidates) + if is_one { 0 } else { bytes(probes) };
        self.sending_ns = bytes / BYTES_PER_NS;
        self.spent_on_sets_ns = 0;
        self.pair_ns = pair_ns((candidates.tokens() / candidates.len().max(1)) as u64);
    }

    /// Whether the device pays for the candidates that follow.
    pub(super) fn is_paid(&self) -> bool {
        self.spent_ns >= OPENING_NS && self.spent_on_sets_ns >= self.sending_ns
    }

    /// So many pairs are tested by signatures of so many words, all of them known before the first
    /// one: nothing has to be spent to find out.
    pub(super) fn spend_on_tiles(&mut self, pairs: u64, words: usize) {
        let ns = pairs.saturating_mul(TILE_PAIR_PS * words as u64) / 1000;
        self.spent_ns = self.spent_ns.saturating_add(ns);
        self.spent_on_sets_ns = self.spent_on_sets_ns.saturating_add(ns);
    }

    /// So many pairs are verified, wherever.
    pub(super) fn spend(&mut self, pairs: usize) {
        let ns = pairs as u64 * self.pair_ns;
        self.spent_ns = self.spent_ns.saturating_add(ns);
        self.spent_on_sets_ns = self.spent_on_sets_ns.saturating_add(ns);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::collector::{SetCollector, Side};
    use super::*;

    fn sets(count: u32, size: u32) -> Arc<SetCollection> {
        let mut sets = SetCollector::new(1 << 30);
        for id in 0..count {
            let tokens: Vec<u32> = (0..size).map(|token| token + id).collect();
            sets.push(Side::Left, id, &tokens).unwrap();
        }
        Arc::new(sets.finish().unwrap())
    }

    #[test]
    fn a_device_pays_when_the_cpu_has_spent_as_much() {
        let mut price = Price::default();
        let first = JoinedSets::of_one(&sets(1000, 40));
        price.turn_to(&first);
        assert!(!price.is_paid(), "at the beginning");
        // 40 ns a pair.
        price.spend(9_999_999);
        price.turn_to(&first);
        assert!(!price.is_paid());
        price.spend(1);
        assert!(price.is_paid());
        // 4 * (1000 + 40000) B of candidates, and as much of probes: 54,666 / 2 ns.
        let [probes, candidates] = [sets(1000, 40), sets(1000, 40)];
        price.turn_to(&JoinedSets { probes, candidates });
        price.spend(1366);
        assert!(!price.is_paid(), "other sets are to be sent");
        price.spend(1);
        assert!(price.is_paid());
    }
}
