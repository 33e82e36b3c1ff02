//! Shortening of long text items: a name of bounded length stands for each long item.
//!
//! ```text
//! the item, 200,000 bytes  ──►  its beginning…#0123456789abcdef0123456789abcdef
//! ```
//!
//! A summary stores the items that it monitors, so its memory grows with their length as well as
//! their number. A name is the beginning of the item, followed by 128 bits of hash over the whole
//! item: among n different items with the same beginning, two items share a name with a probability
//! of about n² / 2^129. The hash is the same in every run, so states can be merged. The hash is not
//! cryptographic: an adversary who chooses the items can make two items count as one. Such items
//! cannot make counting slow, since a name is hashed with the secret of the summary, as any text
//! is.

use arrow_array::builder::StringBuilder;
use arrow_array::{Array, StringArray};
use rapidhash::v3::{RapidSecrets, rapidhash_v3, rapidhash_v3_seeded};

/// Separates the beginning of the item from its hash.
const MARK: &str = "…#";
/// Bytes of the mark and of the hash in hexadecimal digits.
const TAIL_BYTES: usize = MARK.len() + 32;
/// Secrets of the second 64 bits of the hash; fixed, so that names never change.
const SECRETS: RapidSecrets = RapidSecrets::seed(0x6c6f_6e67_2069_7465);

/// Replaces items longer than `bytes_max` bytes by names of at most `bytes_max` bytes. Returns
/// the new column and the number of names; `None` if no item is too long.
pub(crate) fn shorten(items: &StringArray, bytes_max: usize) -> Option<(StringArray, u64)> {
    // Lengths follow from the offsets alone; the text is read only if an item is too long.
    let limit = i32::try_from(bytes_max).unwrap_or(i32::MAX);
    let is_long = |pair: &[i32]| u32::from(pair[1] - pair[0] > limit);
    let count: u32 = items.value_offsets().windows(2).map(is_long).sum();
    // In the usual case no item is too long, and nothing is copied.
    if count == 0 {
        return None;
    }
    let mut short = StringBuilder::with_capacity(items.len(), count as usize * bytes_max);
    for item in items {
        match item {
            Some(item) if item.len() > bytes_max => short.append_value(name(item, bytes_max)),
            item => short.append_option(item),
        }
    }
    Some((short.finish(), count.into()))
}

/// Name of at most `bytes_max` bytes for an item that has more bytes.
pub(crate) fn name(item: &str, bytes_max: usize) -> String {
    let beginning = item.floor_char_boundary(bytes_max - TAIL_BYTES);
    format!("{}{}", &item[..beginning], tail(item))
}

/// Mark and hash of `item`, [`TAIL_BYTES`] bytes.
fn tail(item: &str) -> String {
    let (high, low) =
        (rapidhash_v3(item.as_bytes()), rapidhash_v3_seeded(item.as_bytes(), &SECRETS));
    format!("{MARK}{high:016x}{low:016x}")
}

/// True if `name` stands for the longer `item`.
pub(crate) fn stands_for(name: &str, item: &str) -> bool {
    let Some(beginning) = name.len().checked_sub(TAIL_BYTES) else { return false };
    name.len() < item.len()
        && name.is_char_boundary(beginning)
        && item.starts_with(&name[..beginning])
        && name[beginning..] == tail(item)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_bounded_distinct_and_recognised() {
        let long = "é".repeat(1000);
        let other = format!("{}x", &long[..1998]);
        for bytes_max in 64..70 {
            let items = StringArray::from(vec![Some("short"), Some(&long), None, Some(&other)]);
            let (short, count) = shorten(&items, bytes_max).unwrap();
            assert_eq!((count, short.value(0), short.is_null(2)), (2, "short", true));
            assert!(short.value(1).len() <= bytes_max && short.value(1).len() > bytes_max - 2);
            assert_ne!(short.value(1), short.value(3));
            assert!(stands_for(short.value(1), &long) && !stands_for(short.value(1), &other));
        }
        assert!(!stands_for("short", &long) && !stands_for(&long, "short"));
        let fits = StringArray::from(vec!["x".repeat(64)]);
        assert!(shorten(&fits, 64).is_none() && shorten(&fits, 63).is_some());
    }

    /// States are merged across versions, so a name never changes.
    #[test]
    fn a_name_is_the_same_for_ever() {
        let item = "abc".repeat(100);
        assert_eq!(
            name(&item, 64),
            "abcabcabcabcabcabcabcabcabca…#6b352fb4e6736ea61a7e10bb1f13b716"
        );
    }
}
