//! Tables of distinct texts.

use arrow_array::StringArray;

use super::index::TextIndex;
use super::key::{TextHash, TextKey};

/// Distinct texts, numbered in the order in which they are added.
///
/// The texts lie one after the other in one buffer. A text that is known costs a look-up and no
/// allocation.
#[derive(Debug, Default)]
pub(crate) struct TextTable {
    numbers: TextIndex,
    text: String,
    /// End of each text.
    ends: Vec<usize>,
}

impl TextTable {
    /// Fetches into the cache what [`Self::find`] will look at.
    #[inline]
    pub(crate) fn prefetch(&self, key: &TextKey) {
        self.numbers.prefetch(key);
    }

    /// The number of the text with this key, if it is known. `long` is the text, if it is not in
    /// the key.
    #[inline]
    pub(crate) fn find(&self, key: &TextKey, long: &str) -> Option<u32> {
        self.numbers.find(key, |number| self.get(number) == long)
    }

    /// Adds `text`, which is not known.
    ///
    /// # Panics
    /// If there are 2^32 texts.
    pub(crate) fn add(&mut self, key: &TextKey, text: &str, hasher: &TextHash) -> u32 {
        let number = u32::try_from(self.ends.len()).expect("fewer than 2^32 texts");
        self.text.push_str(text);
        self.ends.push(self.text.len());
        self.numbers.add(key, number, hasher);
        number
    }

    /// The number of the text with this key, which is added unless it is known. `long` is the text,
    /// if it is not in the key.
    #[inline]
    pub(crate) fn number_of(&mut self, key: &TextKey, long: &str, hasher: &TextHash) -> u32 {
        self.find(key, long)
            .unwrap_or_else(|| key.with_text(long, |text| self.add(key, text, hasher)))
    }

    /// The number of `text`, which is added unless it is known.
    #[inline]
    pub(crate) fn number(&mut self, text: &str, hasher: &TextHash) -> u32 {
        self.number_of(&hasher.key(text), text, hasher)
    }

    /// The text with this number.
    #[inline]
    pub(crate) fn get(&self, number: u32) -> &str {
        let number = number as usize;
        let begin = if number == 0 { 0 } else { self.ends[number - 1] };
        &self.text[begin..self.ends[number]]
    }

    /// Number of texts.
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Bytes of all texts.
    pub(crate) fn text_bytes(&self) -> usize {
        self.text.len()
    }

    /// Bytes of memory.
    pub(crate) fn bytes(&self) -> usize {
        let ends = self.ends.capacity() * size_of::<usize>();
        self.numbers.bytes() + self.text.capacity() + ends
    }

    /// The texts with these numbers, as a column.
    pub(crate) fn column(&self, numbers: impl Iterator<Item = u32>) -> StringArray {
        StringArray::from_iter_values(numbers.map(|number| self.get(number)))
    }

    /// Removes all texts; memory is kept.
    pub(crate) fn clear(&mut self) {
        self.numbers.clear();
        self.text.clear();
        self.ends.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_numbered_once() {
        let (mut table, hash) = (TextTable::default(), TextHash::new());
        for round in 0..2 {
            for (number, text) in (0..).zip(["", "a", "ab", "b", "Ä", "äb"]) {
                assert_eq!(table.number(text, &hash), number, "{round}");
                assert_eq!(table.get(number), text);
            }
        }
        assert_eq!((table.len(), table.text_bytes()), (6, 9));
        assert_eq!(table.find(&hash.key("c"), "c"), None);
        let column = table.column([4, 1].into_iter());
        assert_eq!(column.iter().flatten().collect::<Vec<_>>(), ["Ä", "a"]);
        table.clear();
        assert_eq!((table.len(), table.number("x", &hash)), (0, 0));
    }
}
