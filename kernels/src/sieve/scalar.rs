//! The reference of the sieve: every other level returns the same bits.

use super::hot_keys::HotKeys;
use crate::simd::Key;

/// See [`sift`](super::sift).
pub(super) fn sift<K: Key>(hot: HotKeys<'_, K>, items: &[K], missed: &mut [K]) -> usize {
    let mut end = 0;
    for item in items {
        if let Some(key) = hot.keys.iter().position(|key| key == item) {
            hot.hits[key] = hot.hits[key].saturating_add(1);
        } else {
            missed[end] = *item;
            end += 1;
        }
    }
    end
}

/// See [`sift_weighted`](super::sift_weighted).
pub(super) fn sift_weighted<K: Key>(
    hot: HotKeys<'_, K>,
    items: &[K],
    weights: &[u64],
    missed: &mut [K],
    missed_weights: &mut [u64],
) -> usize {
    let mut end = 0;
    for (item, weight) in items.iter().zip(weights) {
        if let Some(key) = hot.keys.iter().position(|key| key == item) {
            hot.hits[key] = hot.hits[key].saturating_add(*weight);
        } else {
            (missed[end], missed_weights[end]) = (*item, *weight);
            end += 1;
        }
    }
    end
}
