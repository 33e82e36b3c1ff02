//! Keys: short texts as they are, longer ones by hash and length.

use rapidhash::v3::{RapidSecrets, rapidhash_v3_inline, rapidhash_v3_seeded};

use crate::secret::random_seed;

/// Bytes of a word.
const WORD: usize = 8;
/// Longest text that is its own key.
const SHORT_MAX: usize = 2 * WORD - 1;
/// Bits below the last byte of a key: the length of a short text, or [`LONG`].
const LAST: u32 = u64::BITS - u8::BITS;
/// Last byte of the key of a longer text.
const LONG: u64 = 0xff;

/// A hash with a secret of its own, so that nobody can choose texts that collide.
pub(crate) struct TextHash(RapidSecrets);

impl TextHash {
    pub(crate) fn new() -> Self {
        Self(RapidSecrets::seed(random_seed()))
    }

    /// The key of a text under this hash.
    // A call would return the key in memory, written by halves and read as a whole, for which the
    // processor waits.
    #[inline(always)]
    pub(crate) fn key(&self, text: &str) -> TextKey {
        let bytes = text.as_bytes();
        if bytes.len() <= SHORT_MAX {
            let key = Key::of_short(bytes);
            return TextKey { key, hash: self.hash(key) };
        }
        let hash = rapidhash_v3_seeded(bytes, &self.0);
        TextKey { key: Key([hash, LONG << LAST | bytes.len() as u64]), hash }
    }

    /// The key of the first `len` bytes of a text, which has `more` bytes.
    #[inline(always)]
    pub(crate) fn key_of_first(&self, len: usize, more: &[u8]) -> Option<TextKey> {
        let bytes = more.first_chunk().filter(|_| len <= SHORT_MAX)?;
        let key = Key::of_first(bytes, len);
        Some(TextKey { key, hash: self.hash(key) })
    }

    /// The hash of a key.
    #[inline]
    pub(super) fn hash(&self, key: Key) -> u64 {
        let Key([first, last]) = key;
        if key.is_long() {
            return first;
        }
        let bytes = (u128::from(last) << 64 | u128::from(first)).to_le_bytes();
        // Of a fixed length: the compiler leaves two multiplications.
        rapidhash_v3_inline::<true, false, false>(&bytes, &self.0)
    }
}

/// Equal if texts are, but for long texts of one hash and length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Key([u64; 2]);

impl Key {
    /// The key of no text: none is as long as it says.
    pub(super) const NONE: Self = Self([u64::MAX; 2]);

    /// The bytes of a text of at most [`SHORT_MAX`], zeros, and the length.
    #[inline(always)]
    fn of_short(bytes: &[u8]) -> Self {
        let len = bytes.len();
        // Loads at both ends overlap; where they do, they have the same bytes.
        let [first, last] = match (bytes.first_chunk(), bytes.last_chunk()) {
            (Some(first), Some(last)) => {
                let last = u64::from_le_bytes(*last) >> (8 * (SHORT_MAX - len)) >> 8;
                [u64::from_le_bytes(*first), last]
            }
            _ => [Self::of_less_than_word(bytes), 0],
        };
        Self([first, last | (len as u64) << LAST])
    }

    /// The same for the first `len` bytes of more. Without a branch, because the lengths of words
    /// cannot be foreseen.
    #[inline(always)]
    fn of_first(bytes: &[u8; 2 * WORD], len: usize) -> Self {
        let bytes = (u128::from_le_bytes(*bytes) & !(u128::MAX << (8 * len))).to_le_bytes();
        let (words, _) = bytes.as_chunks();
        let [first, last] = [words[0], words[1]].map(u64::from_le_bytes);
        Self([first, last | (len as u64) << LAST])
    }

    #[inline(always)]
    fn of_less_than_word(bytes: &[u8]) -> u64 {
        let len = bytes.len();
        match (bytes.first_chunk(), bytes.last_chunk(), bytes) {
            (Some(first), Some(last), _) => {
                let [first, last] = [first, last].map(|half| u64::from(u32::from_le_bytes(*half)));
                first | last << (8 * (len - WORD / 2))
            }
            (.., [first, .., last]) => {
                let middle = bytes[len / 2];
                let [first, middle, last] = [*first, middle, *last].map(u64::from);
                first | middle << (8 * (len / 2)) | last << (8 * (len - 1))
            }
            (.., [one]) => u64::from(*one),
            (.., []) => 0,
        }
    }

    #[inline]
    pub(super) fn is_long(self) -> bool {
        self.0[1] >> LAST == LONG
    }
}

/// The key of a text, and its hash.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TextKey {
    pub(super) key: Key,
    pub(super) hash: u64,
}

impl TextKey {
    /// Bytes of the text, if it is not in the key.
    #[inline]
    pub(crate) fn long_len(&self) -> Option<usize> {
        let Key([_, last]) = self.key;
        let len = usize::try_from(last & ((1 << LAST) - 1)).expect("a length of memory");
        self.key.is_long().then_some(len)
    }

    /// Calls `then` with the text, which is `long` if it is not in the key.
    #[inline]
    pub(crate) fn with_text<T>(&self, long: &str, then: impl FnOnce(&str) -> T) -> T {
        if self.key.is_long() {
            return then(long);
        }
        let Key([first, last]) = self.key;
        let bytes = (u128::from(last) << 64 | u128::from(first)).to_le_bytes();
        let len = usize::from(bytes[SHORT_MAX]);
        then(std::str::from_utf8(&bytes[..len]).expect("the bytes of a text"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn short_texts_are_their_own_keys() {
        let hash = TextHash::new();
        let text = "abcdefghijklmnopqrst";
        for len in 0..=text.len() {
            let key = hash.key(&text[..len]);
            assert_eq!(key.long_len(), (len > SHORT_MAX).then_some(len));
            key.with_text(&text[..len], |found| assert_eq!(found, &text[..len]));
            assert_eq!(hash.hash(key.key), key.hash);
            let of_first = hash.key_of_first(len, text.as_bytes());
            assert_eq!(of_first.is_some(), len <= SHORT_MAX);
            assert!(of_first.is_none_or(|first| (first.key, first.hash) == (key.key, key.hash)));
        }
    }

    proptest! {
        #[test]
        fn keys_are_equal_if_texts_are(left in "[a\0é]{0,18}", right in "[a\0é]{0,18}") {
            let hash = TextHash::new();
            let (keys, texts) = ([&left, &right].map(|text| hash.key(text).key), left == right);
            prop_assert_eq!(keys[0] == keys[1], texts);
        }
    }
}
