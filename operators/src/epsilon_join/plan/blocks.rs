//! A join as blocks of rows, which a device answers one by one.
//!
//! ```text
//! of one input    of two inputs    a block with too many pairs
//!   0  2  3         0  5  6          ┌──┬──┐   ┌──┬──┐
//!      1  4         1  4  7          ├──┼──┤   └──┼──┤  on the diagonal of one input
//!         5         2  3  8          └──┴──┘      └──┘
//! ```
//!
//! A block is a square whose side is a power of two of rows, so that two shifts find the block of a
//! pair. The blocks follow by columns, and each column runs in the opposite direction of the column
//! before, so that most blocks share rows with the block before. The pairs of a block are found as
//! a whole or not at all, and a block with too many pairs is split into four blocks. So the plan
//! knows at each time which pairs have been found, and the CPU can find the remaining pairs.

use std::collections::{BTreeSet, HashSet};
use std::ops::Range;

/// A block: 2^`shift` rows of each side. `left` and `right` count such groups of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Block {
    shift: u32,
    left: usize,
    right: usize,
}

impl Block {
    /// The four quarters of the block.
    fn quarters(self) -> [Self; 4] {
        [[0, 0], [0, 1], [1, 0], [1, 1]].map(|[left, right]| Self {
            shift: self.shift - 1,
            left: 2 * self.left + left,
            right: 2 * self.right + right,
        })
    }
}

/// The blocks of a join that are left, and the blocks whose pairs have been found.
#[derive(Debug)]
pub(crate) struct BlockPlan {
    /// Rows of each side.
    lens: [usize; 2],
    is_within: bool,
    /// Blocks that are left; the next block is at the end.
    left: Vec<Block>,
    found: FoundBlocks,
}

impl BlockPlan {
    /// A join of `left` rows with themselves, or with `right` rows, in blocks of 2^`shift` rows.
    pub(crate) fn new(left: usize, right: Option<usize>, shift: u32) -> Self {
        let (lens, is_within) = ([left, right.unwrap_or(left)], right.is_none());
        let found = FoundBlocks::default();
        let mut plan = Self { lens, is_within, left: Vec::new(), found };
        let [rows, columns] = lens.map(|len| len.div_ceil(1 << shift));
        for right in 0..columns {
            let mut column: Vec<Block> =
                (0..rows).map(|left| Block { shift, left, right }).collect();
            if right % 2 == 1 {
                column.reverse();
            }
            column.retain(|block| plan.has(*block));
            plan.left.append(&mut column);
        }
        // The next block is taken from the end.
        plan.left.reverse();
        plan
    }

    /// Whether a block has pairs of the join.
    fn has(&self, block: Block) -> bool {
        let is_above = !self.is_within || block.left <= block.right;
        is_above && self.rows(block).iter().all(|rows| !rows.is_empty())
    }

    /// The rows of both sides of a block.
    pub(crate) fn rows(&self, block: Block) -> [Range<usize>; 2] {
        let rows = |number: usize, len: usize| {
            (number << block.shift).min(len)..((number + 1) << block.shift).min(len)
        };
        [rows(block.left, self.lens[0]), rows(block.right, self.lens[1])]
    }

    /// Takes the next block.
    pub(crate) fn next(&mut self) -> Option<Block> {
        self.left.pop()
    }

    /// Notes that all pairs of a block have been found.
    pub(crate) fn complete(&mut self, block: Block) {
        self.found.shifts.insert(block.shift);
        self.found.blocks.insert(block);
    }

    /// Puts a block back as four blocks.
    pub(crate) fn split(&mut self, block: Block) {
        // The four blocks come next, while their rows are still on the device.
        for part in block.quarters() {
            if self.has(part) {
                self.left.push(part);
            }
        }
    }

    /// The blocks whose pairs have been found.
    pub(crate) fn into_found(self) -> FoundBlocks {
        self.found
    }
}

/// Blocks whose pairs have been found.
#[derive(Debug, Default)]
pub(crate) struct FoundBlocks {
    shifts: BTreeSet<u32>,
    blocks: HashSet<Block>,
}

impl FoundBlocks {
    /// Whether the pair of two rows belongs to a found block.
    pub(crate) fn contain(&self, left: u32, right: u32) -> bool {
        self.shifts.iter().any(|&shift| {
            let [left, right] = [left, right].map(|row| (row >> shift) as usize);
            self.blocks.contains(&Block { shift, left, right })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts how often each pair is in a block, while every third block is split into four.
    fn count(left: usize, right: Option<usize>, shift: u32) {
        let mut plan = BlockPlan::new(left, right, shift);
        let columns = right.unwrap_or(left);
        let mut seen = vec![0; left * columns];
        let mut number = 0;
        while let Some(block) = plan.next() {
            number += 1;
            if number % 3 == 0 && block.shift > 0 {
                plan.split(block);
                continue;
            }
            let [lefts, rights] = plan.rows(block);
            for left in lefts {
                for right in rights.clone() {
                    seen[left * columns + right] += 1;
                }
            }
            plan.complete(block);
        }
        let found = plan.into_found();
        for (at, times) in seen.iter().enumerate() {
            let [left, row] = [at / columns, at % columns];
            let is_pair = right.is_some() || left <= row;
            // Pairs below the diagonal occur only in blocks on the diagonal.
            assert!(*times == 1 || (!is_pair && *times == 0), "{left} {row} {times}");
            let [l, r] = [left, row].map(|row| u32::try_from(row).unwrap());
            assert_eq!(found.contain(l, r), *times == 1);
        }
    }

    #[test]
    fn blocks_have_each_pair_once() {
        for shift in 0..5 {
            for len in [0, 1, 2, 15, 16, 17, 33] {
                count(len, None, shift);
                count(len, Some(9), shift);
                count(9, Some(len), shift);
            }
        }
    }

    #[test]
    fn blocks_share_rows_with_the_one_before() {
        let mut plan = BlockPlan::new(40, Some(40), 3);
        let mut before = plan.next().unwrap();
        while let Some(block) = plan.next() {
            assert!(block.left == before.left || block.right == before.right);
            before = block;
        }
    }
}
