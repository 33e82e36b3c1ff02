//! The choice of items for a vertical filter.
//!
//! A key is worth its compares if its share of a window is at least a [`KEY_SHARE`]th. The filter
//! is worth its pass over the items if all its keys together have a least share, which is larger
//! for [wide items](WIDE_SHARE).

use std::cmp::Reverse;

use trommel_kernels::sieve::KEYS_MAX;

/// The least share of a key, as a fraction of 1.
const KEY_SHARE: u64 = 64;

/// The least share of all keys, as a fraction of 1, for items of 32 bits without weights.
pub(crate) const NARROW_SHARE: u64 = 4;

/// The least share of all keys for items of 64 bits, and for weights: a register holds half as many
/// of these. With a share of .43 (Zipf 1.2), the cells alone take less time.
pub(crate) const WIDE_SHARE: u64 = 2;

/// The candidates that are worth a filter, the most frequent first: none, or up to [`KEYS_MAX`]
/// candidates that together have at least one in `share` of a window of `window` items. Each
/// candidate comes with its count in the window. Among equals, the first candidates are chosen.
pub(crate) fn hottest<T>(
    window: u64,
    share: u64,
    candidates: impl Iterator<Item = (u64, T)>,
) -> impl Iterator<Item = T> {
    let is_worth_it = |seen: u64| seen > 0 && seen >= window / KEY_SHARE;
    let mut hottest: Vec<(u64, T)> = candidates.filter(|&(seen, _)| is_worth_it(seen)).collect();
    hottest.sort_by_key(|&(seen, _)| Reverse(seen));
    hottest.truncate(KEYS_MAX);
    let covered = hottest.iter().fold(0_u64, |sum, (seen, _)| sum.saturating_add(*seen));
    if covered < window / share {
        hottest.clear();
    }
    hottest.into_iter().map(|(_, key)| key)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(window: u64, share: u64, seen: &[u64]) -> Vec<usize> {
        hottest(window, share, seen.iter().enumerate().map(|(key, &seen)| (seen, key))).collect()
    }

    #[test]
    fn a_key_needs_a_64th_and_the_filter_its_share() {
        assert_eq!(chosen(6400, 4, &[100, 2000, 99, 0]), [1, 0]);
        assert_eq!(chosen(6400, 4, &[1500, 99]), [0; 0], "together below a quarter");
        assert_eq!(chosen(6400, 4, &[1500, 100]), [0, 1]);
        assert_eq!(chosen(6400, 2, &[3000, 199]), [0; 0], "together below a half");
        assert_eq!(chosen(6400, 2, &[3000, 200]), [0, 1]);
    }

    #[test]
    fn no_more_keys_than_the_filter_has_registers() {
        assert_eq!(chosen(640, 4, &[64; 10]), [0, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(chosen(0, 4, &[0; 3]), [0; 0]);
    }
}
