//! Selection: the `rank` smallest numbers come first.

use crate::vectors::levels::{Filter, LANES};

/// Numbers that are ranked one by one; more are partitioned first.
const RANKED_MAX: usize = 64;
/// Numbers that a pivot is chosen from.
const SAMPLES: usize = 15;

/// Reorders distinct numbers below 2^31 so that the `rank` smallest numbers are first. `scratch`
/// has room for the numbers and one more line.
#[inline(always)]
pub(super) fn select<L: Filter>(
    level: L,
    mut numbers: &mut [u32],
    mut rank: usize,
    scratch: &mut [u32],
) {
    while numbers.len() > RANKED_MAX {
        let pivot = pivot(numbers, rank);
        let below = partition(level, numbers, pivot, scratch);
        // The pivot is one of the numbers, so the upper part is never empty; the lower part is
        // empty if the pivot is the smallest number, and then the next pivot is greater.
        if below == rank {
            return;
        }
        if below > rank {
            numbers = &mut numbers[..below];
        } else if below > 0 {
            numbers = &mut numbers[below..];
            rank -= below;
        } else {
            let least = (0..numbers.len()).min_by_key(|&index| numbers[index]).unwrap_or(0);
            numbers.swap(0, least);
            numbers = &mut numbers[1..];
            rank -= 1;
        }
        if rank == 0 {
            return;
        }
    }
    sort(level, numbers, scratch);
}

/// One of the numbers, about as large as the number of this rank.
fn pivot(numbers: &[u32], rank: usize) -> u32 {
    let step = (numbers.len() - 1) / (SAMPLES - 1);
    let mut samples: [u32; SAMPLES] = std::array::from_fn(|index| numbers[index * step]);
    samples.sort_unstable();
    samples[(rank * (SAMPLES - 1) + numbers.len() / 2) / numbers.len()]
}

/// Moves the numbers below `pivot` to the front and returns how many there are.
#[inline(always)]
fn partition<L: Filter>(level: L, numbers: &mut [u32], pivot: u32, scratch: &mut [u32]) -> usize {
    let (mut below, mut rest) = (0, 0);
    let mut at = 0;
    while at + LANES <= numbers.len() {
        let line: [u32; LANES] = *numbers[at..].first_chunk().expect("a line is left");
        let hits = level.below(&line, pivot);
        // The overwritten numbers have been read.
        let front = numbers[below..].first_chunk_mut().expect("at most what was read");
        level.compress(&line, hits, front);
        let back = scratch[rest..].first_chunk_mut().expect("a line more than there are numbers");
        level.compress(&line, !hits & 0xffff, back);
        below += hits.count_ones() as usize;
        at += LANES;
        rest = at - below;
    }
    for index in at..numbers.len() {
        let number = numbers[index];
        if number < pivot {
            numbers[below] = number;
            below += 1;
        } else {
            scratch[rest] = number;
            rest += 1;
        }
    }
    numbers[below..].copy_from_slice(&scratch[..rest]);
    below
}

/// Sorts few numbers: each number goes to its rank, which is the count of smaller numbers.
#[inline(always)]
fn sort<L: Filter>(level: L, numbers: &mut [u32], scratch: &mut [u32]) {
    let lines = numbers.len().div_ceil(LANES);
    let scratch = &mut scratch[..lines * LANES];
    scratch[..numbers.len()].copy_from_slice(numbers);
    // Numbers past the last number are greater than all.
    scratch[numbers.len()..].fill(u32::MAX >> 1);
    let scratch = &*scratch;
    let (lines, _) = scratch.as_chunks();
    for &number in &scratch[..numbers.len()] {
        // The loop is not the sum of an iterator, whose function would lack the instructions of the
        // level.
        let mut smaller = 0;
        for line in lines {
            smaller += level.below(line, number).count_ones();
        }
        numbers[smaller as usize] = number;
    }
}
