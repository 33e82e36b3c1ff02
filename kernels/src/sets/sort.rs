//! Sorts many small lists at a time.
//!
//! Lists of similar length are sorted side by side, a list in each lane, by the merge exchange of
//! Batcher (Knuth, *The Art of Computer Programming* 3, §5.2.2, algorithm M). Which rows it
//! compares depends on their number only, so no branch depends on a token:
//!
//! ```text
//!          lane  0  1  2 ... 15
//! row 0          7  3  9      4     exchange(0, 2): the smaller token of each lane goes to row 0,
//! row 1          2  8  1      6     the larger one to row 2
//! row 2          5  1  ∞      0     lists that are shorter end with the largest token
//! ```
//!
//! Departure: lists that are sorted already are passed over; long ones, and the few that find no
//! others of their length, are left to the standard library. So are all lists on the levels
//! `scalar` and `portable`: registers of 128 bits without a minimum of 32-bit lanes are slower.

use crate::Isa;
use crate::simd::{Base, Call, RunOn, dispatch};

/// Lists that are sorted side by side.
const LANES: usize = 16;
/// Longest list that is sorted by lanes: its rows, 64 KiB, stay in the second-level cache.
const ROWS_MAX: usize = 1024;
/// Fewer lists than this are sorted one by one, because empty lanes cost as much as full ones.
const LANES_MIN: usize = 3;

/// The tokens of one place of the lists.
type Row = [u32; LANES];

/// Sorts the tokens of each list, ascending. Equal tokens stay.
///
/// # Shapes
///
/// List `i` is `tokens[offsets[i]..offsets[i + 1]]`, in any order.
///
/// # Examples
///
/// ```
/// use trommel_kernels::Isa;
/// use trommel_kernels::sets::sort_lists;
///
/// let mut tokens = [9, 3, 8, 5, 2, 2];
/// sort_lists(Isa::Scalar, &[0, 3, 6], &mut tokens);
/// assert_eq!(tokens, [3, 8, 9, 2, 2, 5]);
/// ```
///
/// # Cost
///
/// About `log2(n)² / 32` vector exchanges a token of a list of `n`. Allocates 64 KiB, and 4 B a
/// list that is not sorted.
///
/// # Panics
///
/// If `isa` is not available, offsets descend, or the last one is beyond the tokens.
pub fn sort_lists(isa: Isa, offsets: &[u32], tokens: &mut [u32]) {
    match isa {
        Isa::Scalar | Isa::Portable => {
            for ends in offsets.windows(2) {
                tokens[ends[0] as usize..ends[1] as usize].sort_unstable();
            }
        }
        Isa::Avx2 | Isa::Avx512 => dispatch::<Base, _>(isa, SortLists { offsets, tokens }),
    }
}

/// The arguments of [`sort_lists`].
struct SortLists<'a> {
    offsets: &'a [u32],
    tokens: &'a mut [u32],
}

impl Call for SortLists<'_> {
    type Output = ();
}

/// One loop for the levels with vectors, compiled for each: the compiler makes vectors of rows.
impl<L> RunOn<L> for SortLists<'_> {
    #[inline(always)]
    fn run_on(self, _: L) {
        let Self { offsets, tokens } = self;
        let lists = unsorted_by_length(offsets, tokens);
        let Some(&longest) = lists.last() else { return };
        let mut rows = vec![[0; LANES]; length(offsets, longest).min(ROWS_MAX)];
        let mut lists = &lists[..];
        while let Some(&first) = lists.first() {
            let short = length(offsets, first);
            // Rows that only some lanes need are at most a quarter more.
            let fits = |list: &&u32| length(offsets, **list) <= short + short / 4;
            let count = lists.iter().take(LANES).take_while(fits).count();
            let (group, rest) = lists.split_at(count);
            lists = rest;
            let long = length(offsets, group[count - 1]);
            if count < LANES_MIN || long > ROWS_MAX {
                group.iter().for_each(|&list| tokens[range(offsets, list)].sort_unstable());
                continue;
            }
            let rows = &mut rows[..long];
            for (lane, &list) in group.iter().enumerate() {
                load(&tokens[range(offsets, list)], rows, lane);
            }
            merge_exchange(rows);
            for (lane, &list) in group.iter().enumerate() {
                let tokens = &mut tokens[range(offsets, list)];
                tokens.iter_mut().zip(&*rows).for_each(|(token, row)| *token = row[lane]);
            }
        }
    }
}

#[inline(always)]
fn range(offsets: &[u32], list: u32) -> std::ops::Range<usize> {
    offsets[list as usize] as usize..offsets[list as usize + 1] as usize
}

#[inline(always)]
fn length(offsets: &[u32], list: u32) -> usize {
    range(offsets, list).len()
}

/// The lists whose tokens do not ascend, from short to long.
#[inline(always)]
fn unsorted_by_length(offsets: &[u32], tokens: &[u32]) -> Vec<u32> {
    // Starts of the lengths; all lists of `ROWS_MAX` tokens or more share the last one.
    let mut starts = [0_u32; ROWS_MAX + 1];
    let is_sorted = |ends: &[u32]| tokens[ends[0] as usize..ends[1] as usize].is_sorted();
    let class = |ends: &[u32]| ((ends[1] - ends[0]) as usize).min(ROWS_MAX);
    let unsorted: Vec<(u32, usize)> = (0..)
        .zip(offsets.windows(2))
        .filter(|(_, ends)| !is_sorted(ends))
        .map(|(list, ends)| (list, class(ends)))
        .collect();
    for &(_, class) in &unsorted {
        starts[class] += 1;
    }
    let mut start = 0;
    for count in &mut starts {
        start += std::mem::replace(count, start);
    }
    let mut lists = vec![0; unsorted.len()];
    for (list, class) in unsorted {
        lists[starts[class] as usize] = list;
        starts[class] += 1;
    }
    // The last class has several lengths.
    let long = lists.partition_point(|&list| length(offsets, list) < ROWS_MAX);
    lists[long..].sort_unstable_by_key(|&list| length(offsets, list));
    lists
}

/// Writes a list into a lane.
#[inline(always)]
fn load(list: &[u32], rows: &mut [Row], lane: usize) {
    let (rows, rest) = rows.split_at_mut(list.len());
    rows.iter_mut().zip(list).for_each(|(row, &token)| row[lane] = token);
    rest.iter_mut().for_each(|row| row[lane] = u32::MAX);
}

/// Sorts each lane of the rows. A round exchanges the rows `i` and `i + distance` for all `i` with
/// `i & part == phase`.
#[inline(always)]
fn merge_exchange(rows: &mut [Row]) {
    let top = rows.len().next_power_of_two() / 2;
    let mut part = top;
    while part > 0 {
        let (mut width, mut phase, mut distance) = (top, 0, part);
        loop {
            exchange_parts(rows, part, phase, distance);
            if width == part {
                break;
            }
            (distance, width, phase) = (width - part, width / 2, part);
        }
        part /= 2;
    }
}

/// One round: exchanges runs of `part` rows, from `phase` on, with those `distance` rows after.
#[inline(always)]
fn exchange_parts(rows: &mut [Row], part: usize, phase: usize, distance: usize) {
    let mut begin = phase;
    while begin + distance < rows.len() {
        let end = (begin + part).min(rows.len() - distance);
        // A distance is a multiple of its part, so the runs do not overlap.
        let (front, back) = rows.split_at_mut(begin + distance);
        front[begin..end].iter_mut().zip(back).for_each(|(left, right)| exchange(left, right));
        begin += 2 * part;
    }
}

#[inline(always)]
fn exchange(left: &mut Row, right: &mut Row) {
    let (old_left, old_right) = (*left, *right);
    for lane in 0..LANES {
        left[lane] = old_left[lane].min(old_right[lane]);
        right[lane] = old_left[lane].max(old_right[lane]);
    }
}
