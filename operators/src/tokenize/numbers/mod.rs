//! Numbers for the tokens of texts.
//!
//! A token is looked up after some more tokens have come, and its place in the table is fetched
//! into the cache meanwhile. So misses of the cache overlap instead of adding up.

pub(super) mod dictionary;

use std::convert::Infallible;
use std::mem;

use arrow_array::StringArray;

use self::dictionary::Dictionary;
use super::TokenizeError;
use crate::shared::names::long;
use crate::shared::texts::{TextHash, TextKey, TextTable};
use crate::shared::tokens::Token;

/// Number of tokens between the token whose place is fetched and the token that is looked up: more
/// than the number of cache misses that can overlap.
const AHEAD: usize = 64;
/// Maximum bytes of a token in a dictionary of the whole stream, which keeps a longer token by a
/// name of this length.
const TOKEN_BYTES_MAX: usize = 1024;

/// Keys of tokens, in their order.
#[derive(Default)]
pub(crate) struct TokenKeys {
    keys: Vec<TextKey>,
    /// The texts of tokens that their keys do not hold, one after the other.
    long: String,
}

impl TokenKeys {
    /// Number of tokens.
    pub(crate) fn len(&self) -> usize {
        self.keys.len()
    }

    /// Bytes of memory.
    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&self.keys[..]) + self.long.len()
    }

    /// Adds a token by its key under `hash`, and calls `then` with the key.
    // Each way pushes its own key. If both ways met in one variable, a key would be written to
    // memory by halves and read as a whole, for which the processor waits.
    #[inline(always)]
    pub(crate) fn add(&mut self, token: Token<'_>, hash: &TextHash, then: impl Fn(&TextKey)) {
        match hash.key_of_first(token.len(), token.bytes_and_more()) {
            Some(key) => {
                then(&key);
                self.keys.push(key);
            }
            None => self.add_any(token.as_str(), hash, then),
        }
    }

    /// Adds a token that is long, or stands at the end of its text.
    #[inline(never)]
    fn add_any(&mut self, token: &str, hash: &TextHash, then: impl Fn(&TextKey)) {
        let key = hash.key(token);
        then(&key);
        if key.long_len().is_some() {
            self.long.push_str(token);
        }
        self.keys.push(key);
    }

    /// Calls `with` with the key of each token and, if the key does not hold the token, with the
    /// token.
    #[inline(always)]
    fn try_for_each<E>(
        &self,
        mut with: impl FnMut(&TextKey, &str) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut long_rest = self.long.as_str();
        self.keys.iter().try_for_each(|key| {
            let mut text = "";
            if let Some(len) = key.long_len() {
                (text, long_rest) = long_rest.split_at(len);
            }
            with(key, text)
        })
    }

    /// Returns all tokens so far. The vectors of the next tokens have room for about as many,
    /// because their number is probably similar.
    pub(crate) fn take(&mut self) -> Self {
        let [keys, long] = [self.keys.len(), self.long.len()].map(|len| len + len / 8);
        let next = Self { keys: Vec::with_capacity(keys), long: String::with_capacity(long) };
        mem::replace(self, next)
    }

    fn clear(&mut self) {
        self.keys.clear();
        self.long.clear();
    }

    /// Adds the key of a token, or of the name of a long token.
    #[inline(always)]
    pub(crate) fn add_named(&mut self, token: Token<'_>, hash: &TextHash) {
        if token.len() <= TOKEN_BYTES_MAX {
            self.add(token, hash, |_| ());
        } else {
            self.add_any(&long::name(token.as_str(), TOKEN_BYTES_MAX), hash, |_| ());
        }
    }

    /// Appends the numbers of all tokens in `dictionary` to `numbers`.
    ///
    /// # Errors
    /// If the dictionary is full.
    pub(crate) fn number(
        &self,
        dictionary: &mut Dictionary,
        numbers: &mut Vec<u32>,
    ) -> Result<(), TokenizeError> {
        let mut ahead = self.keys.iter();
        ahead.by_ref().take(AHEAD).for_each(|key| dictionary.prefetch(key));
        numbers.reserve(self.len());
        self.try_for_each(|key, text| {
            if let Some(later) = ahead.next() {
                dictionary.prefetch(later);
            }
            numbers.push(dictionary.number(key, text)?);
            Ok(())
        })
    }
}

/// The numbers of the tokens of a batch, from 0 in the order of their first occurrence.
pub(crate) struct BatchNumbers {
    texts: TextTable,
    hash: TextHash,
    /// Tokens that have no number yet. The last places of a vector of numbers belong to these
    /// tokens.
    waiting: TokenKeys,
}

impl BatchNumbers {
    pub(crate) fn new() -> Self {
        let (texts, hash) = (TextTable::default(), TextHash::new());
        Self { texts, hash, waiting: TokenKeys::default() }
    }

    /// Appends a place for the number of `token` to `numbers`. [`Self::finish`] fills the last
    /// places.
    #[inline(always)]
    pub(crate) fn add(&mut self, token: Token<'_>, numbers: &mut Vec<u32>) {
        let Self { texts, hash, waiting } = self;
        waiting.add(token, hash, |key| texts.prefetch(key));
        numbers.push(0);
        if self.waiting.len() == AHEAD {
            self.finish(numbers);
        }
    }

    /// Writes the numbers of the waiting tokens to the last places of `numbers`.
    #[inline(never)]
    pub(crate) fn finish(&mut self, numbers: &mut [u32]) {
        let Self { texts, hash, waiting } = self;
        let first = numbers.len() - waiting.len();
        let mut places = numbers[first..].iter_mut();
        let Ok(()) = waiting.try_for_each(|key, text| {
            *places.next().expect("each has a place") = texts.number_of(key, text, hash);
            Ok::<(), Infallible>(())
        });
        waiting.clear();
    }

    /// Bytes of the distinct tokens so far.
    pub(crate) fn text_bytes(&self) -> usize {
        self.texts.text_bytes()
    }

    /// Returns the distinct tokens in the order of their numbers. The next batch begins without
    /// tokens.
    pub(crate) fn take_texts(&mut self) -> StringArray {
        let count = u32::try_from(self.texts.len()).expect("fewer than 2^32 texts");
        let texts = self.texts.column(0..count);
        self.texts.clear();
        texts
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;
    use trommel_engine::memory::MemoryBudget;

    use super::dictionary::DictionaryLimits;
    use super::*;

    fn dictionary() -> Dictionary {
        let limits = DictionaryLimits { tokens_max: 1 << 20, bytes_max: 1 << 30, forgets: true };
        Dictionary::new(limits, MemoryBudget::new(1 << 30))
    }

    #[test]
    fn long_tokens_have_names() {
        let (mut dictionary, mut keys) = (dictionary(), TokenKeys::default());
        for _ in 0..2 {
            for i in 0..100 {
                let token = format!("{}{i}", "x".repeat(100_000));
                keys.add_named(Token::of(&token), &dictionary.hash());
            }
        }
        assert!(keys.long.len() <= 200 * TOKEN_BYTES_MAX);
        let mut numbers = Vec::new();
        keys.number(&mut dictionary, &mut numbers).unwrap();
        assert_eq!(numbers, [0..100, 0..100].into_iter().flatten().collect::<Vec<u32>>());
    }

    proptest! {
        #[test]
        fn numbers_are_those_of_a_map(
            texts in proptest::collection::vec(
                proptest::collection::vec("[ab]{0,3}|[a-c]{13,18}|é{7,9}", 0..200), 0..4),
        ) {
            let (mut dictionary, mut of_batch) = (dictionary(), BatchNumbers::new());
            let mut known = HashMap::new();
            for tokens in &texts {
                let (mut keys, mut in_batch) = (TokenKeys::default(), Vec::new());
                for token in tokens {
                    // The token stands before other bytes, and at the end of its text.
                    let more = format!("{token}{}", "?".repeat(keys.len() % 20));
                    let token = Token::within(&more, 0..token.len());
                    keys.add_named(token, &dictionary.hash());
                    of_batch.add(token, &mut in_batch);
                }
                of_batch.finish(&mut in_batch);
                let mut numbers = Vec::new();
                keys.number(&mut dictionary, &mut numbers).unwrap();
                let distinct = of_batch.take_texts();
                prop_assert_eq!((numbers.len(), in_batch.len()), (tokens.len(), tokens.len()));
                let mut seen = HashMap::new();
                for ((token, number), in_batch) in tokens.iter().zip(numbers).zip(in_batch) {
                    let next = u32::try_from(known.len()).unwrap();
                    prop_assert_eq!(number, *known.entry(token).or_insert(next));
                    let next = u32::try_from(seen.len()).unwrap();
                    prop_assert_eq!(in_batch, *seen.entry(token).or_insert(next));
                    prop_assert_eq!(distinct.value(in_batch as usize), token);
                }
            }
        }
    }
}
