//! The maps of many sets, end to end, with their side lists.

use std::fmt;

use super::insert::Tables;
use super::map::{BLOCK, Block, Map};
use super::permute::Permutations;
use crate::Isa;
use crate::sets::Sets;

/// The load of a map is `D` times its elements, in percent of its range. At this load, one set in
/// eight has a failed insertion; above it, failures grow with the set (the module has a table).
const LOAD_PERCENT_MAX: u64 = 100;

/// The place of a map.
#[derive(Clone, Copy)]
struct MapEntry {
    /// The first block of the map.
    begin: usize,
    /// The binary logarithm of the blocks of a table.
    table_bits: u32,
}

/// The batmaps of the sets of a collection, for pairs (`D` = 2 or 3) and triples (`D` = 3).
///
/// Each set is a tid list: its tokens are the transactions that contain an item.
///
/// # Examples
///
/// ```
/// use trommel_kernels::Isa;
/// use trommel_kernels::batmap::{BatMaps, Permutations, pair_supports};
/// use trommel_kernels::sets::Sets;
///
/// // Items in the transactions {3, 8, 9} and {2, 3, 5, 8}.
/// let tid_lists = Sets::new(&[0, 3, 7], &[3, 8, 9, 2, 3, 5, 8]);
/// let maps = BatMaps::new(Isa::Scalar, Permutations::<2>::new(10, 0x5EED), tid_lists);
/// assert_eq!((maps.len(), maps.bytes()), (2, 2 * 3 * 64));
/// let mut supports = [0];
/// pair_supports(Isa::Scalar, &maps, 0..1, 1..2, &mut supports);
/// assert_eq!(supports, [2]);
/// ```
#[derive(Clone)]
pub struct BatMaps<const D: usize> {
    permutations: Permutations<D>,
    blocks: Vec<Block>,
    entries: Vec<MapEntry>,
    /// The elements of each set whose insertion failed, ascending.
    side: Vec<u32>,
    /// The end of the side list of each set.
    side_ends: Vec<usize>,
}

impl<const D: usize> fmt::Debug for BatMaps<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BatMaps")
            .field("permutations", &self.permutations)
            .field("len", &self.len())
            .field("bytes", &self.bytes())
            .field("failed_count", &self.failed_count())
            .finish()
    }
}

impl<const D: usize> BatMaps<D> {
    /// Makes the maps of all sets.
    ///
    /// A range is a power of two, and has more than `D` slots in a table for each element. It is at
    /// least [`Permutations::range_min`], and at most the domain, in which no insertion fails.
    ///
    /// # Shapes
    ///
    /// `sets`: tokens below the universe of `permutations`.
    ///
    /// # Cost
    ///
    /// An element takes 8 to 15 ns for `D` = 2 and 15 to 27 ns for `D` = 3 with AVX-512, about 8 ns
    /// more with 128 bits, while its set has at most 100,000 elements; in a set of millions, whose
    /// tables fit no cache, 110 and 190 ns. A map takes `D + 1` B for each slot of its range.
    /// During the call, 4 (`D + 1`) B for each slot of the widest map and 4 `D` + 5 B for each
    /// element of the largest set are in use.
    ///
    /// # Panics
    ///
    /// If `isa` is not available, or a token is not below the universe. Checked once per set.
    #[must_use]
    pub fn new(isa: Isa, permutations: Permutations<D>, sets: Sets<'_>) -> Self {
        Self::with_load(isa, permutations, sets, LOAD_PERCENT_MAX)
    }

    /// As [`Self::new`], with another limit than [`LOAD_PERCENT_MAX`].
    pub(super) fn with_load(
        isa: Isa,
        permutations: Permutations<D>,
        sets: Sets<'_>,
        load_percent: u64,
    ) -> Self {
        let mut tables = Tables::default();
        let mut maps = Self::with_capacity(permutations, sets, load_percent);
        for set in 0..sets.len() {
            let tids = sets.set(set);
            let universe = maps.permutations.universe();
            let last = tids.last().copied().unwrap_or(0);
            assert!(tids.is_empty() || last < universe, "tid {last} in a universe of {universe}");
            let MapEntry { begin, table_bits } = maps.entries[set];
            // Each set grows the memory by its own map, so that the map is in the cache.
            maps.blocks.resize(begin + ((D + 1) << table_bits), Block([0; BLOCK]));
            // Tokens are numbered from 1 on; an empty set needs no number.
            let numbered = (sets.offsets()[set].saturating_add(1), tids);
            let map = &mut maps.blocks[begin..];
            tables.build(isa, &maps.permutations, numbered, map, &mut maps.side);
            maps.side_ends.push(maps.side.len());
        }
        maps
    }

    /// Ranges for all sets, and room for their maps.
    fn with_capacity(permutations: Permutations<D>, sets: Sets<'_>, load_percent: u64) -> Self {
        let (least, most) = (permutations.low_bits(), permutations.domain_bits());
        let (mut entries, mut begin) = (Vec::with_capacity(sets.len()), 0);
        for set in 0..sets.len() {
            let load = (D * sets.set(set).len()) as u64;
            let range = (load * 100 / load_percent + 1).next_power_of_two();
            let table_bits = range.ilog2().clamp(least, most) - BLOCK.ilog2();
            entries.push(MapEntry { begin, table_bits });
            begin += (D + 1) << table_bits;
        }
        let blocks = Vec::with_capacity(begin);
        Self { permutations, blocks, entries, side: Vec::new(), side_ends: Vec::new() }
    }

    /// The number of maps.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is no map.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The bytes of all maps: one byte for each slot.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.blocks.len() * BLOCK
    }

    /// The range of one map: the slots of each of its tables.
    ///
    /// # Panics
    ///
    /// If there is no such map.
    #[must_use]
    pub fn range(&self, map: u32) -> usize {
        self.map(map).range()
    }

    /// The number of failed insertions. Their elements are looked up one by one.
    #[must_use]
    pub fn failed_count(&self) -> usize {
        self.side.len()
    }

    /// The blocks of all maps.
    pub(crate) fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// The first block of a map, and the binary logarithm of the blocks of a table.
    pub(crate) fn place(&self, map: u32) -> (usize, u32) {
        let MapEntry { begin, table_bits } = self.entries[map as usize];
        (begin, table_bits)
    }

    /// The number of elements of a set that are not in its map.
    pub(crate) fn failed_count_of(&self, map: u32) -> usize {
        self.side(map).len()
    }

    /// One map.
    #[inline(always)]
    pub(super) fn map(&self, map: u32) -> Map<'_> {
        let MapEntry { begin, table_bits } = self.entries[map as usize];
        Map { tables: &self.blocks[begin..][..(D + 1) << table_bits], table_bits }
    }

    /// The elements of a set that are not in its map, ascending.
    pub(super) fn side(&self, map: u32) -> &[u32] {
        let begin = (map as usize).checked_sub(1).map_or(0, |before| self.side_ends[before]);
        &self.side[begin..self.side_ends[map as usize]]
    }

    /// The permutations.
    pub(super) fn permutations(&self) -> &Permutations<D> {
        &self.permutations
    }
}
