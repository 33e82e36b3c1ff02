//! Numbers for distinct strings, in the order in which they first occur.
//!
//! The strings lie one after the other in one buffer; the hash table holds their numbers only, so
//! that a token that is known costs a look-up and no allocation.

use hashbrown::HashTable;
use rapidhash::v3::rapidhash_v3;

use super::TokenizeError;

pub(super) struct Dictionary {
    numbers: HashTable<u32>,
    text: Vec<u8>,
    /// Where each string ends in `text`.
    ends: Vec<usize>,
    max: usize,
}

impl Dictionary {
    /// A dictionary of at most `max` strings.
    pub(super) fn new(max: usize) -> Self {
        Self { numbers: HashTable::new(), text: Vec::new(), ends: Vec::new(), max }
    }

    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// The number of `token`, which is a new one when it occurs for the first time.
    pub(super) fn number(&mut self, token: &str) -> Result<u32, TokenizeError> {
        let Self { numbers, text, ends, max } = self;
        let hash = rapidhash_v3(token.as_bytes());
        let is_token = |&number: &u32| entry(text, ends, number) == token.as_bytes();
        if let Some(&number) = numbers.find(hash, is_token) {
            return Ok(number);
        }
        if ends.len() >= *max {
            return Err(TokenizeError::DictionaryFull { max: *max });
        }
        let number = u32::try_from(ends.len()).expect("the limit is below 2^32");
        text.extend_from_slice(token.as_bytes());
        ends.push(text.len());
        numbers.insert_unique(hash, number, |&number| rapidhash_v3(entry(text, ends, number)));
        Ok(number)
    }
}

fn entry<'a>(text: &'a [u8], ends: &[usize], number: u32) -> &'a [u8] {
    let number = number as usize;
    let start = if number == 0 { 0 } else { ends[number - 1] };
    &text[start..ends[number]]
}
