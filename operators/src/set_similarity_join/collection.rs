//! Sets that are ready to be joined.

use std::sync::Arc;

use trommel_kernels::sets::{SetStore, Sets};

use super::carried::Carried;
use super::collector::{Budget, Side};

/// Sets sorted by size, tokens numbered by ascending frequency.
///
/// Made by [`SetCollector`](super::SetCollector). A set has a number, its place in this order, and
/// the id that it came with. Of two sets the one with the greater number is at least as large.
#[derive(Debug)]
pub struct SetCollection {
    sets: SetStore,
    ids: Vec<u32>,
    /// Where a set was in the input, or where its columns are; none if nobody asks.
    places: Vec<u32>,
    carried: Option<Arc<Carried>>,
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
        SetCollection {
            sets: SetStore::new(offsets, tokens),
            ids,
            places: Vec::new(),
            carried: None,
            sides,
            is_two_sided,
            distinct,
            unshared,
            sizes,
            budget,
        }
    }
}

impl SetCollection {
    /// Sets of a stream, which are verified but not sorted: in the order in which they came, all of
    /// the right side, because each is joined to those before it.
    pub(super) fn of_stream(sets: SetStore, ids: Vec<u32>, carried: Option<Arc<Carried>>) -> Self {
        let sides = vec![Side::Right; ids.len()];
        // The columns are in the same order.
        let places = carried.iter().flat_map(|_| (0..).take(ids.len())).collect();
        Self {
            sets,
            ids,
            places,
            carried,
            sides,
            is_two_sided: true,
            distinct: 0,
            unshared: 0,
            sizes: Vec::new(),
            budget: Budget::new(0),
        }
    }

    /// The same sets of a stream with other tokens.
    pub(super) fn with_tokens(&self, tokens: Vec<u32>) -> Self {
        let sets = SetStore::new(self.offsets().to_vec(), tokens);
        Self::of_stream(sets, self.ids.clone(), self.carried.clone())
    }

    /// All sets of some collections of a stream, one after the other.
    pub(super) fn joined<'a>(
        parts: impl Iterator<Item = &'a Self> + Clone,
        carried: Option<Carried>,
    ) -> Self {
        let (mut offsets, mut tokens, mut ids) = (vec![0], Vec::new(), Vec::new());
        tokens.reserve_exact(parts.clone().map(Self::tokens).sum());
        for part in parts {
            let before = u32::try_from(tokens.len()).expect("at most 2^31 tokens");
            offsets.extend(part.offsets()[1..].iter().map(|end| before + end));
            tokens.extend_from_slice(part.all_tokens());
            ids.extend_from_slice(&part.ids);
        }
        Self::of_stream(SetStore::new(offsets, tokens), ids, carried.map(Arc::new))
    }

    /// Gives the sets other ids, made of those that they had: these are their places from now on.
    pub(super) fn label(&mut self, id: impl Fn(Side, u32) -> u32) {
        let labels = self.sides.iter().zip(&self.ids).map(|(&side, &place)| id(side, place));
        let ids = labels.collect();
        self.places = std::mem::replace(&mut self.ids, ids);
    }

    /// By set, if they were [labelled](Self::label).
    pub(super) fn places(&self) -> &[u32] {
        &self.places
    }

    /// Gives the sets columns, by place.
    pub(super) fn carry(&mut self, columns: Carried) {
        self.carried = Some(Arc::new(columns));
    }

    /// The columns of the sets, if they have any.
    pub(super) fn carried(&self) -> Option<&Carried> {
        self.carried.as_deref()
    }

    /// Whether the first set of a pair is the left one, if both are of the left side.
    pub(super) fn is_left(&self, first: u32, second: u32) -> bool {
        self.ids[first as usize] < self.ids[second as usize]
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

    /// The same ones, as they are kept.
    #[must_use]
    pub fn store(&self) -> &SetStore {
        &self.sets
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

    /// The memory that the sets leave.
    pub(super) fn budget(&self) -> Budget {
        self.budget
    }
}
