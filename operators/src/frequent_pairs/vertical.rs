//! The tid lists of the frequent items of some blocks.

use std::cmp::Reverse;
use std::ops::Range;

use thiserror::Error;
use trommel_kernels::sets::{SetStore, Sets};

use super::options::Support;
use super::transposed::TransposedBlock;

/// Maximum number of transactions, and of their frequent items in all.
const COUNT_MAX: u64 = 1 << 31;

/// The place of an item that is not frequent.
const NO_PLACE: u32 = u32::MAX;

/// A window or a stream has too many transactions, or too many items in them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("too many {what}: {count}; a window may have at most {COUNT_MAX}")]
pub(super) struct TooMany {
    what: &'static str,
    count: u64,
}

impl TooMany {
    fn check(what: &'static str, count: u64) -> Result<u32, Self> {
        let fits = u32::try_from(count).ok().filter(|_| count <= COUNT_MAX);
        fits.ok_or(Self { what, count })
    }
}

/// Frequent items and their transactions. An item is named by its *rank*: 0 has the highest
/// support.
#[derive(Debug)]
pub(super) struct VerticalData {
    lists: SetStore,
    /// Per rank.
    items: Vec<u32>,
    transactions: u32,
    least: u32,
}

impl VerticalData {
    /// The tid lists of the items that reach `support` in `blocks`. `items` are the items by
    /// number.
    pub(super) fn new(
        blocks: &[TransposedBlock],
        items: &[u32],
        support: Support,
    ) -> Result<Self, TooMany> {
        let transactions = blocks.iter().map(|block| u64::from(block.transactions())).sum();
        let transactions = TooMany::check("transactions", transactions)?;
        let mut supports = vec![0_u32; items.len()];
        for block in blocks {
            for (number, tids) in block.lists() {
                supports[number as usize] += narrow(tids.len());
            }
        }
        let least = support.least_count(transactions);
        let ranked = rank(items, &supports, least);
        let total = ranked.iter().map(|&number| u64::from(supports[number as usize])).sum();
        let total = TooMany::check("items of transactions", total)?;
        // Supports give way to the places of lists.
        let mut places = supports;
        let mut offsets = Vec::with_capacity(ranked.len() + 1);
        let mut end = total;
        offsets.push(end);
        places.iter_mut().filter(|support| **support < least).for_each(|place| *place = NO_PLACE);
        for &number in ranked.iter().rev() {
            let place = &mut places[number as usize];
            end -= *place;
            *place = end;
            offsets.push(end);
        }
        offsets.reverse();
        let tids = join(blocks, &mut places, total);
        let items = ranked.iter().map(|&number| items[number as usize]).collect();
        Ok(Self { lists: SetStore::new(offsets, tids), items, transactions, least })
    }

    /// Tid lists by rank.
    pub(super) fn lists(&self) -> Sets<'_> {
        self.lists.as_sets()
    }

    /// A number that no other data has.
    pub(super) fn version(&self) -> u64 {
        self.lists.version()
    }

    /// Number of frequent items.
    pub(super) fn len(&self) -> u32 {
        narrow(self.items.len())
    }

    /// The item of a rank.
    pub(super) fn item(&self, rank: u32) -> u32 {
        self.items[rank as usize]
    }

    /// Support of the item of a rank.
    pub(super) fn support(&self, rank: u32) -> u32 {
        narrow(self.lists().set(rank as usize).len())
    }

    /// Sum of the supports of some items.
    pub(super) fn total(&self, ranks: Range<u32>) -> u64 {
        let offsets = self.lists().offsets();
        u64::from(offsets[ranks.end as usize] - offsets[ranks.start as usize])
    }

    /// Number of transactions.
    pub(super) fn transactions(&self) -> u32 {
        self.transactions
    }

    /// The least support of a frequent pair.
    pub(super) fn least(&self) -> u32 {
        self.least
    }
}

/// The numbers of the frequent items by descending support. Equal supports are in the order of
/// the items, so that ranks do not depend on the order of arrival.
fn rank(items: &[u32], supports: &[u32], least: u32) -> Vec<u32> {
    let frequent = (0..).zip(supports).filter(|(_, support)| **support >= least);
    let mut ranked: Vec<u32> = frequent.map(|(number, _)| number).collect();
    let key = |number: u32| (Reverse(supports[number as usize]), items[number as usize]);
    ranked.sort_unstable_by_key(|&number| key(number));
    ranked
}

/// The lists of all blocks, one after the other at the places of their items; `total` tids.
fn join(blocks: &[TransposedBlock], places: &mut [u32], total: u32) -> Vec<u32> {
    let mut joined = vec![0; total as usize];
    let mut first = 0;
    for block in blocks {
        for (number, tids) in block.lists() {
            let place = &mut places[number as usize];
            if *place != NO_PLACE {
                let list = &mut joined[*place as usize..][..tids.len()];
                list.iter_mut().zip(tids).for_each(|(to, &tid)| *to = first + u32::from(tid));
                *place += narrow(tids.len());
            }
        }
        first += block.transactions();
    }
    joined
}

#[expect(clippy::cast_possible_truncation, reason = "checked: at most 2^31")]
const fn narrow(count: usize) -> u32 {
    count as u32
}
