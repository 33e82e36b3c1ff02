//! The cells: where cold items end, and where the hits of most monitored items are counted.
//!
//! ```text
//! code ──hash──► cell { key, hits, alpha }      key == code:  hits + weight
//!                                               otherwise:    alpha + weight, up to the entry line
//! ```
//!
//! A cell belongs to all items that hash to it. It lends its key to at most one monitored item, the
//! *resident*; a cell with further monitored items is marked *crowded*, and every item that misses
//! there goes the slow way. Which of the two sums grows is an index and not a branch, and both ends
//! (a sum at its limit, a crowded cell) are one comparison that fails: the caller then looks at the
//! item itself.
//!
//! # Numbers
//!
//! Sums have 32 bits. Hits are handed over to the 64-bit counter of the resident when they reach
//! [`HITS_MAX`]. Alpha counts in units of 2^scale, and weights are rounded up to units: it is an
//! upper bound, and may be too high. The scale is 0 until the entry line reaches 2^31 - 2, and then
//! keeps its units below that: it changes at most 34 times, and a unit is less than a 2^29th of
//! the line. Alpha is never more than the line
//! ([`Table::alpha`]).
//!
//! # Vacant cells
//!
//! Every code is a possible item, so that none can mean "vacant". The key of a vacant cell is a
//! code that hashes to another cell: 0 hashes to cell 0, so that 0 marks all cells but that one,
//! and the [upper code](CodeHash::upper_code) of the hash, which hashes elsewhere, marks that one.
//!
//! # Load of a cell
//!
//! The hash is drawn at random. Of n codes that were chosen without knowledge of it, a code shares
//! its cell with at most 2 n / cells + 2 n / 2^32 others in expectation ([`CodeHash`]). Codes that
//! were chosen with knowledge of it can crowd a cell; each of them then goes the slow way, which
//! costs a look-up in the index.

mod stored;

use trommel_kernels::Isa;
use trommel_kernels::filter::Key;
use trommel_kernels::sieve::{Cell, CodeHash, OTHERS, OWN, absorb, cell_of};

/// The mark of a crowded cell, in its alpha.
const CROWDED: u32 = 1 << 31;

/// The most units of alpha: with the mark, it has to be above every limit after one more.
const UNITS_MAX: u32 = CROWDED - 2;

/// Hits of a resident that a cell can hold.
const HITS_MAX: u32 = u32::MAX >> 1;

/// The index of the hits, and of alpha, in the sums and limits.
const HITS: usize = OWN;
const ALPHA: usize = OTHERS;

/// The cells and the entry line. The cell of a code is its index here.
#[derive(Clone, Debug)]
pub(super) struct Table<C> {
    hash: CodeHash,
    cells: Vec<Cell<C>>,
    /// 32 - log2(cells).
    shift: u32,
    /// Limits of the hits and of the alpha of a cell; the caller handles sums beyond.
    limits: [u32; 2],
    line: u64,
    scale: u32,
}

impl<C: Key> Table<C> {
    /// Vacant cells, a power of two and at least 2 of them, with an entry line of 0. Hits are
    /// counted in cells only if `code_is_item`.
    pub(super) fn new(cells: usize, hash: CodeHash, code_is_item: bool) -> Self {
        assert!(cells >= 2 && cells.is_power_of_two(), "{cells} cells are no power of two above 1");
        let mut vacant = vec![Cell::default(); cells];
        vacant[0].key = C::from(hash.upper_code());
        Self {
            hash,
            cells: vacant,
            shift: u32::BITS - cells.ilog2(),
            limits: [if code_is_item { HITS_MAX } else { 0 }, 0],
            line: 0,
            scale: 0,
        }
    }

    /// Bytes of a table with `cells` cells.
    pub(super) const fn bytes(cells: usize) -> usize {
        cells.saturating_mul(size_of::<Cell<C>>())
    }

    pub(super) fn len(&self) -> usize {
        self.cells.len()
    }

    pub(super) fn cell(&self, code: C) -> usize {
        cell_of(self.hash, self.shift, code)
    }

    /// The largest alpha.
    pub(super) fn alpha_max(&self) -> u64 {
        (0..self.cells.len()).map(|cell| self.alpha(cell)).max().unwrap_or(0)
    }

    /// The entry line: no alpha is above it.
    pub(super) fn line(&self) -> u64 {
        self.line
    }

    /// Counts items of weight 1 from position `start` on, up to the first one whose sum would pass
    /// its limit; returns the position of that one, or the end.
    #[inline]
    pub(super) fn absorb(&mut self, isa: Isa, codes: &[C], start: usize) -> usize {
        absorb(isa, self.hash, &mut self.cells, self.limits, codes, start)
    }

    /// The same with weights.
    #[inline]
    pub(super) fn absorb_weighted(&mut self, codes: &[C], weights: &[u64], start: usize) -> usize {
        let Self { hash, cells, shift, limits, scale, .. } = self;
        let weighted = codes.iter().zip(weights).skip(start);
        for (position, (&code, &weight)) in (start..).zip(weighted) {
            let cell = &mut cells[cell_of(*hash, *shift, code)];
            // An index instead of a branch, which every other item of a cell would mispredict.
            let sum = usize::from(cell.key != code);
            let added = [weight, units(weight, *scale)][sum];
            match u32::try_from(u64::from(cell.sums[sum]).saturating_add(added)) {
                Ok(next) if next <= limits[sum] => cell.sums[sum] = next,
                _ => return position,
            }
        }
        codes.len()
    }

    /// Whether an item with this code may be monitored.
    pub(super) fn may_hold(&self, cell: usize, code: C) -> bool {
        self.is_resident(cell, code) || self.is_crowded(cell)
    }

    pub(super) fn is_resident(&self, cell: usize, code: C) -> bool {
        self.cells[cell].key == code
    }

    fn is_crowded(&self, cell: usize) -> bool {
        self.cells[cell].sums[ALPHA] & CROWDED != 0
    }

    /// Hits of the code that are not in its counter.
    pub(super) fn hits(&self, code: C) -> u64 {
        let cell = self.cells[self.cell(code)];
        if cell.key == code { cell.sums[HITS].into() } else { 0 }
    }

    /// The same, and forgets them.
    pub(super) fn take_hits(&mut self, code: C) -> u64 {
        let cell = self.cell(code);
        let cell = &mut self.cells[cell];
        if cell.key == code { std::mem::take(&mut cell.sums[HITS]).into() } else { 0 }
    }

    /// The most that an unmonitored item of the cell has been seen.
    pub(super) fn alpha(&self, cell: usize) -> u64 {
        self.line.min(u64::from(self.units(cell)).saturating_mul(1 << self.scale))
    }

    /// Adds to alpha if it does not pass the line; otherwise false, and nothing happens.
    pub(super) fn add_alpha(&mut self, cell: usize, weight: u64) -> bool {
        let sum = u64::from(self.units(cell)).saturating_add(units(weight, self.scale));
        match u32::try_from(sum) {
            Ok(sum) if sum <= self.limits[ALPHA] => {
                self.set_units(cell, sum);
                true
            }
            _ => false,
        }
    }

    /// Raises the line if it is below `line`.
    pub(super) fn raise_line(&mut self, line: u64) {
        if line <= self.line {
            return;
        }
        self.line = line;
        let scale = (u64::BITS - (line / u64::from(UNITS_MAX)).leading_zeros()).max(self.scale);
        if scale > self.scale {
            self.rescale(scale);
        }
        self.limits[ALPHA] = narrow(line >> scale);
    }

    #[cold]
    fn rescale(&mut self, scale: u32) {
        let change = scale - self.scale;
        for cell in 0..self.cells.len() {
            self.set_units(cell, narrow(units(self.units(cell).into(), change)));
        }
        self.scale = scale;
    }

    /// Makes room in its cell for the code of a newly monitored item: it becomes the resident, or
    /// the cell crowded.
    pub(super) fn house(&mut self, cell: usize, code: C) {
        if self.cells[cell].key == self.vacant(cell) {
            self.cells[cell].key = code;
        } else {
            self.cells[cell].sums[ALPHA] |= CROWDED;
        }
    }

    /// The item is monitored no more; it was seen at most `count` times, which is at most the line.
    /// Its hits must have been taken.
    pub(super) fn evict(&mut self, code: C, count: u64) {
        debug_assert!(count <= self.line, "{count} is above the line {}", self.line);
        let cell = self.cell(code);
        let alpha = self.units(cell).max(narrow(units(count, self.scale)));
        self.set_units(cell, alpha);
        if self.is_resident(cell, code) {
            self.cells[cell].key = self.vacant(cell);
        }
    }

    /// Vacates all cells; hits must have been taken.
    pub(super) fn vacate(&mut self) {
        for index in 0..self.cells.len() {
            self.cells[index].key = self.vacant(index);
            self.cells[index].sums[ALPHA] &= !CROWDED;
        }
    }

    /// Bytes on the heap.
    pub(super) fn heap_bytes(&self) -> usize {
        Self::bytes(self.cells.capacity())
    }

    /// A key that no item of the cell has.
    fn vacant(&self, cell: usize) -> C {
        C::from(if cell == 0 { self.hash.upper_code() } else { 0 })
    }

    fn units(&self, cell: usize) -> u32 {
        self.cells[cell].sums[ALPHA] & !CROWDED
    }

    fn set_units(&mut self, cell: usize, units: u32) {
        let alpha = &mut self.cells[cell].sums[ALPHA];
        *alpha = (*alpha & CROWDED) | units;
    }
}

/// A weight in units of 2^scale, rounded up.
#[inline(always)]
fn units(weight: u64, scale: u32) -> u64 {
    let is_rounded = weight & ((1 << scale) - 1) != 0;
    (weight >> scale) + u64::from(is_rounded)
}

/// Units that the scale keeps within 31 bits.
fn narrow(units: u64) -> u32 {
    u32::try_from(units)
        .ok()
        .filter(|&units| units <= UNITS_MAX)
        .expect("the scale keeps the line below the largest units")
}
