//! Sets that are ready to be joined.

use trommel_kernels::overlap::{SetStore, Sets};

use super::collector::{Budget, JoinError, Side};

/// Sets sorted by size, tokens numbered by ascending frequency.
///
/// Made by [`SetCollector`](super::SetCollector). A set has a number, its place in this order, and
/// the id that it came with. Of two sets the one with the greater number is at least as large.
#[derive(Debug)]
pub struct SetCollection {
    sets: SetStore,
    ids: Vec<u32>,
    /// In the order of the input; none if that is the order of the ids.
    places: Vec<u32>,
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
pub(super) struct SizeRun {
    pub(super) size: u32,
    /// The number of the first one.
    pub(super) begin: u32,
    /// The number behind the last one.
    pub(super) end: u32,
}

/// Sets in their order.
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

    /// Adds a set that is not before the last one.
    pub(super) fn push(&mut self, side: Side, id: u32, tokens: &[u32]) {
        self.tokens.extend_from_slice(tokens);
        self.offsets.push(u32::try_from(self.tokens.len()).expect("at most 2^31 tokens"));
        self.ids.push(id);
        self.sides.push(side);
    }

    pub(super) fn finish(
        self,
        is_two_sided: bool,
        distinct: u32,
        unshared: u32,
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
        let (sets, places) = (SetStore::new(offsets, tokens), Vec::new());
        SetCollection { sets, ids, places, sides, is_two_sided, distinct, unshared, sizes, budget }
    }
}

impl SetCollection {
    /// These sets with other numbers for their tokens.
    pub(super) fn with_numbers(&self, sets: SortedSets) -> Self {
        sets.finish(self.is_two_sided, self.distinct, 0, self.budget)
    }

    /// Gives the sets other ids, made of those that they had: these are their places from now on,
    /// and of a pair, the left set is the one with the smaller place.
    pub(super) fn label(&mut self, id: impl Fn(u32) -> u32) {
        let ids = self.ids.iter().map(|&place| id(place)).collect();
        self.places = std::mem::replace(&mut self.ids, ids);
    }

    /// By set, if they were [labelled](Self::label).
    pub(super) fn places(&self) -> &[u32] {
        &self.places
    }

    /// Whether the first set of a pair is the left one, if both are of the left side.
    pub(super) fn is_left(&self, first: u32, second: u32) -> bool {
        let order = if self.places.is_empty() { &self.ids } else { &self.places };
        order[first as usize] < order[second as usize]
    }

    /// How many sets there are; empty ones are left out.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// How many tokens they have together.
    #[must_use]
    pub fn tokens(&self) -> usize {
        self.sets().tokens().len()
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
        self.sets.as_sets()
    }

    /// A number that no other collection has.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.sets.version()
    }

    pub(super) fn offsets(&self) -> &[u32] {
        self.sets().offsets()
    }

    /// The tokens of all sets.
    pub(super) fn all_tokens(&self) -> &[u32] {
        self.sets().tokens()
    }

    #[inline]
    pub(super) fn set(&self, set: u32) -> &[u32] {
        self.sets().set(set as usize)
    }

    #[inline]
    pub(super) fn size(&self, set: u32) -> u32 {
        self.offsets()[set as usize + 1] - self.offsets()[set as usize]
    }

    #[inline]
    pub(super) fn id(&self, set: u32) -> u32 {
        self.ids[set as usize]
    }

    #[inline]
    pub(super) fn side(&self, set: u32) -> Side {
        self.sides[set as usize]
    }

    /// The side on which a set finds its partners.
    #[inline]
    pub(super) fn partner_side(&self, side: Side) -> Side {
        match side {
            Side::Left if self.is_two_sided => Side::Right,
            Side::Left | Side::Right => Side::Left,
        }
    }

    /// Sides that have indexes: 1 or 2.
    pub(super) fn sides(&self) -> usize {
        1 + usize::from(self.is_two_sided)
    }

    /// One more than the greatest token.
    pub(super) fn distinct(&self) -> u32 {
        self.distinct
    }

    /// Below this, a token is in no two sets that could be a pair.
    pub(super) fn unshared(&self) -> u32 {
        self.unshared
    }

    pub(super) fn sizes(&self) -> &[SizeRun] {
        &self.sizes
    }

    /// Asks for memory, in addition to that of the sets.
    pub(super) fn reserve(&self, what: &'static str, bytes: usize) -> Result<(), JoinError> {
        let mut budget = self.budget;
        budget.take(what, bytes)
    }
}
