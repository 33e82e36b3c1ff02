//! The byte of a slot: the code of the element, and flags that say where it is counted.
//!
//! ```text
//!           bit 7              bit 6               the other bits
//! D = 2     next table         ── code: upper 7 bits of the value, 1 to 127 ──
//! D = 3     misses table 0 *   misses table 1      code: upper 6 bits, 1 to 63
//! empty     0                  0                   0
//! ```
//!
//! `next table`: the other copy of the element is in the table after this one, cyclically.
//! `*`: the flag is also set in all slots of table 0, where elements are always counted.

/// Tables of the largest batmap, `D + 1` for `D` = 3.
pub(super) const TABLES_MAX: usize = 4;

/// Tables in which pairs are counted: all for `D` = 2, and for `D` = 3 all but the last, as two
/// sets cannot miss the three before it.
pub(super) const PAIR_TABLES: usize = 3;

/// Bits of a code.
pub(super) const fn code_bits<const D: usize>() -> u32 {
    if D == 2 { 7 } else { 6 }
}

/// The number of codes, without 0; also the mask of the code in a slot.
pub(super) const fn codes<const D: usize>() -> u8 {
    (1 << code_bits::<D>()) - 1
}

/// The flags of a table: each must be set in at least one of the compared slots.
pub(super) const fn flags<const D: usize>(table: usize) -> u8 {
    match (D, table) {
        (2, _) => NEXT,
        (_, 0 | 1) => MISSES_0,
        _ => MISSES_0 | MISSES_1,
    }
}

/// `D` = 2: the other copy is in the next table.
pub(super) const NEXT: u8 = 1 << 7;
/// `D` = 3: the element misses table 0, or the slot is in it.
pub(super) const MISSES_0: u8 = 1 << 7;
/// `D` = 3: the element misses table 1.
pub(super) const MISSES_1: u8 = 1 << 6;

/// The slot in `table` of an element with this code that is in all tables but `missed`.
#[inline(always)]
pub(super) fn slot<const D: usize>(code: u8, table: usize, missed: usize) -> u8 {
    let flag = |is_set: bool, flag: u8| if is_set { flag } else { 0 };
    if D == 2 {
        // The flag is set if the next table holds the element: then the previous table misses it.
        code | flag(missed == (table + 2) % 3, NEXT)
    } else {
        code | flag(table == 0 || missed == 0, MISSES_0) | flag(missed == 1, MISSES_1)
    }
}
