//! Collections: sets in the order that joins need.

use std::sync::Arc;

use trommel_kernels::memory::Part;
use trommel_kernels::prefetch;
use trommel_kernels::sets::{SetStore, Sets};

use super::arrival::numbering::TokenCounts;
use super::block::SetBlock;
use super::side::Side;
use crate::shared::budget::Budget;
use crate::shared::columns::carry::CarriedRows;

/// Number of sets between the set that is read and the set that is prefetched.
pub(crate) const SETS_AHEAD: u32 = 16;

/// Tokens of a cache line.
const LINE: usize = 64 / size_of::<u32>();

/// Sets sorted by ascending size, with tokens numbered by ascending frequency.
///
/// The call of [`SetCollector::finish`](super::SetCollector::finish) makes a collection. The number
/// of a set is its place in this order: of two sets, the set with the higher number is at least as
/// large.
///
/// # Examples
/// ```
/// use trommel_operators::set_similarity_join::{SetCollector, Side};
///
/// let mut sets = SetCollector::new(1 << 20);
/// sets.push(Side::Left, 7, &[10, 20, 30])?;
/// sets.push(Side::Left, 8, &[20])?;
/// let sets = sets.finish()?;
/// // The smaller set comes first, and the most frequent token has the highest number.
/// assert_eq!(sets.sets().set(0), [2]);
/// assert_eq!(sets.sets().set(1), [0, 1, 2]);
/// assert_eq!((sets.len(), sets.tokens()), (2, 4));
/// # Ok::<(), trommel_operators::set_similarity_join::SetError>(())
/// ```
#[derive(Debug)]
pub struct SetCollection {
    block: Arc<SetBlock>,
    sides: Vec<Side>,
    is_two_sided: bool,
    /// Number of different tokens.
    distinct: u32,
    /// Number of tokens that no two sets of a pair have in common. These tokens have the lowest
    /// numbers.
    unshared: u32,
    /// Sizes that occur, ascending.
    sizes: Vec<SizeRun>,
    /// For each set, the number of its copies, if each set stands for all of its copies.
    copies: Option<Vec<u32>>,
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

/// Consecutive sets of a collection, to be appended in order. Several parts can be filled at the
/// same time.
#[derive(Debug)]
pub(crate) struct SortedPart {
    /// Number of tokens up to the last set, including the tokens of earlier parts.
    end: u32,
    offsets: Part<u32>,
    tokens: Part<u32>,
    ids: Part<u32>,
    sides: Part<Side>,
}

impl SortedPart {
    /// Parts of one collection, at least one, for these numbers of sets and tokens.
    pub(crate) fn split(parts: &[(usize, usize)]) -> Vec<Self> {
        let sets = || parts.iter().map(|&(sets, _)| sets);
        let tokens = Part::split(parts.iter().map(|&(_, tokens)| tokens));
        let (ids, sides) = (Part::split(sets()), Part::split(sets()));
        // The first part begins with the start of the first set; then each set adds its end.
        let firsts = (0..parts.len()).map(|part| usize::from(part == 0));
        let offsets = Part::split(sets().zip(firsts).map(|(sets, first)| sets + first));
        let mut end = 0;
        let all = offsets.into_iter().zip(tokens).zip(ids.into_iter().zip(sides)).zip(parts);
        let mut split: Vec<Self> = all
            .map(|(((offsets, tokens), (ids, sides)), &(_, len))| {
                let part = Self { end, offsets, tokens, ids, sides };
                end += narrow(len);
                part
            })
            .collect();
        split[0].offsets.push(0);
        split
    }

    /// Appends a set that is at least as large as the last set.
    #[inline]
    pub(crate) fn push(&mut self, side: Side, id: u32, tokens: &[u32]) {
        self.tokens.extend_from_slice(tokens);
        self.end += narrow(tokens.len());
        self.offsets.push(self.end);
        self.ids.push(id);
        self.sides.push(side);
    }

    /// The collection of all parts, which are full.
    pub(crate) fn join(
        parts: Vec<Self>,
        is_two_sided: bool,
        TokenCounts { distinct, unshared }: TokenCounts,
        budget: Budget,
    ) -> SetCollection {
        let (mut all_offsets, mut all_tokens) = (Vec::new(), Vec::new());
        let (mut all_ids, mut all_sides) = (Vec::new(), Vec::new());
        for Self { offsets, tokens, ids, sides, .. } in parts {
            all_offsets.push(offsets);
            all_tokens.push(tokens);
            all_ids.push(ids);
            all_sides.push(sides);
        }
        let (offsets, tokens) = (Part::join(all_offsets), Part::join(all_tokens));
        let (ids, sides) = (Part::join(all_ids), Part::join(all_sides));
        let mut sizes: Vec<SizeRun> = Vec::new();
        for (set, ends) in (0..).zip(offsets.windows(2)) {
            let size = ends[1] - ends[0];
            match sizes.last_mut() {
                Some(run) if run.size == size => run.end = set + 1,
                _ => sizes.push(SizeRun { size, begin: set, end: set + 1 }),
            }
        }
        let block = Arc::new(SetBlock::new(SetStore::new(offsets, tokens), ids, None));
        let copies = None;
        SetCollection { block, sides, is_two_sided, distinct, unshared, sizes, copies, budget }
    }
}

fn narrow(tokens: usize) -> u32 {
    u32::try_from(tokens).expect("at most 2^31 tokens")
}

impl SetCollection {
    /// Attaches `columns`. So far, the ids of the sets are rows of their side. `ids` gives the id
    /// of a set from its side and its row.
    pub(crate) fn carry(&mut self, ids: &[Vec<u32>; 2], columns: [CarriedRows; 2]) {
        let Self { block, sides, .. } = self;
        let block = Arc::get_mut(block).expect("no chunk refers to the sets yet");
        block.carry(|set, row| ids[sides[set].index()][row as usize], columns);
    }

    /// The block of the sets.
    #[must_use]
    pub fn block(&self) -> &Arc<SetBlock> {
        &self.block
    }

    /// Number of sets; empty sets are left out.
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

    /// Whether only pairs of a left and a right set are results.
    #[must_use]
    pub fn is_two_sided(&self) -> bool {
        self.is_two_sided
    }

    /// The sets in the form of the kernels.
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

    /// Prefetches the first tokens of `set`, if there is such a set.
    ///
    /// The call is for passes over the prefixes of all sets, which lie too far apart for the
    /// processor to fetch them by itself.
    #[inline(always)]
    pub(crate) fn prefetch(&self, set: u32) {
        let (offsets, tokens) = (self.sets().offsets(), self.sets().tokens());
        if let Some(&begin) = offsets.get(set as usize) {
            prefetch(tokens, begin as usize);
            prefetch(tokens, begin as usize + LINE);
        }
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

    /// Side of the partners of a set of `side`.
    #[inline]
    pub(crate) fn partner_side(&self, side: Side) -> Side {
        match side {
            Side::Left if self.is_two_sided => Side::Right,
            Side::Left | Side::Right => Side::Left,
        }
    }

    /// Number of sides, hence of posting lists per token: 1 or 2.
    pub(crate) fn sides(&self) -> usize {
        1 + usize::from(self.is_two_sided)
    }

    /// Number of different tokens; each token is below this number.
    pub(crate) fn distinct(&self) -> u32 {
        self.distinct
    }

    /// First token that a pair can have in common: no two sets of a pair share a lower token.
    pub(crate) fn unshared(&self) -> u32 {
        self.unshared
    }

    /// The sizes that occur, ascending. The index of a size is its rank.
    pub(crate) fn sizes(&self) -> &[SizeRun] {
        &self.sizes
    }

    /// The same sets, of which each stands for its number of copies.
    pub(crate) fn with_copies(self, copies: Vec<u32>) -> Self {
        Self { copies: Some(copies), ..self }
    }

    /// For each set, the number of its copies, if each set stands for all of its copies.
    pub(crate) fn copies(&self) -> Option<&[u32]> {
        self.copies.as_deref()
    }

    pub(crate) fn budget_mut(&mut self) -> &mut Budget {
        &mut self.budget
    }

    /// Memory budget from which the sets have been taken.
    pub(crate) fn budget(&self) -> Budget {
        self.budget.clone()
    }
}
