//! Tables of distinct texts.

use arrow_array::StringArray;
use hashbrown::HashTable;
use rapidhash::v3::{RapidSecrets, rapidhash_v3_seeded};

use crate::secret::random_seed;

/// A hash with a secret of its own, so that nobody can choose texts that collide.
pub(crate) struct TextHash(RapidSecrets);

impl TextHash {
    pub(crate) fn new() -> Self {
        Self(RapidSecrets::seed(random_seed()))
    }

    #[inline]
    pub(crate) fn hash(&self, text: &str) -> u64 {
        rapidhash_v3_seeded(text.as_bytes(), &self.0)
    }
}

/// Distinct texts, numbered in the order in which they are added.
///
/// The texts lie one after the other in one buffer, and the hash table holds their numbers only:
/// a text that is known costs a look-up and no allocation.
#[derive(Debug, Default)]
pub(crate) struct TextTable {
    numbers: HashTable<u32>,
    text: String,
    /// End of each text.
    ends: Vec<usize>,
}

impl TextTable {
    /// The number of `text`, if it is known.
    #[inline]
    pub(crate) fn find(&self, hash: u64, text: &str) -> Option<u32> {
        self.numbers.find(hash, |&number| self.get(number) == text).copied()
    }

    /// Adds `text`, which is not known.
    ///
    /// # Panics
    /// If there are 2^32 texts.
    pub(crate) fn add(&mut self, hash: u64, text: &str, hasher: &TextHash) -> u32 {
        let number = u32::try_from(self.ends.len()).expect("fewer than 2^32 texts");
        self.text.push_str(text);
        self.ends.push(self.text.len());
        let Self { numbers, text, ends } = self;
        numbers.insert_unique(hash, number, |&number| hasher.hash(slice(text, ends, number)));
        number
    }

    /// The number of `text`, which is added unless it is known.
    #[inline]
    pub(crate) fn number(&mut self, text: &str, hasher: &TextHash) -> u32 {
        let hash = hasher.hash(text);
        self.find(hash, text).unwrap_or_else(|| self.add(hash, text, hasher))
    }

    /// The text with this number.
    #[inline]
    pub(crate) fn get(&self, number: u32) -> &str {
        slice(&self.text, &self.ends, number)
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
        self.numbers.allocation_size() + self.text.capacity() + ends
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

#[inline]
fn slice<'a>(text: &'a str, ends: &[usize], number: u32) -> &'a str {
    let number = number as usize;
    let begin = if number == 0 { 0 } else { ends[number - 1] };
    &text[begin..ends[number]]
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
        assert_eq!(table.find(hash.hash("c"), "c"), None);
        let column = table.column([4, 1].into_iter());
        assert_eq!(column.iter().flatten().collect::<Vec<_>>(), ["Ä", "a"]);
        table.clear();
        assert_eq!((table.len(), table.number("x", &hash)), (0, 0));
    }
}
