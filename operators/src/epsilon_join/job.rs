//! The work of a device: a block of a join, and its answer.

use std::ops::Range;

use trommel_kernels::cuda::vectors::Method;
use trommel_kernels::vectors::Pair;

use super::answer::{LaterRows, PartnerCounts};
use super::blocks::Block;
use super::built::Sides;

/// How a device joins the vectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DevicePlan {
    pub(super) method: Method,
    /// Blocks have 2^`shift` rows of each side.
    pub(super) shift: u32,
    /// Vectors of a store, and number of stores: blocks of vectors in the memory of the device.
    pub(super) store_len: usize,
    pub(super) stores: usize,
}

/// A block of a join for a device.
#[derive(Debug)]
pub(super) struct DeviceJob {
    pub(super) block: Block,
    /// Its rows of both sides.
    pub(super) rows: [Range<usize>; 2],
    pub(super) sides: Sides,
    pub(super) plan: DevicePlan,
    pub(super) partners: Option<PartnerCounts>,
    pub(super) outcome: Outcome,
}

impl DeviceJob {
    /// Whether the rows of both sides are the same.
    pub(super) fn is_within(&self) -> bool {
        self.sides.right.is_none() && self.rows[0] == self.rows[1]
    }

    /// Bytes of the answer.
    pub(super) fn bytes(&self) -> usize {
        if let Outcome::Pairs(pairs) = &self.outcome { size_of_val(&pairs[..]) } else { 0 }
    }

    /// Whether both sides are in one store, one after the other.
    pub(super) fn is_across(&self) -> bool {
        self.plan.method == Method::Tiles && !self.is_within()
    }
}

/// Answer of a device about a block.
#[derive(Debug, Default)]
pub(super) enum Outcome {
    /// The block has not been joined.
    #[default]
    Undone,
    /// The block has too many pairs.
    Full,
    /// All pairs, by rows in the whole.
    Pairs(Vec<Pair>),
    Count(u64),
    /// The number of partners of the rows of each side; of one side, if it is joined with itself.
    Partners([Vec<u32>; 2]),
    Later(LaterRows),
}
