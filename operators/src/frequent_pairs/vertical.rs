//! The tid lists of the frequent items of some blocks.

use std::cmp::Reverse;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use arrow_array::ArrayRef;
use thiserror::Error;
use trommel_kernels::Isa;
use trommel_kernels::batmap::{BatMaps, Permutations};
use trommel_kernels::sets::{SetStore, Sets};

use super::options::Support;
use super::transposed::TransposedBlock;
use crate::names::ItemNames;
use crate::secret::random_seed;
use crate::window::borders::WindowSpan;

/// Maximum number of transactions, and of their frequent items in all.
const COUNT_MAX: u64 = 1 << 31;

/// The place of an item that is not frequent.
const NO_PLACE: u32 = u32::MAX;

/// A window or a stream has too many transactions, items in them, or frequent pairs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("too many {what}: {count}; a window may have at most {COUNT_MAX}")]
pub(super) struct TooMany {
    what: &'static str,
    count: u64,
}

impl TooMany {
    pub(super) fn check(what: &'static str, count: u64) -> Result<u32, Self> {
        let fits = u32::try_from(count).ok().filter(|_| count <= COUNT_MAX);
        fits.ok_or(Self { what, count })
    }
}

/// Frequent items and their transactions. An item is named by its *rank*: 0 has the highest
/// support.
#[derive(Debug)]
pub(super) struct VerticalData {
    lists: SetStore,
    /// The items by rank.
    items: ArrayRef,
    /// Per rank: the place among the frequent items, sorted.
    places: Vec<u32>,
    transactions: u32,
    least: u32,
    window: WindowSpan,
    /// Made when they are first needed.
    maps: OnceLock<Arc<BatMaps<2>>>,
}

impl VerticalData {
    /// The tid lists of the items that reach `support` in `blocks`, which have the items by
    /// number.
    pub(super) fn new<'a>(
        blocks: impl Iterator<Item = &'a TransposedBlock> + Clone,
        names: &ItemNames,
        support: Support,
        window: WindowSpan,
    ) -> Result<Self, TooMany> {
        let transactions = blocks.clone().map(|block| u64::from(block.transactions())).sum();
        let transactions = TooMany::check("transactions", transactions)?;
        let mut supports = vec![0_u32; names.len()];
        for block in blocks.clone() {
            for (number, tids) in block.lists() {
                supports[number as usize] += narrow(tids.len());
            }
        }
        let least = support.least_count(transactions);
        let Ranking { numbers, places } = Ranking::new(names, &supports, least);
        let total = numbers.iter().map(|&number| u64::from(supports[number as usize])).sum();
        let total = TooMany::check("items of transactions", total)?;
        let offsets = supports_to_places(&mut supports, &numbers, least, total);
        let tids = join(blocks, &mut supports, total);
        let (lists, items) = (SetStore::new(offsets, tids), names.column(&numbers));
        Ok(Self { lists, items, places, transactions, least, window, maps: OnceLock::new() })
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
        narrow(self.places.len())
    }

    /// The items by rank.
    pub(super) fn items(&self) -> &ArrayRef {
        &self.items
    }

    /// Ranks of a pair or triple, by ascending items.
    pub(super) fn sorted<const N: usize>(&self, mut ranks: [u32; N]) -> [u32; N] {
        ranks.sort_unstable_by_key(|&rank| self.places[rank as usize]);
        ranks
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

    /// The batmaps of the items by rank. They are made by the first call; others wait for it.
    pub(super) fn maps(&self, isa: Isa) -> &Arc<BatMaps<2>> {
        self.maps.get_or_init(|| {
            let permutations = Permutations::new(self.transactions, random_seed());
            Arc::new(BatMaps::new(isa, permutations, self.lists()))
        })
    }

    /// The window of the transactions.
    pub(super) fn window(&self) -> WindowSpan {
        self.window
    }

    /// The least support of a frequent pair.
    pub(super) fn least(&self) -> u32 {
        self.least
    }
}

/// The frequent items by descending support. Equal supports are in the order of the items, so that
/// ranks do not depend on the order of arrival.
struct Ranking {
    /// Per rank.
    numbers: Vec<u32>,
    /// Per rank: the place among the frequent items, sorted.
    places: Vec<u32>,
}

impl Ranking {
    fn new(names: &ItemNames, supports: &[u32], least: u32) -> Self {
        let frequent = (0..).zip(supports).filter(|(_, support)| **support >= least);
        let mut sorted: Vec<u32> = frequent.map(|(number, _)| number).collect();
        names.sort(&mut sorted);
        let mut places: Vec<u32> = (0..narrow(sorted.len())).collect();
        let number = |place: u32| sorted[place as usize];
        // Stable, which keeps items of equal support sorted.
        places.sort_by_key(|&place| Reverse(supports[number(place) as usize]));
        Self { numbers: places.iter().map(|&place| number(place)).collect(), places }
    }
}

/// Replaces the support of each item by the place of its list, or by [`NO_PLACE`]; returns the
/// offsets of the lists of `ranked` items, which have `total` tids.
fn supports_to_places(supports: &mut [u32], ranked: &[u32], least: u32, total: u32) -> Vec<u32> {
    supports.iter_mut().filter(|support| **support < least).for_each(|place| *place = NO_PLACE);
    let mut offsets = Vec::with_capacity(ranked.len() + 1);
    let mut end = total;
    offsets.push(end);
    for &number in ranked.iter().rev() {
        let place = &mut supports[number as usize];
        end -= *place;
        *place = end;
        offsets.push(end);
    }
    offsets.reverse();
    offsets
}

/// The lists of all blocks, one after the other at the places of their items; `total` tids.
fn join<'a>(
    blocks: impl Iterator<Item = &'a TransposedBlock>,
    places: &mut [u32],
    total: u32,
) -> Vec<u32> {
    let mut joined = vec![0; total as usize];
    let mut first = 0;
    for block in blocks {
        for (number, tids) in block.lists() {
            let place = &mut places[number as usize];
            // Both sides are read and written in order, a list at a time.
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
