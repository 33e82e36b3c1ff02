//! Numbers for the tokens of a stream, rare tokens first.
//!
//! ```text
//! slot      0    1    2  ..  k-1 | k  k+1  ..      by descending frequency at the last numbering;
//!          the  of   a    gravel | new tokens      new tokens are appended
//! number   2^31 - 1 - slot                         so rare and new tokens have the lowest numbers
//! ```
//!
//! Any order of the tokens is correct if all sets use the same order; the order by frequency is the
//! fastest. Frequencies change, and new tokens arrive and count as the rarest tokens. When there
//! are twice as many tokens as at the last numbering, all tokens are renumbered by their frequency
//! in the window, and tokens outside the window are forgotten.

use std::cmp::Reverse;

use trommel_kernels::prefetch;

use super::index::slot_table::SlotTable;

/// Largest number of a token.
const NUMBER_MAX: u32 = (1 << 31) - 1;

/// Maximum number of tokens that can have a number.
pub(super) const TOKENS_NUMBERED_MAX: usize = NUMBER_MAX as usize;

/// Bytes per slot that renumbering needs while it runs.
pub(super) const RENUMBERING_BYTES: usize = 4 * size_of::<u32>();

/// Growth calls for renumbering only from twice this number of tokens on.
const NUMBERED_MIN: usize = 8;

/// The number of a slot; also the slot of a number.
#[inline]
pub(super) fn number_of(slot: u32) -> u32 {
    NUMBER_MAX - slot
}

/// New slot of a forgotten token, in the answer of [`Dictionary::renumber`].
const FORGOTTEN: u32 = u32::MAX;

/// Entry of the direct table for a token without a slot.
const NONE: u32 = u32::MAX;

/// Maximum entries of the direct table for each known token: a larger direct table would take more
/// bytes than a hash table.
const SPARSENESS: usize = 4;

/// Number of tokens between the token that is looked up and the token whose place is prefetched.
const AHEAD: usize = 24;

/// The slots of tokens.
#[derive(Debug, Default)]
pub(super) struct Dictionary {
    /// Slots of the smallest tokens, by token, up to the token where tokens become sparse.
    direct: Vec<u32>,
    /// Slots of all other tokens.
    slots: SlotTable,
    /// For each slot: the token.
    names: Vec<u32>,
    /// Number of tokens at the last renumbering.
    numbered: usize,
}

impl Dictionary {
    /// Number of slots.
    pub(super) fn len(&self) -> usize {
        self.names.len()
    }

    /// The slot of `token`; a new token gets the next slot. The caller checks that there are
    /// fewer than [`TOKENS_NUMBERED_MAX`].
    #[inline]
    pub(super) fn slot(&mut self, token: u32) -> u32 {
        let slot = match self.direct.get(token as usize) {
            Some(&slot) => (slot != NONE).then_some(slot),
            None => self.slots.get(token),
        };
        slot.unwrap_or_else(|| self.add(token))
    }

    /// Replaces tokens by their slots.
    pub(super) fn replace(&mut self, tokens: &mut [u32]) {
        for at in 0..tokens.len() {
            if let Some(&ahead) = tokens.get(at + AHEAD) {
                self.prefetch(ahead);
            }
            tokens[at] = self.slot(tokens[at]);
        }
    }

    #[inline]
    fn prefetch(&self, token: u32) {
        if (token as usize) < self.direct.len() {
            prefetch(&self.direct, token as usize);
        } else {
            self.slots.prefetch(token);
        }
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

    /// Places by which a full list of `names` names grows.
    fn slack(names: usize) -> usize {
        (names / 4).max(16)
    }

    fn write(&mut self, token: u32, slot: u32) {
        match self.direct.get_mut(token as usize) {
            Some(known) => *known = slot,
            None => self.slots.insert(token, slot),
        }
    }

    /// Whether the number of tokens has doubled since the last renumbering.
    pub(super) fn is_outgrown(&self) -> bool {
        self.len() > 2 * self.numbered.max(NUMBERED_MIN)
    }

    /// Whether so many tokens are new since the last renumbering that another renumbering may
    /// forget many tokens.
    pub(super) fn may_forget(&self) -> bool {
        self.len() > self.numbered + self.numbered / 8
    }

    /// Renumbers the tokens by descending `counts`, which has an entry for each slot. Returns the
    /// new slot of each old slot: [`FORGOTTEN`] for a token whose count is 0.
    ///
    /// # Cost
    /// Needs up to [`RENUMBERING_BYTES`] per slot while it runs, including `counts` and the
    /// answer.
    pub(super) fn renumber(&mut self, counts: Vec<u32>) -> Vec<u32> {
        let slots = counts.len();
        let mut order: Vec<u32> = (0..).take(slots).collect();
        order.retain(|&slot| counts[slot as usize] > 0);
        order.sort_unstable_by_key(|&slot| {
            (Reverse(counts[slot as usize]), self.names[slot as usize])
        });
        drop(counts);
        let names: Vec<u32> = order.iter().map(|&slot| self.names[slot as usize]).collect();
        // The old tables are freed before the new tables are allocated.
        *self = Self::default();
        let mut moved = vec![FORGOTTEN; slots];
        for (new, &old) in (0..).zip(&order) {
            moved[old as usize] = new;
        }
        drop(order);
        self.numbered = names.len();
        self.list(names);
        moved
    }

    /// Fills the tables, which are empty, with the tokens `names` by slot.
    fn list(&mut self, names: Vec<u32>) {
        let direct = direct_len(&names);
        self.direct = vec![NONE; direct];
        let others = names.iter().filter(|&&token| token as usize >= direct).count();
        self.slots.widen(others);
        for (slot, &token) in (0..).zip(&names) {
            self.write(token, slot);
        }
        self.names = names;
    }

    /// The token of each slot.
    pub(super) fn tokens(&self) -> &[u32] {
        &self.names
    }

    /// Replaces each token by its new `name`. Slots stay.
    pub(super) fn rename(&mut self, name: impl Fn(u32) -> u32) {
        let Self { names, numbered, .. } = std::mem::take(self);
        self.numbered = numbered;
        self.list(names.into_iter().map(name).collect());
    }

    pub(super) fn bytes(&self) -> usize {
        let words = self.names.capacity() + self.direct.len();
        self.slots.bytes() + size_of::<u32>() * words
    }

    /// Maximum bytes that `tokens` more tokens take.
    pub(super) fn growth(&self, tokens: usize) -> usize {
        let len = self.len() + tokens;
        let table = self.slots.growth(tokens);
        let is_room = len <= self.names.capacity();
        let names = if is_room { 0 } else { size_of::<u32>() * (len + Self::slack(len)) };
        table + names
    }
}

/// Length of the direct table: the largest power of two below which at least one in
/// [`SPARSENESS`] values is in `tokens`.
fn direct_len(tokens: &[u32]) -> usize {
    // A histogram of the bit lengths gives all powers of two in one pass.
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
