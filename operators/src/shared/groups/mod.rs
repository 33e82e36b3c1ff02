//! Groups: the distinct keys of rows, numbered in the order of their first occurrence.
//!
//! ```text
//! columns ──► keys of a batch ──► hashes ──► places ──► numbers of groups
//! ```
//!
//! All hashes of a batch are computed before the first look-up, and places and keys are fetched
//! into the cache some rows ahead, so that the misses of several rows overlap.
//!
//! | file | contents |
//! |---|---|
//! | `encode` | from columns to keys, and back |
//! | `keys` | the keys and their hashes |
//! | `slots` | places of groups by hash |

mod encode;
mod keys;
mod slots;

use std::cmp::Ordering;

use arrow_array::BinaryArray;
use thiserror::Error;

use self::encode::NULL_TEXT;
pub(crate) use self::encode::{BatchKeys, Encoder, canonical, plain};
pub(crate) use self::keys::KeyHash;
use self::keys::{Arena, Store};
use self::slots::Slots;
use crate::shared::budget::{Budget, BudgetFull};

/// Maximum number of groups.
const GROUPS_MAX: usize = u32::MAX as usize - 1;
/// Number of rows between the fetch of a place and the look-up, and between the fetch of a key and
/// the look-up.
const AHEAD: usize = 16;
const KEY_AHEAD: usize = 8;
/// Number of places from which places are fetched ahead: smaller tables are in the first-level or
/// the second-level cache.
const PREFETCHED_MIN: usize = 1 << 14;
/// Number of groups whose keys are fetched at once while groups are merged.
const BLOCK: usize = 64;

const ORDER: &str = "the order of the groups";
/// The number of a row whose key is the key of no group.
pub(crate) const NO_GROUP: u32 = u32::MAX;

/// There are too many groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub(crate) enum GroupsFull {
    #[error("after {groups} groups: {full}")]
    Memory { groups: usize, full: BudgetFull },
    #[error("there are more than {GROUPS_MAX} groups, or distinct values of groups")]
    Number,
}

/// The keys of all groups.
#[derive(Debug, Clone)]
enum Keys {
    One,
    Narrow(Vec<u64>),
    Wide(Vec<u128>),
    Bytes(Arena),
}

/// The distinct keys so far.
#[derive(Debug, Clone)]
pub(crate) struct Groups {
    hash: KeyHash,
    slots: Slots,
    keys: Keys,
    /// Hashes of the rows of a batch.
    hashes: Vec<u64>,
}

impl Groups {
    /// No groups of the keys of `encoder`; without columns, the one group of all rows.
    pub(crate) fn new(encoder: &Encoder, hash: KeyHash) -> Self {
        let keys = match encoder.width() {
            Some(0) => Keys::One,
            Some(1..=8) => Keys::Narrow(Vec::new()),
            Some(9..=16) => Keys::Wide(Vec::new()),
            _ => Keys::Bytes(Arena::default()),
        };
        Self { hash, slots: Slots::default(), keys, hashes: Vec::new() }
    }

    /// Number of groups.
    pub(crate) fn len(&self) -> usize {
        match &self.keys {
            Keys::One => 1,
            Keys::Narrow(keys) => keys.len(),
            Keys::Wide(keys) => keys.len(),
            Keys::Bytes(keys) => keys.len(),
        }
    }

    /// The number of the group of each row.
    pub(crate) fn number(
        &mut self,
        batch: &BatchKeys,
        numbers: &mut Vec<u32>,
        budget: &mut Budget,
    ) -> Result<(), GroupsFull> {
        numbers.clear();
        let Self { hash, slots, keys, hashes } = self;
        match (keys, batch) {
            (Keys::Narrow(keys), BatchKeys::Narrow(batch)) => {
                let key = |row: usize| batch[row];
                number_rows((keys, slots), hash, (batch.len(), key), hashes, numbers, budget)
            }
            (Keys::Wide(keys), BatchKeys::Wide(batch)) => {
                let key = |row: usize| batch[row];
                number_rows((keys, slots), hash, (batch.len(), key), hashes, numbers, budget)
            }
            (Keys::Bytes(keys), BatchKeys::Bytes(batch)) => {
                let (rows, key) = bytes_of_rows(batch);
                number_rows((keys, slots), hash, (rows, key), hashes, numbers, budget)
            }
            (_, batch) => {
                numbers.resize(batch.rows(), 0);
                Ok(())
            }
        }
    }

    /// The number of the group of each row, or [`NO_GROUP`] if the key of the row is the key of no
    /// group.
    pub(crate) fn find(&mut self, batch: &BatchKeys, numbers: &mut Vec<u32>) {
        numbers.clear();
        let Self { slots, keys, hashes, hash } = self;
        let slots = &*slots;
        match (&*keys, batch) {
            (Keys::Narrow(keys), BatchKeys::Narrow(batch)) => {
                find_rows((keys, slots), hash, (batch.len(), |row| batch[row]), hashes, numbers);
            }
            (Keys::Wide(keys), BatchKeys::Wide(batch)) => {
                find_rows((keys, slots), hash, (batch.len(), |row| batch[row]), hashes, numbers);
            }
            (Keys::Bytes(keys), BatchKeys::Bytes(batch)) => {
                let (rows, key) = bytes_of_rows(batch);
                find_rows((keys, slots), hash, (rows, key), hashes, numbers);
            }
            (_, batch) => numbers.resize(batch.rows(), 0),
        }
    }

    /// Adds the groups of `other`, which has the same secret. `numbers` gets the number of each
    /// group of `other`.
    pub(crate) fn absorb(
        &mut self,
        other: &Self,
        numbers: &mut Vec<u32>,
        budget: &mut Budget,
    ) -> Result<(), GroupsFull> {
        numbers.clear();
        let (groups, more) = (self.len(), other.len());
        let grown = budget.grow("the numbers of groups", numbers, more);
        grown.map_err(|full| GroupsFull::Memory { groups, full })?;
        numbers.resize(more, 0);
        let (Self { slots, keys, .. }, from) = (self, &other.slots);
        match (keys, &other.keys) {
            (Keys::Narrow(keys), Keys::Narrow(other)) => {
                absorb_keys((keys, slots), (other, from), numbers, budget)
            }
            (Keys::Wide(keys), Keys::Wide(other)) => {
                absorb_keys((keys, slots), (other, from), numbers, budget)
            }
            (Keys::Bytes(keys), Keys::Bytes(other)) => {
                absorb_keys((keys, slots), (other, from), numbers, budget)
            }
            _ => Ok(()),
        }
    }

    /// The groups in the order of their keys.
    pub(crate) fn order(&self, budget: &mut Budget) -> Result<Vec<u32>, BudgetFull> {
        match &self.keys {
            Keys::One => Ok(vec![0]),
            Keys::Narrow(keys) => sorted(keys.iter().copied(), |_, _| Ordering::Equal, budget),
            Keys::Wide(keys) => sorted(keys.iter().copied(), |_, _| Ordering::Equal, budget),
            Keys::Bytes(keys) => {
                let ties = |left: u32, right: u32| keys.compare(left as usize, right as usize);
                let mut order = sorted(keys.prefixes(), ties, budget)?;
                // The key of a text that is null is above all texts, and its row is the first one.
                if order.last().is_some_and(|&last| keys.key(last as usize) == NULL_TEXT) {
                    order.rotate_right(1);
                }
                Ok(order)
            }
        }
    }

    /// Bytes of the key of a group, if keys have different lengths.
    pub(crate) fn key_bytes(&self, group: u32) -> usize {
        match &self.keys {
            Keys::Bytes(keys) => keys.key_len(group as usize),
            _ => 0,
        }
    }

    /// Calls `take` with the bytes of the key of each group of `groups`. The bytes of a number have
    /// zeros at their end.
    fn visit(&self, groups: &[u32], mut take: impl FnMut(&[u8])) {
        for &group in groups {
            match &self.keys {
                Keys::One => take(&[]),
                Keys::Narrow(keys) => take(&keys[group as usize].to_be_bytes()),
                Keys::Wide(keys) => take(&keys[group as usize].to_be_bytes()),
                Keys::Bytes(keys) => take(keys.key(group as usize)),
            }
        }
    }
}

/// The numbers of keys in the order of the keys. `words` are the keys, or their first bytes, and
/// `ties` compares keys with equal first bytes.
fn sorted<W: Ord>(
    words: impl ExactSizeIterator<Item = W>,
    ties: impl Fn(u32, u32) -> Ordering,
    budget: &mut Budget,
) -> Result<Vec<u32>, BudgetFull> {
    let len = words.len();
    budget.take(ORDER, len * size_of::<u32>())?;
    // The words stand beside the numbers while they are sorted, so that a comparison reads no key
    // at a random place.
    let bytes = len * size_of::<(W, u32)>();
    budget.take(ORDER, bytes)?;
    let mut pairs: Vec<(W, u32)> = words.zip(0..).collect();
    pairs.sort_unstable_by(|(left, one), (right, other)| {
        left.cmp(right).then_with(|| ties(*one, *other))
    });
    let order = pairs.iter().map(|pair| pair.1).collect();
    budget.give_back(bytes);
    Ok(order)
}

/// Makes room for `more` keys, at most half of the places being used.
fn make_room<'k, S: Store>(
    (keys, slots): (&mut S, &mut Slots),
    more: usize,
    key: Option<S::Key<'k>>,
    budget: &mut Budget,
) -> Result<(), GroupsFull> {
    let groups = keys.len();
    if groups + more > GROUPS_MAX {
        return Err(GroupsFull::Number);
    }
    let full = |full| GroupsFull::Memory { groups, full };
    keys.make_room(more, key, budget).map_err(full)?;
    let len = Slots::len_for(groups + more);
    if len > slots.len() {
        let old = slots.taken_bytes();
        budget.take("the places of the groups", Slots::bytes_of(len)).map_err(full)?;
        *slots = slots.grown(len);
        budget.give_back(old);
    }
    Ok(())
}

/// The number of rows of a batch of keys, and the key of each row.
fn bytes_of_rows<'k>(batch: &'k BinaryArray) -> (usize, impl Fn(usize) -> &'k [u8]) {
    let (offsets, bytes) = (batch.value_offsets(), batch.value_data());
    let at = |row: usize| offsets[row].unsigned_abs() as usize;
    (offsets.len() - 1, move |row| &bytes[at(row)..at(row + 1)])
}

/// Numbers the groups of `rows` rows, whose keys `key` returns.
fn number_rows<'k, S: Store>(
    (keys, slots): (&mut S, &mut Slots),
    hash: &KeyHash,
    (rows, key): (usize, impl Fn(usize) -> S::Key<'k>),
    hashes: &mut Vec<u64>,
    numbers: &mut Vec<u32>,
    budget: &mut Budget,
) -> Result<(), GroupsFull> {
    hashes.clear();
    hashes.extend((0..rows).map(|row| S::hash(hash, key(row))));
    numbers.reserve(rows);
    while numbers.len() < rows {
        if slots.len() < PREFETCHED_MIN {
            look_up::<S, false>((keys, slots), &key, hashes, numbers);
        } else {
            look_up::<S, true>((keys, slots), &key, hashes, numbers);
        }
        if numbers.len() < rows {
            make_room((keys, slots), 1, Some(key(numbers.len())), budget)?;
        }
    }
    Ok(())
}

/// Numbers the groups of further rows, until all rows have groups or there is no room for a new
/// group.
#[inline(always)]
fn look_up<'k, S: Store, const PREFETCHES: bool>(
    (keys, slots): (&mut S, &mut Slots),
    key: &impl Fn(usize) -> S::Key<'k>,
    hashes: &[u64],
    numbers: &mut Vec<u32>,
) {
    for row in numbers.len()..hashes.len() {
        if PREFETCHES {
            fetch_ahead((&*keys, &*slots), hashes, row);
        }
        let (hash, key) = (hashes[row], key(row));
        let group = match slots.find(hash, |group| keys.is(group, key)) {
            Ok(group) => group,
            Err(place) => {
                let group = keys.len();
                if !keys.has_room(key) || slots.is_full(group) || group >= GROUPS_MAX {
                    return;
                }
                keys.push(key);
                slots.put(place, hash, group);
                group
            }
        };
        numbers.push(u32::try_from(group).expect("there are fewer groups than numbers"));
    }
}

/// Fetches the place of a later row into the cache, and the key at the place of another one.
#[inline(always)]
fn fetch_ahead<S: Store>((keys, slots): (&S, &Slots), hashes: &[u64], row: usize) {
    if let Some(&ahead) = hashes.get(row + AHEAD) {
        slots.prefetch(ahead);
    }
    if let Some(likely) = hashes.get(row + KEY_AHEAD).and_then(|&hash| slots.likely(hash)) {
        keys.prefetch(likely);
    }
}

/// Finds the groups of `rows` rows, whose keys `key` returns.
fn find_rows<'k, S: Store>(
    (keys, slots): (&S, &Slots),
    hash: &KeyHash,
    (rows, key): (usize, impl Fn(usize) -> S::Key<'k>),
    hashes: &mut Vec<u64>,
    numbers: &mut Vec<u32>,
) {
    hashes.clear();
    hashes.extend((0..rows).map(|row| S::hash(hash, key(row))));
    let prefetches = slots.len() >= PREFETCHED_MIN;
    numbers.extend((0..rows).map(|row| {
        if prefetches {
            fetch_ahead((keys, slots), hashes, row);
        }
        let key = key(row);
        slots.find(hashes[row], |group| keys.is(group, key)).map_or(NO_GROUP, |group| {
            u32::try_from(group).expect("there are fewer groups than numbers")
        })
    }));
}

/// Adds the groups of another store in the order of their hashes, in which the places of both
/// stores are read from the front to the back. `numbers` gets the number of each group.
fn absorb_keys<S: Store>(
    (keys, slots): (&mut S, &mut Slots),
    (other, from): (&S, &Slots),
    numbers: &mut [u32],
    budget: &mut Budget,
) -> Result<(), GroupsFull> {
    // Groups that come by hash would fill the front of a small table completely, in which each
    // look-up is long. Therefore the table has its last size before the first group comes.
    let (groups, more) = (keys.len(), other.len());
    let full = |full| GroupsFull::Memory { groups, full };
    let len = Slots::len_for(groups.saturating_add(more));
    if len > slots.len() {
        let old = slots.taken_bytes();
        budget.take("the places of the groups", Slots::bytes_of(len)).map_err(full)?;
        *slots = slots.grown(len);
        budget.give_back(old);
    }
    let mut known = from.by_hash();
    let mut block = Vec::with_capacity(BLOCK);
    loop {
        block.clear();
        block.extend(known.by_ref().take(BLOCK));
        if block.is_empty() {
            return Ok(());
        }
        for &(hash, group) in &block {
            other.prefetch(group);
            if let Some(likely) = slots.likely(hash) {
                keys.prefetch(likely);
            }
        }
        for &(hash, group) in &block {
            let key = other.key(group);
            let number = match slots.find(hash, |number| keys.is(number, key)) {
                Ok(number) => number,
                Err(place) => {
                    let number = keys.len();
                    if !keys.has_room(key) || number >= GROUPS_MAX {
                        make_room((keys, slots), 1, Some(key), budget)?;
                    }
                    keys.push(key);
                    slots.put(place, hash, number);
                    number
                }
            };
            numbers[group] = u32::try_from(number).expect("there are fewer groups than numbers");
        }
    }
}
