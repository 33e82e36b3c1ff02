//! The cells, in which cold items end and the hits of most monitored items are counted.
//!
//! ```text
//! key ──hash──► place = 4 cell + lane       cell { key │ hits │ alpha[4] }
//!                                            the same key:  hits + weight
//!                                            otherwise:     alpha[lane] + weight, up to the line
//! ```
//!
//! A place belongs to all items that hash to it, and a cell to the items of its four places. A cell
//! has the key of at most one monitored item, the *resident*. A place with further monitored items
//! is marked *crowded*, and every item that misses there goes the slow way. An index, and not a
//! branch, decides which of the sums grows. A sum at its limit and a crowded place are one
//! comparison that fails: the caller then looks at the item itself.
//!
//! # Numbers
//!
//! Sums have 32 bits and one limit, the entry line. Hits are counted from [`NO_HITS`] on, far below
//! 0, and move to the 64-bit counter of the resident when they reach the limit. Alpha counts in
//! units of 2^scale, and weights are rounded up to units: so alpha is an upper bound, and may be
//! too high. The scale is 0 until the line reaches 2^30 - 2. Then the scale keeps the units of the
//! line below that: the scale changes at most 35 times, and a unit is less than a 2^28th of the
//! line. Alpha is never more than the line ([`CellTable::alpha`]).
//!
//! # Vacant cells
//!
//! Every key is that of a possible item, so no key can mean "vacant". The key of a vacant cell is
//! one that hashes to another cell: 0 hashes to cell 0, so 0 marks all cells but that one, and the
//! [upper code](CodeHash::upper_code) of the hash, which hashes elsewhere, marks cell 0.
//!
//! # Keys that are not exact
//!
//! Items that share a key, such as long texts of one hash, may share a cell, which cannot tell such
//! items apart. The cell counts no hits then: each of these items goes the slow way.
//!
//! # Load of a place
//!
//! The hash is drawn at random. Among n keys that were chosen without knowledge of the hash, a key
//! shares its place with at most 2 n / places + 2 n / 2^32 other keys in expectation
//! ([`CodeHash`]). Keys that were chosen with knowledge of the hash can crowd a place; each of
//! these keys then goes the slow way, which costs a look-up in the index.

mod stored;

use trommel_kernels::sieve::{
    Cell, CellKey, Cells, CodeHash, GROUP, LANES, OWN, absorb, absorb_weighted, others_of, place_of,
};
use trommel_kernels::{Isa, prefetch};

/// The mark of a crowded place, in its alpha: above every limit.
const CROWDED: i32 = 1 << 30;

/// The most units of alpha.
const UNITS_MAX: i32 = CROWDED - 2;

/// The sum of a resident whose hits the cell counts, without hits.
const NO_HITS: i32 = i32::MIN;

/// The sum of a resident whose hits the cell does not count: above every limit.
const HITS_ELSEWHERE: i32 = i32::MAX - 1;

/// The cells and the entry line.
#[derive(Clone, Debug)]
pub(super) struct CellTable<K> {
    hash: CodeHash,
    cells: Vec<Cell<K>>,
    /// 32 - log2(places).
    shift: u32,
    /// The line in units, which is the limit of all sums. The caller handles what is above.
    limit: i32,
    line: u64,
    scale: u32,
}

impl<K: CellKey> CellTable<K> {
    /// A table of vacant cells with an entry line of 0. The number of cells is a power of two and
    /// at least 2.
    pub(super) fn new(cells: usize, hash: CodeHash) -> Self {
        assert!(cells >= 2 && cells.is_power_of_two(), "{cells} cells are no power of two above 1");
        let mut vacant = vec![Cell { key: K::small(0), sums: [NO_HITS, 0, 0, 0, 0] }; cells];
        vacant[0].key = K::small(hash.upper_code());
        Self {
            hash,
            cells: vacant,
            shift: u32::BITS - (cells * LANES).ilog2(),
            limit: 0,
            line: 0,
            scale: 0,
        }
    }

    /// Bytes of a table with `cells` cells.
    pub(super) const fn bytes(cells: usize) -> usize {
        cells.saturating_mul(size_of::<Cell<K>>())
    }

    /// Places, four a cell.
    pub(super) fn len(&self) -> usize {
        self.cells.len() * LANES
    }

    /// The place of a key.
    pub(super) fn place(&self, key: K) -> usize {
        place_of(self.hash, self.shift, key)
    }

    /// Fetches the cell of a key into the cache.
    #[inline(always)]
    pub(super) fn prefetch(&self, key: K) {
        prefetch(&self.cells, self.place(key) / LANES);
    }

    /// The largest alpha.
    pub(super) fn alpha_max(&self) -> u64 {
        (0..self.len()).map(|place| self.alpha(place)).max().unwrap_or(0)
    }

    /// The entry line: no alpha is above it.
    pub(super) fn line(&self) -> u64 {
        self.line
    }

    /// Counts items with their weights, or once each, except items whose sum would pass the limit.
    /// `refused` gets a bit for each of these, [`GROUP`] bits a word.
    #[inline]
    pub(super) fn absorb(
        &mut self,
        isa: Isa,
        keys: &[K],
        weights: Option<&[u64]>,
        refused: &mut Vec<u64>,
    ) {
        refused.resize(keys.len().div_ceil(GROUP), 0);
        let Self { hash, ref mut cells, limit, scale, .. } = *self;
        let cells = Cells { hash, cells, limit, scale };
        match weights {
            None => absorb(isa, cells, keys, refused),
            Some(weights) => absorb_weighted(isa, cells, keys, weights, refused),
        }
    }

    /// Whether an item with this key may be monitored.
    pub(super) fn may_hold(&self, place: usize, key: K) -> bool {
        self.is_resident(place, key) || self.is_crowded(place)
    }

    pub(super) fn is_resident(&self, place: usize, key: K) -> bool {
        self.cells[place / LANES].key == key
    }

    fn is_crowded(&self, place: usize) -> bool {
        self.marked_units(place) & CROWDED != 0
    }

    /// Hits of the key that are not in its counter.
    pub(super) fn hits(&self, key: K) -> u64 {
        let cell = &self.cells[self.place(key) / LANES];
        if cell.key == key { hits_of(cell).into() } else { 0 }
    }

    /// The hits of the key that are not in its counter, which the cell forgets.
    pub(super) fn take_hits(&mut self, key: K) -> u64 {
        let hits = self.hits(key);
        if hits > 0 {
            let place = self.place(key);
            self.cells[place / LANES].sums[OWN] = NO_HITS;
        }
        hits
    }

    /// Upper bound of the true count of an unmonitored item of the place.
    pub(super) fn alpha(&self, place: usize) -> u64 {
        self.line.min(wide(self.units(place)).saturating_mul(1 << self.scale))
    }

    /// Adds `weight` to alpha if the sum does not pass the line. Otherwise returns false and
    /// changes nothing.
    pub(super) fn add_alpha(&mut self, place: usize, weight: u64) -> bool {
        let sum = sum_within(self.limit, self.units(place), units(weight, self.scale));
        if let Some(sum) = sum {
            self.set_units(place, sum);
        }
        sum.is_some()
    }

    /// Raises the line if it is below `line`.
    pub(super) fn raise_line(&mut self, line: u64) {
        if line <= self.line {
            return;
        }
        self.line = line;
        let scale = (u64::BITS - (line / wide(UNITS_MAX)).leading_zeros()).max(self.scale);
        if scale > self.scale {
            self.rescale(scale);
        }
        self.limit = narrow(line >> scale);
    }

    #[cold]
    fn rescale(&mut self, scale: u32) {
        let change = scale - self.scale;
        for place in 0..self.len() {
            self.set_units(place, narrow(units(wide(self.units(place)), change)));
        }
        self.scale = scale;
    }

    /// Houses the key of a newly monitored item in its cell: the key becomes the resident, or its
    /// place becomes crowded. The cell counts hits if the key `is_exact`.
    pub(super) fn house(&mut self, place: usize, key: K, is_exact: bool) {
        let vacant = self.vacant(place / LANES);
        let cell = &mut self.cells[place / LANES];
        if cell.key == vacant {
            cell.key = key;
            cell.sums[OWN] = no_hits(is_exact);
        } else {
            *self.marked_units_mut(place) |= CROWDED;
        }
    }

    /// Notes that the item is monitored no more. Its true count is at most `count`, which is at
    /// most the line. The caller has taken the hits of the item.
    pub(super) fn evict(&mut self, key: K, count: u64) {
        debug_assert!(count <= self.line, "{count} is above the line {}", self.line);
        let place = self.place(key);
        let alpha = self.units(place).max(narrow(units(count, self.scale)));
        self.set_units(place, alpha);
        if self.is_resident(place, key) {
            self.cells[place / LANES].key = self.vacant(place / LANES);
        }
    }

    /// Chooses the residents again: among the items of a cell the item with the largest of
    /// `counts`, and among equals the first. The caller has taken all hits. O(cells).
    ///
    /// `key` returns the key of an item by its slot, and `is_exact` whether an item has that key
    /// alone.
    pub(super) fn rehouse(
        &mut self,
        counts: &[u64],
        key: impl Fn(u32) -> K,
        is_exact: impl Fn(K) -> bool,
    ) {
        self.vacate();
        // Until all residents are chosen, a cell has the slot of its resident in place of hits.
        for (slot, count) in (0..).zip(counts) {
            let key = key(slot);
            let place = self.place(key);
            let vacant = self.vacant(place / LANES);
            let cell = &mut self.cells[place / LANES];
            let (resident, own) = (cell.key, cell.sums[OWN].cast_unsigned());
            let is_first = resident == vacant;
            let is_chosen = is_first || *count > counts[own as usize];
            if is_chosen {
                (cell.key, cell.sums[OWN]) = (key, slot.cast_signed());
            }
            if !is_first {
                let place = if is_chosen { self.place(resident) } else { place };
                *self.marked_units_mut(place) |= CROWDED;
            }
        }
        for cell in &mut self.cells {
            cell.sums[OWN] = no_hits(is_exact(cell.key));
        }
    }

    fn vacate(&mut self) {
        for index in 0..self.cells.len() {
            self.cells[index].key = self.vacant(index);
        }
        for place in 0..self.len() {
            *self.marked_units_mut(place) &= !CROWDED;
        }
    }

    /// Bytes on the heap.
    pub(super) fn heap_bytes(&self) -> usize {
        Self::bytes(self.cells.capacity())
    }

    /// A key that no item of the cell has.
    fn vacant(&self, cell: usize) -> K {
        K::small(if cell == 0 { self.hash.upper_code() } else { 0 })
    }

    fn units(&self, place: usize) -> i32 {
        self.marked_units(place) & !CROWDED
    }

    fn set_units(&mut self, place: usize, units: i32) {
        let alpha = self.marked_units_mut(place);
        *alpha = (*alpha & CROWDED) | units;
    }

    /// The alpha of a place in units, with the mark.
    fn marked_units(&self, place: usize) -> i32 {
        self.cells[place / LANES].sums[others_of(place)]
    }

    fn marked_units_mut(&mut self, place: usize) -> &mut i32 {
        &mut self.cells[place / LANES].sums[others_of(place)]
    }
}

/// The sum of a resident without hits.
fn no_hits(is_exact: bool) -> i32 {
    if is_exact { NO_HITS } else { HITS_ELSEWHERE }
}

/// Hits that the cell counts of its resident.
fn hits_of<K>(cell: &Cell<K>) -> u32 {
    if cell.sums[OWN] == HITS_ELSEWHERE { 0 } else { cell.sums[OWN].abs_diff(NO_HITS) }
}

/// A weight in units of 2^scale, rounded up.
fn units(weight: u64, scale: u32) -> u64 {
    let is_rounded = weight & ((1 << scale) - 1) != 0;
    (weight >> scale) + u64::from(is_rounded)
}

/// The sum of `sum` and `added`; `None` if the sum is above the limit.
fn sum_within(limit: i32, sum: i32, added: u64) -> Option<i32> {
    let sum = i64::from(sum).checked_add_unsigned(added)?;
    i32::try_from(sum).ok().filter(|&sum| sum <= limit)
}

/// Units that the scale keeps within 30 bits.
fn narrow(units: u64) -> i32 {
    i32::try_from(units)
        .ok()
        .filter(|&units| units <= UNITS_MAX)
        .expect("the scale keeps the line below the largest units")
}

/// Units, which are never below 0.
fn wide(units: i32) -> u64 {
    units.unsigned_abs().into()
}
