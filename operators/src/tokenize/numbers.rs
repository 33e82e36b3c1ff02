//! Numbers for the tokens of texts.
//!
//! A token waits until some more have come, and its place in the dictionary is fetched meanwhile:
//! misses of the cache overlap instead of adding up.

use std::borrow::Cow;

use arrow_array::RecordBatch;
use trommel_engine::operator::Counters;

use super::TokenizeError;
use super::dictionary::Dictionary;
use super::token::Token;
use crate::columns::sets_of_texts;
use crate::long;
use crate::texts::{TextHash, TextKey, TextTable};

/// Tokens that wait: more than misses of the cache can overlap.
const WAITING_MAX: usize = 64;
/// A dictionary of the whole stream keeps a longer token by a name of this length.
const TOKEN_BYTES_MAX: usize = 1024;

/// Known tokens.
enum Known {
    /// The same for the whole stream.
    OfStream(Box<Dictionary>),
    /// Others for each batch, which carries the texts.
    OfBatch { texts: TextTable, hash: TextHash },
}

impl Known {
    /// The texts in which a token is looked for first, and their hash.
    #[inline(always)]
    fn texts(&self) -> (&TextTable, &TextHash) {
        match self {
            Self::OfStream(dictionary) => dictionary.texts(),
            Self::OfBatch { texts, hash } => (texts, hash),
        }
    }
}

/// Numbers tokens in the order of their first occurrence.
pub(super) struct TokenNumbers {
    known: Known,
    /// Keys of the tokens that have no number yet.
    waiting: Vec<TextKey>,
    /// Those tokens among them that are not in their keys, one after the other.
    long: String,
}

impl TokenNumbers {
    pub(super) fn of_stream(dictionary: Dictionary) -> Self {
        Self::new(Known::OfStream(Box::new(dictionary)))
    }

    pub(super) fn of_batch() -> Self {
        Self::new(Known::OfBatch { texts: TextTable::default(), hash: TextHash::new() })
    }

    fn new(known: Known) -> Self {
        Self { known, waiting: Vec::with_capacity(WAITING_MAX), long: String::new() }
    }

    /// Appends a place for the number of `token` to `numbers`. [`Self::finish`] fills the last
    /// places.
    #[inline(always)]
    pub(super) fn add(
        &mut self,
        token: Token<'_>,
        numbers: &mut Vec<u32>,
    ) -> Result<(), TokenizeError> {
        let (texts, hash) = self.known.texts();
        match hash.key_of_first(token.len(), token.bytes_and_more()) {
            Some(key) => {
                texts.prefetch(&key);
                self.waiting.push(key);
            }
            None => self.wait(token.as_str()),
        }
        numbers.push(0);
        if self.waiting.len() == WAITING_MAX { self.finish(numbers) } else { Ok(()) }
    }

    /// Lets a token wait that is long, or at the end of the text that it is in.
    #[inline(never)]
    fn wait(&mut self, token: &str) {
        let is_named = token.len() > TOKEN_BYTES_MAX && matches!(self.known, Known::OfStream(_));
        let token: Cow<'_, str> =
            if is_named { long::name(token, TOKEN_BYTES_MAX).into() } else { token.into() };
        let (texts, hash) = self.known.texts();
        let key = hash.key(&token);
        texts.prefetch(&key);
        if key.long_len().is_some() {
            self.long.push_str(&token);
        }
        self.waiting.push(key);
    }

    /// Writes the numbers of the tokens that wait to the last places of `numbers`.
    #[inline(never)]
    pub(super) fn finish(&mut self, numbers: &mut [u32]) -> Result<(), TokenizeError> {
        let Self { known, waiting, long } = self;
        let first = numbers.len() - waiting.len();
        let mut long_rest = long.as_str();
        for (number, key) in numbers[first..].iter_mut().zip(&*waiting) {
            let mut text = "";
            if let Some(len) = key.long_len() {
                (text, long_rest) = long_rest.split_at(len);
            }
            *number = match known {
                Known::OfStream(dictionary) => dictionary.number(key, text)?,
                Known::OfBatch { texts, hash } => texts.number_of(key, text, hash),
            };
        }
        waiting.clear();
        long.clear();
        Ok(())
    }

    /// Bytes of the texts that the next batch carries.
    pub(super) fn bytes(&self) -> usize {
        match &self.known {
            Known::OfStream(_) => 0,
            Known::OfBatch { texts, .. } => texts.text_bytes(),
        }
    }

    /// A batch of sets, with the texts of their tokens if it carries them.
    pub(super) fn name(&mut self, sets: RecordBatch) -> RecordBatch {
        match &mut self.known {
            Known::OfStream(_) => sets,
            Known::OfBatch { texts, .. } => {
                let count = u32::try_from(texts.len()).expect("fewer than 2^32 texts");
                let named = sets_of_texts(&sets, texts.column(0..count));
                texts.clear();
                named
            }
        }
    }

    pub(super) fn counters(&self) -> Counters {
        match &self.known {
            Known::OfStream(dictionary) => vec![
                ("distinct_tokens", dictionary.numbered()),
                ("tokens_forgotten", dictionary.forgotten()),
            ],
            Known::OfBatch { .. } => Counters::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;
    use trommel_engine::memory::MemoryBudget;

    use super::super::dictionary::Limits;
    use super::*;

    fn all() -> [TokenNumbers; 2] {
        let limits = Limits { tokens_max: 1 << 20, bytes_max: 1 << 30, forgets: true };
        let dictionary = Dictionary::new(limits, MemoryBudget::new(1 << 30));
        [TokenNumbers::of_stream(dictionary), TokenNumbers::of_batch()]
    }

    #[test]
    fn long_tokens_have_names() {
        let [mut of_stream, _] = all();
        let mut numbers = Vec::new();
        for _ in 0..2 {
            for i in 0..100 {
                let token = format!("{}{i}", "x".repeat(100_000));
                of_stream.add(Token::of(&token), &mut numbers).unwrap();
            }
        }
        assert!(of_stream.long.len() <= WAITING_MAX * TOKEN_BYTES_MAX);
        of_stream.finish(&mut numbers).unwrap();
        assert_eq!(numbers, [0..100, 0..100].into_iter().flatten().collect::<Vec<u32>>());
    }

    proptest! {
        #[test]
        fn numbers_are_those_of_a_map(
            texts in proptest::collection::vec(
                proptest::collection::vec("[ab]{0,3}|[a-c]{13,18}|é{7,9}", 0..200), 0..4),
        ) {
            for mut tokens in all() {
                let (mut numbers, mut expected) = (Vec::new(), Vec::new());
                let mut known = HashMap::new();
                for text in &texts {
                    for token in text {
                        // With other bytes after it, and without.
                        let more = format!("{token}{}", "?".repeat(known.len() % 20));
                        tokens.add(Token::within(&more, 0..token.len()), &mut numbers).unwrap();
                        let next = u32::try_from(known.len()).unwrap();
                        expected.push(*known.entry(token).or_insert(next));
                    }
                    tokens.finish(&mut numbers).unwrap();
                    prop_assert_eq!(&numbers, &expected);
                }
            }
        }
    }
}
