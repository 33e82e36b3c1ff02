//! Numbers for the tokens of a stream, rare ones first.
//!
//! ```text
//! slot      0    1    2  ..  k-1 | k  k+1  ..      frequent ones first when they were numbered;
//!          the  of   a       gravel | new ones     a token that is new comes behind all others
//! number   2^31 - 1 - slot                         so what is rare, or new, comes first
//! ```
//!
//! Any order of the tokens is right as long as all sets have the same one; by frequency it is fast.
//! Frequencies change, and tokens come that nobody has seen: those are taken for the rarest. When
//! there are twice as many as at the last time, all are numbered anew by what is in the window,
//! and tokens that are not there any more are forgotten.

use std::cmp::Reverse;

use hashbrown::HashMap;
use rapidhash::fast::RandomState;

/// The greatest number of a token.
const NUMBER_MAX: u32 = (1 << 31) - 1;

/// The most tokens that can have a number.
pub(super) const TOKENS_NUMBERED_MAX: usize = NUMBER_MAX as usize;

/// Bytes a slot that numbering anew takes for a moment.
pub(super) const RENUMBERING_BYTES: usize = 4 * size_of::<u32>();

/// With fewer tokens than twice this many, none is numbered anew.
const NUMBERED_MIN: usize = 8;

/// Bytes of an entry of a hash table that is as full as it may be, and of its share of what is
/// free.
const fn table_bytes(capacity: usize) -> usize {
    (size_of::<(u32, u32)>() + 1) * capacity * 8 / 7
}

/// The number of a slot, or the slot of a number.
#[inline]
pub(super) fn number_of(slot: u32) -> u32 {
    NUMBER_MAX - slot
}

/// What [`Dictionary::renumber`] says of a token that is forgotten.
const FORGOTTEN: u32 = u32::MAX;

/// What the table of small tokens says of one that has no slot.
const NONE: u32 = u32::MAX;

/// Entries of the table of small tokens for each of them: no more bytes than a hash table takes.
const SPARSENESS: usize = 4;

/// The slots of tokens.
#[derive(Debug, Default)]
pub(super) struct Dictionary {
    /// By token, as far as tokens are so dense that this pays.
    direct: Vec<u32>,
    /// Of all others.
    slots: HashMap<u32, u32, RandomState>,
    /// By slot: the token.
    names: Vec<u32>,
    /// How many tokens were numbered by their frequency.
    numbered: usize,
}

impl Dictionary {
    /// How many slots there are.
    pub(super) fn len(&self) -> usize {
        self.names.len()
    }

    /// The slot of a token; there must be fewer than [`TOKENS_NUMBERED_MAX`].
    #[inline]
    pub(super) fn slot(&mut self, token: u32) -> u32 {
        let slot = match self.direct.get(token as usize) {
            Some(&slot) => (slot != NONE).then_some(slot),
            None => self.slots.get(&token).copied(),
        };
        slot.unwrap_or_else(|| self.add(token))
    }

    #[cold]
    fn add(&mut self, token: u32) -> u32 {
        let slot = u32::try_from(self.len()).expect("fewer than 2^31 tokens");
        if self.names.len() == self.names.capacity() {
            self.names.reserve_exact(Self::slack(self.names.len()));
        }
        self.names.push(token);
        self.write(token, slot);
        slot
    }

    /// By how many names their list grows.
    fn slack(names: usize) -> usize {
        (names / 4).max(16)
    }

    fn write(&mut self, token: u32, slot: u32) {
        match self.direct.get_mut(token as usize) {
            Some(known) => *known = slot,
            None => drop(self.slots.insert(token, slot)),
        }
    }

    /// Whether so many tokens have come since the last time that they should be numbered anew.
    pub(super) fn is_outgrown(&self) -> bool {
        self.len() > 2 * self.numbered.max(NUMBERED_MIN)
    }

    /// Whether numbering anew may forget a good part of the tokens.
    pub(super) fn may_forget(&self) -> bool {
        self.len() > self.numbered + self.numbered / 8
    }

    /// Numbers the tokens by how often they are there, by slot; returns their new slots, by old
    /// ones. Those that are not there are forgotten.
    ///
    /// # Cost
    /// Needs up to [`RENUMBERING_BYTES`] a slot for a moment, with the counts and what it returns.
    pub(super) fn renumber(&mut self, counts: Vec<u32>) -> Vec<u32> {
        let slots = counts.len();
        let mut order: Vec<u32> = (0..).take(slots).collect();
        order.retain(|&slot| counts[slot as usize] > 0);
        order.sort_unstable_by_key(|&slot| {
            (Reverse(counts[slot as usize]), self.names[slot as usize])
        });
        drop(counts);
        let names: Vec<u32> = order.iter().map(|&slot| self.names[slot as usize]).collect();
        // Given back before the new ones are allocated.
        (self.direct, self.slots, self.names) = (Vec::new(), HashMap::default(), Vec::new());
        let mut moved = vec![FORGOTTEN; slots];
        for (new, &old) in (0..).zip(&order) {
            moved[old as usize] = new;
        }
        drop(order);
        let direct = direct_len(&names);
        self.direct = vec![NONE; direct];
        let others = names.iter().filter(|&&token| token as usize >= direct).count();
        self.slots.reserve(others);
        for (slot, &token) in (0..).zip(&names) {
            self.write(token, slot);
        }
        self.numbered = names.len();
        self.names = names;
        moved
    }

    pub(super) fn bytes(&self) -> usize {
        let words = self.names.capacity() + self.direct.len();
        table_bytes(self.slots.capacity()) + size_of::<u32>() * words
    }

    /// Bytes that so many tokens more may take.
    pub(super) fn growth(&self, tokens: usize) -> usize {
        let len = self.len() + tokens;
        let entries = self.slots.len() + tokens;
        let is_room = entries <= self.slots.capacity();
        let table = if is_room { 0 } else { table_bytes((2 * entries).next_power_of_two()) };
        let is_room = len <= self.names.capacity();
        let names = if is_room { 0 } else { size_of::<u32>() * (len + Self::slack(len)) };
        table + names
    }
}

/// How long a table by token may be: the greatest power of two below which there are enough tokens.
fn direct_len(tokens: &[u32]) -> usize {
    let mut of_length = [0; 33];
    for token in tokens {
        of_length[(u32::BITS - token.leading_zeros()) as usize] += 1;
    }
    let below = of_length.iter().scan(0, |below, count| {
        *below += count;
        Some(*below)
    });
    let lens = below.enumerate().map(|(bits, below)| (1_usize << bits, below));
    lens.filter(|(len, below)| below * SPARSENESS >= *len).map(|(len, _)| len).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frequent_tokens_come_last_and_new_ones_first() {
        for scale in [1, 1 << 20] {
            let mut dictionary = Dictionary::default();
            let tokens = [5, 7, 5, 9, 7, 5, 4000].map(|token| token * scale);
            let mut slots = tokens.map(|token| dictionary.slot(token));
            let mut counts = vec![0; dictionary.len()];
            slots.iter().for_each(|&slot| counts[slot as usize] += 1);
            counts[slots[3] as usize] = 0;
            let moved = dictionary.renumber(counts);
            assert_eq!(moved[slots[3] as usize], FORGOTTEN);
            slots.iter_mut().for_each(|slot| *slot = moved[*slot as usize]);
            assert_eq!(slots, [0, 1, 0, FORGOTTEN, 1, 0, 2]);
            assert_eq!(tokens.map(|token| dictionary.slot(token)), [0, 1, 0, 3, 1, 0, 2]);
            assert_eq!(dictionary.slot(u32::MAX), 4);
            assert!(number_of(4) < number_of(3) && number_of(3) < number_of(0));
        }
    }

    #[test]
    fn a_table_by_token_is_for_tokens_that_are_dense() {
        assert_eq!(direct_len(&[]), 0);
        assert_eq!(direct_len(&[0, u32::MAX]), 4);
        assert_eq!(direct_len(&(0..1000).collect::<Vec<_>>()), 2048);
        assert_eq!(direct_len(&(0..1000).map(|token| token * 100).collect::<Vec<_>>()), 4);
    }
}
