//! The keys of groups: the values of `by` in a row, as bytes whose order is the order of the
//! values.
//!
//! | keys | kept as |
//! |---|---|
//! | no columns | nothing: there is one group |
//! | at most 8 bytes | a number of 64 bits |
//! | at most 16 bytes | a number of 128 bits |
//! | other | bytes, one key after the other |

use std::cmp::Ordering;

use rapidhash::v3::{RapidSecrets, rapidhash_v3_seeded};
use trommel_kernels::prefetch;
use trommel_kernels::sieve::split_mix;

use crate::shared::budget::{Budget, BudgetFull};
use crate::shared::names::secret::Secret;

const WHAT: &str = "the keys of the groups";

/// Secrets of the hash of keys.
#[derive(Debug, Clone)]
pub(crate) struct KeyHash {
    words: [u64; 3],
    bytes: RapidSecrets,
}

impl KeyHash {
    pub(crate) fn new(secret: Secret) -> Self {
        let seed = secret.item_seed();
        let words = [1, 2, 3].map(|step| split_mix(seed, step) | 1);
        Self { words, bytes: RapidSecrets::seed_cpp(split_mix(seed, 4)) }
    }
}

/// The high and the low half of a number.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "the halves are asked for")]
fn halves(number: u128) -> (u64, u64) {
    ((number >> 64) as u64, number as u64)
}

/// The high and the low half of a product, mixed.
#[inline(always)]
fn fold(left: u64, right: u64) -> u64 {
    let (high, low) = halves(u128::from(left) * u128::from(right));
    high ^ low
}

/// Keys by the numbers of their groups, or by the rows of a batch.
pub(super) trait Store {
    /// A key.
    type Key<'k>: Copy;

    /// Number of keys.
    fn len(&self) -> usize;

    /// A key.
    fn key(&self, number: usize) -> Self::Key<'_>;

    fn hash(hash: &KeyHash, key: Self::Key<'_>) -> u64;

    /// Whether a key is the key of this number.
    fn is(&self, number: usize, key: Self::Key<'_>) -> bool;

    /// Whether a further key fits without an allocation.
    fn has_room(&self, key: Self::Key<'_>) -> bool;

    /// Makes room for a further key, or for `more` keys if their size is known.
    fn make_room(
        &mut self,
        more: usize,
        key: Option<Self::Key<'_>>,
        budget: &mut Budget,
    ) -> Result<(), BudgetFull>;

    /// Adds a key, for which there is room.
    fn push(&mut self, key: Self::Key<'_>);

    /// Fetches a key into the cache.
    fn prefetch(&self, number: usize);
}

/// A key of a fixed number of bits.
pub(super) trait Word: Copy + Ord {
    fn hash(self, hash: &KeyHash) -> u64;
}

impl Word for u64 {
    #[inline(always)]
    fn hash(self, hash: &KeyHash) -> u64 {
        fold(fold(self ^ hash.words[0], hash.words[1]) ^ hash.words[2], hash.words[1])
    }
}

impl Word for u128 {
    #[inline(always)]
    fn hash(self, hash: &KeyHash) -> u64 {
        let (high, low) = halves(self);
        fold(fold(high ^ hash.words[0], hash.words[1]) ^ low, hash.words[2])
    }
}

impl<W: Word> Store for Vec<W> {
    type Key<'k> = W;

    fn len(&self) -> usize {
        self.len()
    }

    #[inline(always)]
    fn key(&self, number: usize) -> W {
        self[number]
    }

    #[inline(always)]
    fn hash(hash: &KeyHash, key: W) -> u64 {
        key.hash(hash)
    }

    #[inline(always)]
    fn is(&self, number: usize, key: W) -> bool {
        self[number] == key
    }

    #[inline(always)]
    fn has_room(&self, _: W) -> bool {
        self.len() < self.capacity()
    }

    fn make_room(
        &mut self,
        more: usize,
        _: Option<W>,
        budget: &mut Budget,
    ) -> Result<(), BudgetFull> {
        budget.grow(WHAT, self, more)
    }

    #[inline(always)]
    fn push(&mut self, key: W) {
        self.push(key);
    }

    #[inline(always)]
    fn prefetch(&self, number: usize) {
        prefetch(self, number);
    }
}

/// Keys of any length, one after the other.
#[derive(Debug, Clone, Default)]
pub(crate) struct Arena {
    /// The end of each key.
    ends: Vec<usize>,
    bytes: Vec<u8>,
}

impl Arena {
    fn begin(&self, number: usize) -> usize {
        number.checked_sub(1).map_or(0, |before| self.ends[before])
    }

    /// The first 16 bytes of each key behind the bytes that all keys begin with, as numbers whose
    /// order is that of the bytes.
    pub(super) fn prefixes(&self) -> impl ExactSizeIterator<Item = u128> {
        let first = if self.ends.is_empty() { &[][..] } else { self.key(0) };
        let common = (0..self.ends.len()).fold(first.len(), |common, number| {
            let pairs = self.key(number).iter().zip(&first[..common]);
            pairs.take_while(|(left, right)| left == right).count()
        });
        (0..self.ends.len()).map(move |number| {
            let rest = &self.key(number)[common..];
            let mut word = [0; 16];
            let len = rest.len().min(16);
            word[..len].copy_from_slice(&rest[..len]);
            u128::from_be_bytes(word)
        })
    }

    /// The order of two keys.
    pub(super) fn compare(&self, left: usize, right: usize) -> Ordering {
        self.key(left).cmp(self.key(right))
    }

    /// Number of bytes of a key.
    pub(super) fn key_len(&self, number: usize) -> usize {
        self.ends[number] - self.begin(number)
    }
}

impl Store for Arena {
    type Key<'k> = &'k [u8];

    fn len(&self) -> usize {
        self.ends.len()
    }

    #[inline(always)]
    fn key(&self, number: usize) -> &[u8] {
        &self.bytes[self.begin(number)..self.ends[number]]
    }

    #[inline(always)]
    fn hash(hash: &KeyHash, key: &[u8]) -> u64 {
        rapidhash_v3_seeded(key, &hash.bytes)
    }

    #[inline(always)]
    fn is(&self, number: usize, key: &[u8]) -> bool {
        self.key(number) == key
    }

    #[inline(always)]
    fn has_room(&self, key: &[u8]) -> bool {
        self.ends.len() < self.ends.capacity()
            && self.bytes.len() + key.len() <= self.bytes.capacity()
    }

    fn make_room(
        &mut self,
        more: usize,
        key: Option<&[u8]>,
        budget: &mut Budget,
    ) -> Result<(), BudgetFull> {
        budget.grow(WHAT, &mut self.ends, more)?;
        budget.grow(WHAT, &mut self.bytes, key.map_or(0, <[u8]>::len))
    }

    #[inline(always)]
    fn push(&mut self, key: &[u8]) {
        self.bytes.extend_from_slice(key);
        self.ends.push(self.bytes.len());
    }

    #[inline(always)]
    fn prefetch(&self, number: usize) {
        // The end of the key before is the beginning of this key, and mostly in the same line.
        prefetch(&self.ends, number);
    }
}
