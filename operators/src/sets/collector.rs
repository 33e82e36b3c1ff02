//! Collects the sets of a join as they arrive, then numbers their tokens and sorts them.

use super::TOKENS_MAX;
use super::collection::{SetCollection, SortedSets};
use super::error::SetError;
use super::numbering::{Numbering, Totals};
use super::side::Side;
use crate::budget::{Budget, BudgetFull};

/// Maximum number of tokens of a block with several sets.
const BLOCK_TOKENS: usize = 1 << 18;

/// Sets of one side in the order of arrival.
#[derive(Debug, Default)]
struct CollectedBlock {
    side: Side,
    ids: Vec<u32>,
    /// Start of each set among the tokens, and the end of the last one.
    offsets: Vec<u32>,
    tokens: Vec<u32>,
}

impl CollectedBlock {
    fn new(side: Side) -> Self {
        Self { side, offsets: vec![0], ..Self::default() }
    }

    fn push(&mut self, id: u32, tokens: &[u32]) {
        self.ids.push(id);
        self.tokens.extend_from_slice(tokens);
        self.offsets.push(u32::try_from(self.tokens.len()).expect("at most 2^31 tokens"));
    }

    fn set(&self, index: usize) -> &[u32] {
        &self.tokens[self.offsets[index] as usize..self.offsets[index + 1] as usize]
    }
}

/// Bytes of a set besides its tokens: id, offset, and its place while sets are sorted.
const SET_BYTES: usize = 2 * size_of::<u32>() + size_of::<SetPlace>();

/// Collects the sets of a join. A set is a strictly ascending list of tokens.
///
/// # Examples
/// ```
/// use trommel_operators::set_similarity_join::{Side, SetCollector};
///
/// let mut sets = SetCollector::new(1 << 20);
/// sets.push(Side::Left, 0, &[3, 7, 900])?;
/// sets.push(Side::Left, 1, &[3, 8, 900])?;
///
/// let error = sets.push(Side::Left, 2, &[8, 3]).unwrap_err();
/// assert_eq!(error.to_string(), "invalid set with id 2: its tokens must ascend strictly");
/// assert_eq!(sets.finish()?.len(), 2);
/// # Ok::<(), trommel_operators::set_similarity_join::SetError>(())
/// ```
#[derive(Debug)]
pub struct SetCollector {
    blocks: Vec<CollectedBlock>,
    is_two_sided: bool,
    tokens: usize,
    token_max: u32,
    empty_sets: u64,
    budget: Budget,
}

impl SetCollector {
    /// A collector without sets. The sets, and the index of their join, may use `memory_max`
    /// bytes.
    #[must_use]
    pub fn new(memory_max: usize) -> Self {
        Self {
            blocks: Vec::new(),
            is_two_sided: false,
            tokens: 0,
            token_max: 0,
            empty_sets: 0,
            budget: Budget::new(memory_max),
        }
    }

    /// Makes it a join of two inputs, even if one stays empty: only pairs of a left and a right
    /// set are results.
    #[must_use]
    pub fn two_sided(mut self) -> Self {
        self.is_two_sided = true;
        self
    }

    /// Adds a set with the given `id`. The first set of the right side makes it a join of two
    /// inputs.
    ///
    /// # Errors
    /// If the tokens do not ascend strictly, if there are too many tokens in all, or if they do
    /// not fit the memory.
    pub fn push(&mut self, side: Side, id: u32, tokens: &[u32]) -> Result<(), SetError> {
        if !tokens.is_sorted_by(|left, right| left < right) {
            return Err(SetError::NotAscending { id });
        }
        self.is_two_sided |= side == Side::Right;
        let Some(&last) = tokens.last() else {
            self.empty_sets += 1;
            return Ok(());
        };
        if tokens.len() > TOKENS_MAX - self.tokens {
            return Err(SetError::TooManyTokens);
        }
        self.budget.take("the sets", size_of_val(tokens) + SET_BYTES)?;
        self.tokens += tokens.len();
        self.token_max = self.token_max.max(last);
        let is_room = |block: &&mut CollectedBlock| {
            block.side == side && block.tokens.len() + tokens.len() <= BLOCK_TOKENS
        };
        let block = match self.blocks.last_mut().filter(is_room) {
            Some(block) => block,
            None => self.blocks.push_mut(CollectedBlock::new(side)),
        };
        block.push(id, tokens);
        Ok(())
    }

    /// Takes `bytes` of the budget for `what`, which is kept with the sets.
    pub(crate) fn reserve(&mut self, what: &'static str, bytes: usize) -> Result<(), BudgetFull> {
        self.budget.take(what, bytes)
    }

    /// Number of sets without tokens, which are similar to no set and are dropped.
    #[must_use]
    pub fn empty_sets(&self) -> u64 {
        self.empty_sets
    }

    /// Numbers the tokens by ascending frequency and sorts the sets.
    ///
    /// # Cost
    /// One look-up per token; sorts the tokens of each set, and all sets by size and tokens.
    /// While it runs, it holds the tokens twice.
    ///
    /// # Errors
    /// If that does not fit the memory.
    pub fn finish(mut self) -> Result<SetCollection, SetError> {
        let Self { tokens, token_max, is_two_sided, .. } = self;
        let totals = Totals { tokens, token_max, is_two_sided };
        let blocks = self.blocks.iter().map(|block| (block.side, &block.tokens[..]));
        let Numbering { numbers, counts } = Numbering::new(blocks, totals, self.budget)?;
        for block in &mut self.blocks {
            let CollectedBlock { offsets, tokens, .. } = block;
            for ends in offsets.windows(2) {
                let set = &mut tokens[ends[0] as usize..ends[1] as usize];
                set.iter_mut().for_each(|token| *token = numbers.number(*token));
                set.sort_unstable();
            }
        }
        // From here on the sets are held twice, which is the peak of memory.
        drop(numbers);
        let places = self.sorted_places();
        let (sets, tokens) = (places.len(), self.tokens);
        self.budget.take("the sorted sets", 4 * tokens + 9 * sets)?;
        let mut sorted = SortedSets::with_capacity(sets, tokens);
        for place in &places {
            let block = &self.blocks[place.block as usize];
            let index = place.index as usize;
            sorted.push(block.side, block.ids[index], block.set(index));
        }
        self.budget.give_back(4 * tokens + SET_BYTES * sets);
        Ok(sorted.finish(self.is_two_sided, counts, self.budget))
    }

    /// The places of all sets, sorted by size, side and tokens.
    fn sorted_places(&self) -> Vec<SetPlace> {
        let mut places = Vec::with_capacity(self.blocks.iter().map(|b| b.ids.len()).sum());
        for (number, block) in (0..).zip(&self.blocks) {
            for (index, ends) in (0..).zip(block.offsets.windows(2)) {
                let size = ends[1] - ends[0];
                places.push(SetPlace { size, side: block.side, block: number, index });
            }
        }
        let tokens = |place: &SetPlace| self.blocks[place.block as usize].set(place.index as usize);
        places.sort_unstable_by(|left, right| {
            let key = |place: &SetPlace| (place.size, place.side.index());
            // Equal prefixes become neighbours, which GroupJoin and the caches gain from; arrival
            // breaks ties, so that the order does not depend on the sort.
            key(left)
                .cmp(&key(right))
                .then_with(|| tokens(left).cmp(tokens(right)))
                .then_with(|| (left.block, left.index).cmp(&(right.block, right.index)))
        });
        places
    }
}

/// Place of a set among the blocks.
#[derive(Debug, Clone, Copy)]
struct SetPlace {
    size: u32,
    side: Side,
    block: u32,
    index: u32,
}
