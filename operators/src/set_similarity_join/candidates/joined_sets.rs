//! The sets that the numbers in candidate pairs refer to, and the order of the sets of a pair.

use std::sync::Arc;

use crate::shared::columns::pairs::PairSide;
use crate::shared::sets::{SetBlock, SetCollection, Side};

/// The sets that the numbers in candidate pairs refer to.
#[derive(Debug, Clone)]
pub enum JoinedSets {
    /// Probes and candidates are in one collection.
    Collection(Arc<SetCollection>),
    /// Probes and candidates are in two blocks of a stream, or in one block.
    Stream {
        /// Newer sets.
        probes: Arc<SetBlock>,
        /// Older sets, whose tokens have the same numbers.
        candidates: Arc<SetBlock>,
    },
}

impl JoinedSets {
    /// The sets of the probes.
    #[must_use]
    pub fn probes(&self) -> &Arc<SetBlock> {
        match self {
            Self::Collection(sets) => sets.block(),
            Self::Stream { probes, .. } => probes,
        }
    }

    /// The sets of the candidates.
    #[must_use]
    pub fn candidates(&self) -> &Arc<SetBlock> {
        match self {
            Self::Collection(sets) => sets.block(),
            Self::Stream { candidates, .. } => candidates,
        }
    }

    /// For each set: the number of its copies, if each set stands for all its copies.
    pub(crate) fn copies(&self) -> Option<&[u32]> {
        match self {
            Self::Collection(sets) => sets.copies(),
            Self::Stream { .. } => None,
        }
    }

    /// The left and the right set of a pair. The left set is the set with the smaller id in a
    /// self-join, the set of the first input in a join of two inputs, and the older set in a
    /// stream.
    pub(crate) fn partners(&self, probe: u32, candidate: u32) -> [Partner<'_>; 2] {
        let (probes, candidates) = (self.probes(), self.candidates());
        let is_left = match self {
            Self::Stream { .. } => false,
            Self::Collection(sets) if sets.is_two_sided() => sets.side(probe) == Side::Left,
            Self::Collection(_) => probes.id(probe) < candidates.id(candidate),
        };
        let side = |set| match self {
            Self::Collection(sets) => sets.side(set),
            Self::Stream { .. } => Side::Left,
        };
        let candidate = Partner { sets: candidates, set: candidate, side: side(candidate) };
        let probe = Partner { sets: probes, set: probe, side: side(probe) };
        if is_left { [probe, candidate] } else { [candidate, probe] }
    }
}

/// One set of a pair.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Partner<'a> {
    sets: &'a SetBlock,
    set: u32,
    /// Side of the carried columns of the set; sets of a stream are on the left side.
    side: Side,
}

impl<'a> Partner<'a> {
    pub(crate) fn id(self) -> u32 {
        self.sets.id(self.set)
    }

    pub(crate) fn size(self) -> u32 {
        self.sets.size(self.set)
    }

    /// The set as one side of a row of pairs.
    pub(crate) fn as_side(self) -> PairSide<'a> {
        let carried = self.sets.carried(self.side).map(|rows| (rows, self.sets.row(self.set)));
        PairSide { id: self.id(), carried }
    }
}
