//! Elements whose insertion failed, compared one by one.
//!
//! A common element that is in the side list of a set is in no slot of that set, so the maps do not
//! count it. It is counted at the first set that has the element in its side list:
//!
//! ```text
//! for each set i, for each x in side(i):  x in the maps of all sets before i,
//!                                         x in the map or the side list of all sets after i
//! ```

use std::ops::Range;

use super::maps::BatMaps;
use super::slot::TABLES_MAX;

/// An element of a side list.
struct Failed {
    tid: u32,
    values: [u32; TABLES_MAX],
}

/// The side list of a set, with the values of its elements.
fn failed_of<const D: usize>(maps: &BatMaps<D>, set: u32) -> impl Iterator<Item = Failed> {
    let side = maps.side(set).iter();
    side.map(|&tid| Failed { tid, values: maps.permutations().values(tid) })
}

impl Failed {
    /// Whether the element is in the map of a set.
    fn is_in_map<const D: usize>(&self, maps: &BatMaps<D>, set: u32) -> bool {
        maps.map(set).holds(maps.permutations(), &self.values)
    }

    /// Whether the element is in a set.
    fn is_in<const D: usize>(&self, maps: &BatMaps<D>, set: u32) -> bool {
        self.is_in_map(maps, set) || maps.side(set).binary_search(&self.tid).is_ok()
    }
}

/// Adds the common elements that are not in both maps, for each pair of a rectangle.
pub(super) fn add_pairs<const D: usize>(
    maps: &BatMaps<D>,
    rows: Range<u32>,
    columns: Range<u32>,
    supports: &mut [u32],
) {
    let width = columns.len();
    for (row, supports) in rows.clone().zip(supports.chunks_mut(width.max(1))) {
        for failed in failed_of(maps, row) {
            for (column, support) in columns.clone().zip(&mut *supports) {
                *support += u32::from(failed.is_in(maps, column));
            }
        }
    }
    for (index, column) in columns.enumerate() {
        for failed in failed_of(maps, column) {
            for (row, support) in rows.clone().zip(supports[index..].iter_mut().step_by(width)) {
                *support += u32::from(failed.is_in_map(maps, row));
            }
        }
    }
}

/// The number of common elements of three sets that a map lacks.
pub(super) fn count_triple(maps: &BatMaps<3>, triple: [u32; 3]) -> u32 {
    let mut count = 0;
    for (index, &set) in triple.iter().enumerate() {
        let (before, after) = (&triple[..index], &triple[index + 1..]);
        for failed in failed_of(maps, set) {
            let is_first = before.iter().all(|&set| failed.is_in_map(maps, set));
            let is_common = is_first && after.iter().all(|&set| failed.is_in(maps, set));
            count += u32::from(is_common);
        }
    }
    count
}
