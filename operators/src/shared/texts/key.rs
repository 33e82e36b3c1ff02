//! Keys of texts: a short text is its own key, and a longer text has its hash and length as key.

use rapidhash::v3::{RapidSecrets, rapidhash_v3_inline, rapidhash_v3_seeded};

use crate::shared::names::secret::random_seed;

/// Bytes of a machine word.
const WORD: usize = 8;
/// Longest text that is its own key.
pub(crate) const SHORT_MAX: usize = 2 * WORD - 1;
/// Bits below the last byte of a key: the length of a short text, or [`LONG`].
const LAST: u32 = u64::BITS - u8::BITS;
/// Last byte of the key of a longer text.
const LONG: u64 = 0xff;

/// Masks of the first bytes of a key, by the number of bytes: a look-up takes less time than shifts
/// of two words.
static FIRST: [u128; SHORT_MAX + 1] = {
    let mut masks = [0; SHORT_MAX + 1];
    let mut len = 1;
    while len <= SHORT_MAX {
        masks[len] = masks[len - 1] << u8::BITS | 0xff;
        len += 1;
    }
    masks
};

/// A hash with its own secret, so that nobody can choose texts that collide.
#[derive(Clone, Copy)]
pub(crate) struct TextHash(RapidSecrets);

impl TextHash {
    pub(crate) fn new() -> Self {
        Self::from_seed(random_seed())
    }

    pub(crate) fn from_seed(seed: u64) -> Self {
        Self(RapidSecrets::seed(seed))
    }

    /// The key of a text under this hash, together with the hash of the key.
    #[inline(always)]
    pub(crate) fn key(&self, text: &str) -> TextKey {
        let key = Key::of(text.as_bytes(), self);
        TextKey { key, hash: self.hash(key) }
    }

    /// The key of the first `len` bytes of a text that has the bytes `more`.
    #[inline(always)]
    pub(crate) fn key_of_first(&self, len: usize, more: &[u8]) -> Option<TextKey> {
        let key = Key::of_first(len, more)?;
        Some(TextKey { key, hash: self.hash(key) })
    }

    /// The hash of a key.
    #[inline]
    pub(crate) fn hash(&self, key: Key) -> u64 {
        if key.is_long() {
            return key.0[0];
        }
        // The length is fixed, so the compiler leaves only two multiplications.
        rapidhash_v3_inline::<true, false, false>(&key.to_bytes(), &self.0)
    }
}

/// The key of a text. Equal keys mean equal texts, except for long texts with the same hash and
/// length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Key([u64; 2]);

impl Key {
    /// The key of no text, since no text has the length that the key states.
    pub(crate) const NONE: Self = Self([u64::MAX; 2]);

    /// The key of a text under `hash`.
    // A call would return the key in memory, written in halves and read as a whole, and the
    // processor would wait for that.
    #[inline(always)]
    pub(crate) fn of(text: &[u8], hash: &TextHash) -> Self {
        if text.len() <= SHORT_MAX {
            return Self::of_short(text);
        }
        Self::long(rapidhash_v3_seeded(text, &hash.0), text.len())
    }

    /// The key of the first `len` bytes of a text that has the bytes `more`; `None` if the text is
    /// not short, or if `more` has too few bytes.
    // The code has no branch, because the lengths of words cannot be predicted.
    #[inline(always)]
    pub(crate) fn of_first(len: usize, more: &[u8]) -> Option<Self> {
        let bytes = u128::from_le_bytes(*more.first_chunk()?) & FIRST.get(len)?;
        let Self([first, last]) = Self::from_bytes(bytes.to_le_bytes());
        Some(Self([first, last | (len as u64) << LAST]))
    }

    /// The key of a long text with this hash and length.
    pub(crate) fn long(hash: u64, len: usize) -> Self {
        Self([hash, LONG << LAST | len as u64])
    }

    /// The key that has these bytes.
    #[inline(always)]
    pub(crate) fn from_bytes(bytes: [u8; 2 * WORD]) -> Self {
        let (words, _) = bytes.as_chunks();
        Self([words[0], words[1]].map(u64::from_le_bytes))
    }

    /// The key as 16 bytes: for a short text, the bytes of the text and then the length.
    #[inline(always)]
    pub(crate) fn to_bytes(self) -> [u8; 2 * WORD] {
        let Self([first, last]) = self;
        (u128::from(last) << 64 | u128::from(first)).to_le_bytes()
    }

    #[inline(always)]
    pub(crate) fn words(self) -> [u64; 2] {
        self.0
    }

    /// The key with these words.
    #[inline(always)]
    pub(crate) fn from_words(words: [u64; 2]) -> Self {
        Self(words)
    }

    /// The key of a text of at most [`SHORT_MAX`] bytes: the bytes, zeros, and the length.
    #[inline(always)]
    pub(crate) fn of_short(bytes: &[u8]) -> Self {
        let len = bytes.len();
        // The loads from both ends may overlap, and have the same bytes where they overlap.
        let [first, last] = match (bytes.first_chunk(), bytes.last_chunk()) {
            (Some(first), Some(last)) => {
                let last = u64::from_le_bytes(*last) >> (8 * (SHORT_MAX - len)) >> 8;
                [u64::from_le_bytes(*first), last]
            }
            _ => [Self::of_less_than_word(bytes), 0],
        };
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

    /// Whether another text may have this key.
    #[inline]
    pub(crate) fn is_long(self) -> bool {
        self.0[1] >> LAST == LONG
    }

    /// The length of a long text, from its key.
    #[inline]
    pub(crate) fn long_len(self) -> Option<usize> {
        let len = usize::try_from(self.0[1] & ((1 << LAST) - 1)).expect("a length of memory");
        self.is_long().then_some(len)
    }
}

/// The key of a text, and the hash of the key.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TextKey {
    pub(crate) key: Key,
    pub(crate) hash: u64,
}

impl TextKey {
    /// Bytes of the text, if the key does not hold the text.
    #[inline]
    pub(crate) fn long_len(&self) -> Option<usize> {
        self.key.long_len()
    }

    /// Bytes of the text.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.long_len().unwrap_or(usize::from(self.key.to_bytes()[SHORT_MAX]))
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
            assert_eq!(key.len(), len);
            assert_eq!(hash.hash(key.key), key.hash);
            assert_eq!(Key::from_bytes(key.key.to_bytes()), key.key);
            assert_eq!(Key::from_words(key.key.words()), key.key);
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
