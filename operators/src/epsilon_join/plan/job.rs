//! The work of a device: a block of a join, and its answer.

use std::ops::Range;

use trommel_kernels::cuda::vectors::Method;
use trommel_kernels::vectors::Pair;

use super::blocks::Block;
use crate::epsilon_join::answer::found::{LaterRows, PartnerCounts};
use crate::epsilon_join::data::built::Sides;

/// The way in which a device joins the vectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DevicePlan {
    pub(crate) method: Method,
    /// Blocks have 2^`shift` rows of each side.
    pub(crate) shift: u32,
    /// Vectors of a store, and number of stores: blocks of vectors in the memory of the device.
    pub(crate) store_len: usize,
    pub(crate) stores: usize,
}

/// A block of a join for a device.
#[derive(Debug)]
pub(crate) struct DeviceJob {
    pub(crate) block: Block,
    /// The rows of both sides of the block.
    pub(crate) rows: [Range<usize>; 2],
    pub(crate) sides: Sides,
    pub(crate) plan: DevicePlan,
    pub(crate) partners: Option<PartnerCounts>,
    pub(crate) outcome: Outcome,
}

impl DeviceJob {
    /// Whether the rows of both sides are the same.
    pub(crate) fn is_within(&self) -> bool {
        self.sides.right.is_none() && self.rows[0] == self.rows[1]
    }

    /// Bytes of the answer.
    pub(crate) fn bytes(&self) -> usize {
        if let Outcome::Pairs(pairs) = &self.outcome { size_of_val(&pairs[..]) } else { 0 }
    }

    /// Whether both sides are in one store, the left side before the right side.
    pub(crate) fn is_across(&self) -> bool {
        self.plan.method == Method::Tiles && !self.is_within()
    }
}

/// Answer of a device about a block.
#[derive(Debug, Default)]
pub(crate) enum Outcome {
    /// The block has not been joined.
    #[default]
    Undone,
    /// The block has too many pairs.
    Full,
    /// All pairs; rows are numbered over the whole input.
    Pairs(Vec<Pair>),
    Count(u64),
    /// The number of partners of the rows of each side; the second list is empty if the block joins
    /// rows with themselves.
    Partners([Vec<u32>; 2]),
    Later(LaterRows),
}
