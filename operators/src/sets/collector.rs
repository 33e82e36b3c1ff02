//! Takes the sets of a join as they come, and sorts them when all are there.

use super::TOKENS_MAX;
use super::collection::{SetCollection, SortedSets};
use super::error::SetError;
use super::numbering::{Numbering, Totals};
use super::side::Side;
use crate::budget::{Budget, BudgetFull};

/// Tokens of a block, after which another one is begun.
const BLOCK_TOKENS: usize = 1 << 18;

/// Some sets, as they came.
#[derive(Debug, Default)]
struct CollectedBlock {
    side: Side,
    ids: Vec<u32>,
    /// One more than sets.
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

/// Bytes of a set besides its tokens: while it is collected, and what is sorted.
const SET_BYTES: usize = 2 * size_of::<u32>() + size_of::<SetPlace>();

/// Collects the sets of a join.
///
/// # Examples
/// ```
/// use trommel_operators::set_similarity_join::{Side, SetCollector};
///
/// let mut sets = SetCollector::new(1 << 20);
/// sets.push(Side::Left, 0, &[3, 7, 900])?;
/// sets.push(Side::Left, 1, &[3, 8, 900])?;
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
    /// No sets yet; they, and all that is made of them, may use so many bytes.
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

    /// Makes it a join of two inputs, of which one may be empty: only pairs of a left and a right
    /// set are results.
    #[must_use]
    pub fn two_sided(mut self) -> Self {
        self.is_two_sided = true;
        self
    }

    /// Adds a set. With the first one of the right side, the join is one of two inputs.
    ///
    /// # Errors
    /// If the tokens do not ascend strictly, there are too many in all, or they do not fit the
    /// memory.
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

    /// Asks for memory for what goes with the sets.
    pub(crate) fn reserve(&mut self, what: &'static str, bytes: usize) -> Result<(), BudgetFull> {
        self.budget.take(what, bytes)
    }

    /// Sets without tokens, which are similar to none.
    #[must_use]
    pub fn empty_sets(&self) -> u64 {
        self.empty_sets
    }

    /// Numbers the tokens by ascending frequency and sorts the sets.
    ///
    /// # Cost
    /// A look-up for each token, and sorting: of the tokens of each set, and of all sets by size
    /// and tokens. Needs the tokens twice for a moment.
    ///
    /// # Errors
    /// If that does not fit the memory.
    pub fn finish(mut self) -> Result<SetCollection, SetError> {
        let Self { tokens, token_max, is_two_sided, .. } = self;
        let totals = Totals { tokens, token_max, is_two_sided };
        let blocks = self.blocks.iter().map(|block| (block.side, &block.tokens[..]));
        let Numbering { numbers, distinct, unshared } =
            Numbering::new(blocks, totals, self.budget)?;
        for block in &mut self.blocks {
            let CollectedBlock { offsets, tokens, .. } = block;
            for ends in offsets.windows(2) {
                let set = &mut tokens[ends[0] as usize..ends[1] as usize];
                set.iter_mut().for_each(|token| *token = numbers.number(*token));
                set.sort_unstable();
            }
        }
        // The sets are there twice from here on, and that is the most memory.
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
        Ok(sorted.finish(self.is_two_sided, [distinct, unshared], self.budget))
    }

    /// Where the sets are, by size, side and tokens.
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
            key(left)
                .cmp(&key(right))
                .then_with(|| tokens(left).cmp(tokens(right)))
                .then_with(|| (left.block, left.index).cmp(&(right.block, right.index)))
        });
        places
    }
}

/// Where a set is.
#[derive(Debug, Clone, Copy)]
struct SetPlace {
    size: u32,
    side: Side,
    block: u32,
    index: u32,
}
