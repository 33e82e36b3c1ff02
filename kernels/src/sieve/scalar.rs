//! The reference of the sieve: every other level returns the same bits.

use crate::simd::Key;

/// See [`sift`](super::sift).
pub(super) fn sift<K: Key>(keys: &[K], items: &[K], hits: &mut [u64], missed: &mut [K]) -> usize {
    let mut end = 0;
    for item in items {
        if let Some(key) = keys.iter().position(|key| key == item) {
            hits[key] = hits[key].saturating_add(1);
        } else {
            missed[end] = *item;
            end += 1;
        }
    }
    end
}
