//! Tables of distinct texts.

use std::ops::Range;

use arrow_array::StringArray;

use super::index::TextIndex;
use super::key::{Key, SHORT_MAX, TextHash, TextKey};
use crate::shared::budget::bytes_with;
use crate::shared::columns::TextsBuilder;

/// Distinct texts, numbered in the order in which the texts are added.
///
/// The key of a short text holds the text. A buffer holds all longer texts. The look-up of a known
/// text allocates nothing.
#[derive(Debug, Default, Clone)]
pub(crate) struct TextTable {
    numbers: TextIndex,
    /// The key of each text. The key of a long text has the place of the text among the long texts
    /// instead of the length.
    keys: Vec<[u8; SHORT_MAX + 1]>,
    /// The long texts, one after the other.
    long: String,
    /// End of each long text.
    long_ends: Vec<usize>,
    text_bytes: usize,
}

impl TextTable {
    /// Fetches into the cache the memory that [`Self::find`] will read.
    #[inline]
    pub(crate) fn prefetch(&self, key: &TextKey) {
        self.numbers.prefetch(key);
    }

    /// The number of the text with this key, if the text is known. `long` is the text, for a key
    /// that does not hold the text.
    #[inline]
    pub(crate) fn find(&self, key: &TextKey, long: &str) -> Option<u32> {
        self.numbers.find(key, |number| self.bytes_of(number) == long.as_bytes())
    }

    /// Adds an unknown text with this key. `long` is the text, for a key that does not hold the
    /// text.
    ///
    /// # Panics
    /// If there are 2^32 texts.
    pub(crate) fn add(&mut self, key: &TextKey, long: &str, hasher: &TextHash) -> u32 {
        let number = u32::try_from(self.keys.len()).expect("fewer than 2^32 texts");
        self.numbers.add(key, number, hasher);
        let kept = match key.key.long_len() {
            None => key.key,
            Some(_) => {
                self.long.push_str(long);
                self.long_ends.push(self.long.len());
                Key::long(key.hash, self.long_ends.len() - 1)
            }
        };
        self.keys.push(kept.to_bytes());
        self.text_bytes += key.len();
        number
    }

    /// The number of the text with this key. An unknown text is added. `long` is the text, for a
    /// key that does not hold the text.
    #[inline]
    pub(crate) fn number_of(&mut self, key: &TextKey, long: &str, hasher: &TextHash) -> u32 {
        self.find(key, long).unwrap_or_else(|| self.add(key, long, hasher))
    }

    /// The number of `text`. An unknown text is added.
    #[inline]
    pub(crate) fn number(&mut self, text: &str, hasher: &TextHash) -> u32 {
        self.number_of(&hasher.key(text), text, hasher)
    }

    /// The bytes of the text with this number.
    #[inline]
    pub(crate) fn bytes_of(&self, number: u32) -> &[u8] {
        let (text, part) = self.text_of(number);
        &text[part]
    }

    /// The text with this number.
    pub(crate) fn get(&self, number: u32) -> &str {
        str::from_utf8(self.bytes_of(number)).expect("the bytes of a text")
    }

    /// The bytes that contain the text with this number, and the range of the text in these bytes.
    #[inline]
    fn text_of(&self, number: u32) -> (&[u8], Range<usize>) {
        let bytes = &self.keys[number as usize];
        match Key::from_bytes(*bytes).long_len() {
            None => (bytes, 0..usize::from(bytes[SHORT_MAX])),
            Some(place) => {
                let begin = if place == 0 { 0 } else { self.long_ends[place - 1] };
                (self.long.as_bytes(), begin..self.long_ends[place])
            }
        }
    }

    /// Number of texts.
    pub(crate) fn len(&self) -> usize {
        self.keys.len()
    }

    /// Bytes of all texts.
    pub(crate) fn text_bytes(&self) -> usize {
        self.text_bytes
    }

    /// Bytes of memory.
    pub(crate) fn bytes(&self) -> usize {
        let keys = self.keys.capacity() * size_of::<[u8; SHORT_MAX + 1]>();
        let long = self.long.capacity() + self.long_ends.capacity() * size_of::<usize>();
        self.numbers.bytes() + keys + long
    }

    /// Bytes of memory while a text of `len` bytes is added.
    pub(crate) fn bytes_while_added(&self, len: usize) -> usize {
        let Self { numbers, keys, long, long_ends, .. } = self;
        numbers.bytes_while_added()
            + bytes_with(keys.capacity(), keys.len(), 1, size_of::<[u8; SHORT_MAX + 1]>())
            + bytes_with(long.capacity(), long.len(), len, 1)
            + bytes_with(long_ends.capacity(), long_ends.len(), 1, size_of::<usize>())
    }

    /// The texts with these numbers, as a column.
    pub(crate) fn column(&self, numbers: impl Iterator<Item = u32>) -> StringArray {
        let texts = numbers.size_hint().0;
        let mut column = TextsBuilder::with_room(texts, self.text_bytes.min(texts * SHORT_MAX));
        for number in numbers {
            let (text, part) = self.text_of(number);
            column.push(text, part);
        }
        column.take()
    }

    /// Removes all texts, and keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.numbers.clear();
        self.keys.clear();
        self.long.clear();
        self.long_ends.clear();
        self.text_bytes = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_numbered_once() {
        let (mut table, hash) = (TextTable::default(), TextHash::new());
        let texts = ["", "a", "ab", "a longer text of ä", "b", "Ä", "a longer text of ö", "äb"];
        for round in 0..2 {
            for (number, text) in (0..).zip(texts) {
                assert_eq!(table.number(text, &hash), number, "{round}");
                assert_eq!(table.get(number), text);
            }
        }
        assert_eq!((table.len(), table.text_bytes()), (texts.len(), texts.concat().len()));
        for unknown in ["c", "a longer text of ü"] {
            assert_eq!(table.find(&hash.key(unknown), unknown), None);
        }
        let column = table.column([6, 5, 0, 3, 1].into_iter());
        let expected = ["a longer text of ö", "Ä", "", "a longer text of ä", "a"];
        assert!(column.iter().flatten().eq(expected));
        table.clear();
        assert_eq!((table.len(), table.number("x", &hash)), (0, 0));
    }
}
