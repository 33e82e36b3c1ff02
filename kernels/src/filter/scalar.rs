//! The reference of the filter: every other level returns the same bits.

use super::bins::{Absorbed, Bins, NO_LANE};
use crate::simd::Key;

/// See [`absorb`](super::absorb).
pub(super) fn absorb<K: Key>(bins: Bins<'_, K>, items: &[K], missed: &mut [u32]) -> Absorbed {
    let mut done = Absorbed::default();
    for (position, item) in (0..).zip(items) {
        if done.missed == missed.len() {
            break;
        }
        if let Some(bin) = bins.keys.iter().position(|key| key == item) {
            bins.counts[bin] = bins.counts[bin].saturating_add(1);
        } else {
            missed[done.missed] = position;
            done.missed += 1;
            done.missed_weight += 1;
        }
        done.consumed += 1;
    }
    done
}

/// See [`absorb_weighted`](super::absorb_weighted); positions start at `first`.
pub(super) fn absorb_weighted<K: Key>(
    bins: Bins<'_, K>,
    items: &[K],
    weights: &[u64],
    budget: u64,
    missed: &mut [u32],
    first: u32,
) -> Absorbed {
    let mut done = Absorbed::default();
    for ((position, item), &weight) in (first..).zip(items).zip(weights) {
        if done.missed == missed.len() || done.missed_weight >= budget {
            break;
        }
        if let Some(bin) = bins.keys.iter().position(|key| key == item) {
            bins.counts[bin] = bins.counts[bin].saturating_add(weight);
        } else {
            missed[done.missed] = position;
            done.missed += 1;
            done.missed_weight = done.missed_weight.saturating_add(weight);
        }
        done.consumed += 1;
    }
    done
}

/// See [`locate`](super::locate).
pub(super) fn locate<K: Key>(keys: &[K], items: &[K], lanes: &mut [u8]) {
    for (item, lane) in items.iter().zip(lanes) {
        let found = (0..).zip(keys).find(|(_, key)| *key == item);
        *lane = found.map_or(NO_LANE, |(bin, _)| bin);
    }
}
