//! The sets that candidates name, and which set of a pair is the left one.

use std::sync::Arc;

use crate::pairs::PairSide;
use crate::sets::{SetBlock, SetCollection, Side};

/// The sets that candidate pairs name.
#[derive(Debug, Clone)]
pub enum JoinedSets {
    /// Probes and candidates are of the same collection.
    Collection(Arc<SetCollection>),
    /// Sets of a stream, and earlier ones, whose tokens are numbered alike.
    Stream {
        /// The newer sets.
        probes: Arc<SetBlock>,
        /// The older sets.
        candidates: Arc<SetBlock>,
    },
}

impl JoinedSets {
    /// The sets that entries of a chunk name.
    #[must_use]
    pub fn probes(&self) -> &Arc<SetBlock> {
        match self {
            Self::Collection(sets) => sets.block(),
            Self::Stream { probes, .. } => probes,
        }
    }

    /// The sets that candidates of a chunk name.
    #[must_use]
    pub fn candidates(&self) -> &Arc<SetBlock> {
        match self {
            Self::Collection(sets) => sets.block(),
            Self::Stream { candidates, .. } => candidates,
        }
    }

    /// The left set of a pair and the right one. In a self-join the set with the smaller id is the
    /// left one, in a join of two inputs that of the first input, in a stream the older one.
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

/// A set of a pair.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Partner<'a> {
    sets: &'a SetBlock,
    set: u32,
    /// Side of its columns; those of a stream are on the left.
    side: Side,
}

impl<'a> Partner<'a> {
    pub(crate) fn id(self) -> u32 {
        self.sets.id(self.set)
    }

    pub(crate) fn size(self) -> u32 {
        self.sets.size(self.set)
    }

    /// The set as one side of a row.
    pub(crate) fn as_side(self) -> PairSide<'a> {
        let carried = self.sets.carried(self.side).map(|rows| (rows, self.sets.row(self.set)));
        PairSide { id: self.id(), carried }
    }
}
