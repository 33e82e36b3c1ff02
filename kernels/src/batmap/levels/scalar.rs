//! The reference of the comparison: position after position, in the words of the paper.

use crate::batmap::map::Map;
use crate::batmap::slot::{MISSES_0, MISSES_1, NEXT, codes};

/// Counts the common elements that the maps of `K` sets hold; each element counts once.
pub(in crate::batmap) fn count<const D: usize, const K: usize>(maps: [Map<'_>; K]) -> u32 {
    let range = maps.iter().map(|map| map.range()).max().unwrap_or(0);
    let mut count = 0;
    for table in 0..=D {
        for position in 0..range {
            let slots = maps.map(|map| map.slot(table, position));
            count += u32::from(is_counted::<D, K>(table, slots));
        }
    }
    count
}

/// Whether the slots at one position hold the same element, and the element is counted there.
fn is_counted<const D: usize, const K: usize>(table: usize, slots: [u8; K]) -> bool {
    let codes = slots.map(|slot| slot & codes::<D>());
    let is_common = codes[0] != 0 && codes.iter().all(|&code| code == codes[0]);
    if D == 2 {
        is_common && slots.iter().any(|slot| slot & NEXT != 0)
    } else {
        let is_missed = |earlier| slots.iter().any(|&slot| misses(slot, earlier));
        is_common && (0..table).all(is_missed)
    }
}

/// Whether an element that is stored in a later table misses this table.
fn misses(slot: u8, table: usize) -> bool {
    match table {
        0 => slot & MISSES_0 != 0,
        1 => slot & MISSES_1 != 0,
        _ => slot & (MISSES_0 | MISSES_1) == 0,
    }
}
