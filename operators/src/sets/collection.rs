//! Sets that are ready to be joined.

use std::sync::Arc;

use trommel_kernels::sets::{SetStore, Sets};

use super::block::SetBlock;
use super::side::Side;
use crate::budget::Budget;
use crate::carry::CarriedRows;

/// Sets sorted by size, tokens numbered by ascending frequency.
///
/// Made by [`SetCollector`](super::SetCollector). The number of a set is its place in this order:
/// of two sets the one with the greater number is at least as large.
#[derive(Debug)]
pub struct SetCollection {
    block: Arc<SetBlock>,
    sides: Vec<Side>,
    is_two_sided: bool,
    distinct: u32,
    unshared: u32,
    /// The sizes that occur, ascending.
    sizes: Vec<SizeRun>,
    budget: Budget,
}

/// The sets of one size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SizeRun {
    pub(crate) size: u32,
    /// Number of the first set.
    pub(crate) begin: u32,
    /// Number after the last set.
    pub(crate) end: u32,
}

/// Sets in their order, as they are added.
#[derive(Debug)]
pub(super) struct SortedSets {
    offsets: Vec<u32>,
    tokens: Vec<u32>,
    ids: Vec<u32>,
    sides: Vec<Side>,
}

impl SortedSets {
    pub(super) fn with_capacity(sets: usize, tokens: usize) -> Self {
        let mut offsets = Vec::with_capacity(sets + 1);
        offsets.push(0);
        let (ids, sides) = (Vec::with_capacity(sets), Vec::with_capacity(sets));
        Self { offsets, tokens: Vec::with_capacity(tokens), ids, sides }
    }

    /// Adds a set that is not smaller than the last one.
    pub(super) fn push(&mut self, side: Side, id: u32, tokens: &[u32]) {
        self.tokens.extend_from_slice(tokens);
        self.offsets.push(u32::try_from(self.tokens.len()).expect("at most 2^31 tokens"));
        self.ids.push(id);
        self.sides.push(side);
    }

    /// The collection. `distinct` tokens occur, and the first `unshared` of them in no pair.
    pub(super) fn finish(
        self,
        is_two_sided: bool,
        [distinct, unshared]: [u32; 2],
        budget: Budget,
    ) -> SetCollection {
        let mut sizes: Vec<SizeRun> = Vec::new();
        for (set, ends) in (0..).zip(self.offsets.windows(2)) {
            let size = ends[1] - ends[0];
            match sizes.last_mut() {
                Some(run) if run.size == size => run.end = set + 1,
                _ => sizes.push(SizeRun { size, begin: set, end: set + 1 }),
            }
        }
        let Self { offsets, tokens, ids, sides } = self;
        let block = Arc::new(SetBlock::new(SetStore::new(offsets, tokens), ids, None));
        SetCollection { block, sides, is_two_sided, distinct, unshared, sizes, budget }
    }
}

impl SetCollection {
    /// Attaches `columns`. Ids have named rows of a side so far, and become those of `ids`, per
    /// side and row.
    pub(crate) fn carry(&mut self, ids: &[Vec<u32>; 2], columns: [CarriedRows; 2]) {
        let Self { block, sides, .. } = self;
        let block = Arc::get_mut(block).expect("no chunk names the sets yet");
        block.carry(|set, row| ids[sides[set].index()][row as usize], columns);
    }

    /// The sets without their order.
    #[must_use]
    pub fn block(&self) -> &Arc<SetBlock> {
        &self.block
    }

    /// Number of sets; empty ones are left out.
    #[must_use]
    pub fn len(&self) -> usize {
        self.block.len()
    }

    /// Whether there is no set.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.block.is_empty()
    }

    /// Number of tokens of all sets.
    #[must_use]
    pub fn tokens(&self) -> usize {
        self.block.tokens()
    }

    /// Whether it is joined to another input, instead of to itself.
    #[must_use]
    pub fn is_two_sided(&self) -> bool {
        self.is_two_sided
    }

    /// The sets, laid end to end.
    #[inline]
    #[must_use]
    pub fn sets(&self) -> Sets<'_> {
        self.block.sets()
    }

    /// Tokens of a set.
    #[inline]
    pub(crate) fn set(&self, set: u32) -> &[u32] {
        self.block.set(set)
    }

    /// Number of tokens of a set.
    #[inline]
    pub(crate) fn size(&self, set: u32) -> u32 {
        self.block.size(set)
    }

    /// Side of a set.
    #[inline]
    pub(crate) fn side(&self, set: u32) -> Side {
        self.sides[set as usize]
    }

    /// Side on which a set of `side` finds its partners.
    #[inline]
    pub(crate) fn partner_side(&self, side: Side) -> Side {
        match side {
            Side::Left if self.is_two_sided => Side::Right,
            Side::Left | Side::Right => Side::Left,
        }
    }

    /// Number of sides that have indexes: 1 or 2.
    pub(crate) fn sides(&self) -> usize {
        1 + usize::from(self.is_two_sided)
    }

    /// One more than the greatest token.
    pub(crate) fn distinct(&self) -> u32 {
        self.distinct
    }

    /// Below this, a token is in no two sets that could be a pair.
    pub(crate) fn unshared(&self) -> u32 {
        self.unshared
    }

    pub(crate) fn sizes(&self) -> &[SizeRun] {
        &self.sizes
    }

    /// Memory that the sets leave.
    pub(crate) fn budget(&self) -> Budget {
        self.budget
    }
}
