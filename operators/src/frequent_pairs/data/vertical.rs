//! The tid lists of the frequent items of a window.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use arrow_array::{Array, ArrayRef};
use thiserror::Error;
use trommel_kernels::Isa;
use trommel_kernels::batmap::{BatMaps, Permutations};
use trommel_kernels::sets::{SetStore, Sets};

use crate::shared::names::secret::random_seed;
use crate::shared::window::borders::WindowSpan;

/// Maximum number of transactions, and maximum sum of the supports of the frequent items.
const COUNT_MAX: u64 = 1 << 31;

/// A window or a stream has too many transactions, items in them, or frequent pairs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("too many {what}: {count}; a window may have at most {COUNT_MAX}")]
pub(crate) struct TooMany {
    what: &'static str,
    count: u64,
}

impl TooMany {
    pub(crate) fn check(what: &'static str, count: u64) -> Result<u32, Self> {
        let fits = u32::try_from(count).ok().filter(|_| count <= COUNT_MAX);
        fits.ok_or(Self { what, count })
    }
}

/// Frequent items and their transactions. An item is named by its *rank*: 0 has the highest
/// support.
#[derive(Debug)]
pub(crate) struct VerticalData {
    lists: SetStore,
    /// The items by rank.
    items: ArrayRef,
    /// Per rank: the place among the frequent items, sorted.
    places: Vec<u32>,
    transactions: u32,
    least: u32,
    window: WindowSpan,
    /// Batmaps, made at the first use.
    maps: OnceLock<Arc<BatMaps<2>>>,
}

impl VerticalData {
    /// The tid lists by rank of `items`. `places` are the places among the sorted items.
    pub(crate) fn new(
        lists: SetStore,
        items: ArrayRef,
        places: Vec<u32>,
        transactions: u32,
        least: u32,
        window: WindowSpan,
    ) -> Self {
        Self { lists, items, places, transactions, least, window, maps: OnceLock::new() }
    }

    /// Tid lists by rank.
    pub(crate) fn lists(&self) -> Sets<'_> {
        self.lists.as_sets()
    }

    /// A number that no other data has.
    pub(crate) fn version(&self) -> u64 {
        self.lists.version()
    }

    /// Number of frequent items.
    pub(crate) fn len(&self) -> u32 {
        narrow(self.places.len())
    }

    /// The items by rank.
    pub(crate) fn items(&self) -> &ArrayRef {
        &self.items
    }

    /// Ranks of a pair or triple, by ascending items.
    pub(crate) fn sorted<const N: usize>(&self, mut ranks: [u32; N]) -> [u32; N] {
        ranks.sort_unstable_by_key(|&rank| self.places[rank as usize]);
        ranks
    }

    /// Support of the item of a rank.
    pub(crate) fn support(&self, rank: u32) -> u32 {
        narrow(self.lists().set(rank as usize).len())
    }

    /// Sum of the supports of some items.
    pub(crate) fn total(&self, ranks: Range<u32>) -> u64 {
        let offsets = self.lists().offsets();
        u64::from(offsets[ranks.end as usize] - offsets[ranks.start as usize])
    }

    /// Bytes of the lists, the items and the batmaps that have been made.
    pub(crate) fn bytes(&self) -> usize {
        let lists = self.lists();
        size_of_val(lists.offsets())
            + size_of_val(lists.tokens())
            + size_of_val(&self.places[..])
            + self.items.get_buffer_memory_size()
            + self.maps.get().map_or(0, |maps| maps.bytes())
    }

    /// Number of transactions.
    pub(crate) fn transactions(&self) -> u32 {
        self.transactions
    }

    /// The batmaps of the items by rank. The first call makes the maps; other threads wait for that
    /// call.
    pub(crate) fn maps(&self, isa: Isa) -> &Arc<BatMaps<2>> {
        self.maps.get_or_init(|| {
            let permutations = Permutations::new(self.transactions, random_seed());
            Arc::new(BatMaps::new(isa, permutations, self.lists()))
        })
    }

    /// The window of the transactions.
    pub(crate) fn window(&self) -> WindowSpan {
        self.window
    }

    /// The least support of a frequent pair.
    pub(crate) fn least(&self) -> u32 {
        self.least
    }
}

#[expect(clippy::cast_possible_truncation, reason = "checked: at most 2^31")]
pub(crate) const fn narrow(count: usize) -> u32 {
    count as u32
}
