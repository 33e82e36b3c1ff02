//! Collects the sets of a join as they arrive, then numbers their tokens and sorts them.

use std::mem;

use super::arrived::{ArrivedBlock, Extent, RowCounts};
use super::numbering::{TokenCounter, Totals};
use crate::shared::budget::{Allowance, Budget, BudgetFull};
use crate::shared::columns::are_ascending;
use crate::shared::sets::collection::SetCollection;
use crate::shared::sets::error::SetError;
use crate::shared::sets::input::column::SetBatch;
use crate::shared::sets::side::Side;
use crate::shared::sets::sorting::rounds::{Collected, Sorting};
use crate::shared::sets::{Shares, TOKENS_MAX};

/// Maximum number of tokens of a block with several sets.
pub(crate) const BLOCK_TOKENS: usize = 1 << 18;

/// Bytes of a set besides its tokens: id and offset.
const SET_BYTES: usize = 2 * size_of::<u32>();

/// Bytes for each size up to the size of the longest set: the number of its sets, and its shelf.
/// The runs of sizes of a shelf take no more.
const SIZE_BYTES: usize = size_of::<usize>() + 1;

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
    blocks: Vec<ArrivedBlock>,
    /// Occurrences of the tokens of the first `counted` blocks.
    counter: TokenCounter,
    counted: usize,
    is_two_sided: bool,
    tokens: usize,
    token_max: u32,
    longest: usize,
    empty_sets: u64,
    budget: Budget,
}

impl SetCollector {
    /// A collector without sets. The sets, and the index of their join, may use `memory_max`
    /// bytes.
    #[must_use]
    pub fn new(memory_max: usize) -> Self {
        Self::within(&Allowance::new(memory_max))
    }

    /// A collector without sets, for a stage with this memory.
    pub(crate) fn within(memory: &Allowance) -> Self {
        Self {
            blocks: Vec::new(),
            counter: TokenCounter::default(),
            counted: 0,
            is_two_sided: false,
            tokens: 0,
            token_max: 0,
            longest: 0,
            empty_sets: 0,
            budget: memory.budget(),
        }
    }

    /// Makes the join a join of two inputs, even if one input stays empty: only pairs of a left and
    /// a right set are results.
    #[must_use]
    pub fn two_sided(mut self) -> Self {
        self.is_two_sided = true;
        self
    }

    /// Adds a set with the given `id`. The first set of the right side makes the join a join of two
    /// inputs.
    ///
    /// # Errors
    /// If the tokens do not ascend strictly, if all sets have too many tokens, or if the tokens do
    /// not fit into the memory.
    pub fn push(&mut self, side: Side, id: u32, tokens: &[u32]) -> Result<(), SetError> {
        if !tokens.is_sorted_by(|left, right| left < right) {
            return Err(SetError::NotAscending { id });
        }
        self.add(side, id, tokens)
    }

    /// Adds a set whose tokens ascend.
    fn add(&mut self, side: Side, id: u32, tokens: &[u32]) -> Result<(), SetError> {
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
        self.longest = self.longest.max(tokens.len());
        self.room(side, tokens.len()).push(id, tokens);
        Ok(())
    }

    /// Adds the sets of `rows` that have at least `size_min` tokens. Tokens ascend. If `first_row`
    /// is given, the numbers of the rows, counted from `first_row` on, replace the ids.
    ///
    /// # Errors
    /// If all sets have too many tokens, or if the tokens do not fit into the memory.
    pub(crate) fn push_rows(
        &mut self,
        side: Side,
        rows: &SetBatch,
        first_row: Option<u32>,
        size_min: usize,
    ) -> Result<RowCounts, SetError> {
        let mut counts = RowCounts::default();
        let Some((ids, offsets, tokens)) = rows.whole(size_min) else {
            for (row, number) in (0..rows.len()).zip(first_row.unwrap_or(0)..=u32::MAX) {
                let Some((id, tokens)) = rows.get(row) else {
                    counts.nulls += 1;
                    continue;
                };
                counts.sets += 1;
                counts.empty_sets += u64::from(tokens.is_empty());
                if tokens.len() >= size_min {
                    self.add(side, if first_row.is_some() { number } else { id }, tokens)?;
                }
            }
            return Ok(counts);
        };
        self.extend_whole(side, ids, offsets, tokens, first_row)?;
        counts.sets = ids.len() as u64;
        Ok(counts)
    }

    /// Adds sets that lie one after the other: set `i` has the id `ids[i]` and the tokens
    /// `tokens[offsets[i]..offsets[i + 1]]`, as in a list column of Arrow. One call is faster than
    /// [`Self::push`] for each set.
    ///
    /// # Errors
    /// As [`Self::push`]. Sets before the set with the error may have been added.
    ///
    /// # Panics
    /// Unless there is one offset more than ids, and if offsets are negative, descend, or exceed
    /// the tokens.
    pub fn extend(
        &mut self,
        side: Side,
        ids: &[u32],
        offsets: &[i32],
        tokens: &[u32],
    ) -> Result<(), SetError> {
        let ends = ids.len() + 1;
        assert!(offsets.len() == ends, "{ends} offsets are needed, not {}", offsets.len());
        let range = offsets.first().map_or(0, |&first| place(first))..;
        let of_sets = &tokens[range][..offsets.last().map_or(0, |&last| place(last - offsets[0]))];
        let ends_of_sets = offsets.iter().map(|&end| place(end - offsets[0]));
        if offsets.windows(2).all(|ends| ends[0] < ends[1]) && are_ascending(ends_of_sets, of_sets)
        {
            return self.extend_whole(side, ids, offsets, tokens, None);
        }
        for (&id, ends) in ids.iter().zip(offsets.windows(2)) {
            self.push(side, id, &tokens[place(ends[0])..place(ends[1])])?;
        }
        Ok(())
    }

    /// Adds sets that lie one after the other. Their tokens ascend, and no set is empty.
    fn extend_whole(
        &mut self,
        side: Side,
        ids: &[u32],
        offsets: &[i32],
        tokens: &[u32],
        first_row: Option<u32>,
    ) -> Result<(), SetError> {
        let (Some(&first), Some(&last)) = (offsets.first(), offsets.last()) else { return Ok(()) };
        self.expect(side, ids.len(), place(last) - place(first))?;
        let (mut begin, mut number) = (0, first_row);
        while begin < ids.len() {
            let size = place(offsets[begin + 1] - offsets[begin]);
            let block = self.room(side, size);
            let (sets, room) = (block.ids.len(), BLOCK_TOKENS.max(size) - block.tokens.len());
            let fits = |end: &i32| place(end - offsets[begin]) <= room;
            let end = begin + offsets[begin + 1..].partition_point(fits);
            block.extend(&ids[begin..end], &offsets[begin..=end], tokens);
            if let Some(first) = &mut number {
                block.number(sets, *first);
                let sets = u32::try_from(end - begin).expect("sets have 32-bit numbers");
                // The last number may be 2^32 - 1, after which the count wraps.
                *first = first.wrapping_add(sets);
            }
            let extent = block.extent(sets);
            self.gathered([0, 0], extent);
            begin = end;
        }
        Ok(())
    }

    /// The block for sets of `side` with `tokens` tokens.
    fn room(&mut self, side: Side, tokens: usize) -> &mut ArrivedBlock {
        let is_room = |block: &&ArrivedBlock| {
            block.side == side && block.tokens.len() + tokens <= BLOCK_TOKENS
        };
        if self.blocks.last().filter(is_room).is_none() {
            self.count_full_blocks();
            // A join of a few sets should take little memory. A join of many sets should have
            // blocks that need not grow.
            let expected = if self.blocks.is_empty() { 0 } else { BLOCK_TOKENS.max(tokens) };
            self.blocks.push(ArrivedBlock::with_capacity(side, expected));
        }
        self.blocks.last_mut().expect("there is one with room")
    }

    pub(crate) fn totals(&self) -> Totals {
        let Self { tokens, token_max, is_two_sided, .. } = *self;
        Totals { tokens, token_max, is_two_sided }
    }

    /// Counts the tokens of full blocks while other cores read the next blocks. If the tables have
    /// no room yet, the blocks are counted at the end, which reports a lack of memory.
    fn count_full_blocks(&mut self) {
        let totals = self.totals();
        let Self { blocks, counter, counted, budget, .. } = self;
        for block in &blocks[*counted..] {
            if !counter.count(block.side, &block.tokens, totals, budget).is_ok_and(|is| is) {
                return;
            }
            *counted += 1;
        }
    }

    /// Number of tokens so far.
    pub(crate) fn tokens(&self) -> usize {
        self.tokens
    }

    /// The memory of the join, from which all memory in use has been taken.
    pub(crate) fn budget(&self) -> &Budget {
        &self.budget
    }

    /// Gives back `bytes` of the budget that were reserved before.
    pub(crate) fn give_back(&mut self, bytes: usize) {
        self.budget.give_back(bytes);
    }

    /// Takes `bytes` of the budget for `what`, a memory that is kept with the sets.
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
    /// Two look-ups per token, and sorting: of the tokens of each set, and of all sets by size and
    /// tokens. Fewer than 8 million tokens are in memory twice meanwhile. Of more tokens, about a
    /// twelfth is in memory twice, or the tokens of the most frequent sizes if these are more.
    ///
    /// # Errors
    /// If the sorted sets do not fit into the memory.
    pub fn finish(self) -> Result<SetCollection, SetError> {
        self.sort(Shares::ONE)?.run()
    }

    /// As [`Self::finish`], in tasks for the cores of `shares`.
    ///
    /// # Errors
    /// If the numbers of the tokens do not fit into the memory.
    pub(crate) fn sort(mut self, shares: Shares) -> Result<Sorting, SetError> {
        let (blocks, counter) = (mem::take(&mut self.blocks), mem::take(&mut self.counter));
        let uncounted: Vec<usize> = (self.counted..blocks.len()).collect();
        self.sort_blocks(blocks, &uncounted, vec![counter], shares)
    }

    /// As [`Self::sort`], with `blocks`; the `counters` do not count the `uncounted` blocks.
    pub(crate) fn sort_blocks(
        mut self,
        blocks: Vec<ArrivedBlock>,
        uncounted: &[usize],
        counters: Vec<TokenCounter>,
        shares: Shares,
    ) -> Result<Sorting, SetError> {
        let mut counter = TokenCounter::default();
        counters.into_iter().for_each(|part| counter.add(part));
        let (totals, counter_bytes) = (self.totals(), counter.bytes());
        let tokens = |block: usize| (blocks[block].side, &blocks[block].tokens[..]);
        let all = (0..blocks.len()).map(tokens);
        let uncounted = uncounted.iter().map(|&block| tokens(block));
        let numbering = counter.finish(all, uncounted, totals, self.budget.clone())?;
        let size_bytes = SIZE_BYTES * (self.longest + 1);
        self.budget.take("the sizes of the sets", size_bytes)?;
        let Self { is_two_sided, budget, .. } = self;
        let temporary = [counter_bytes, size_bytes];
        Sorting::new(Collected { blocks, numbering, is_two_sided, temporary, budget }, shares)
    }

    /// Expects at most `rows` sets of `tokens` tokens in all from a
    /// [task](crate::shared::sets::Gathering).
    ///
    /// # Errors
    /// If all sets have too many tokens, or if the tokens do not fit into the memory.
    pub(crate) fn expect(
        &mut self,
        side: Side,
        rows: usize,
        tokens: usize,
    ) -> Result<(), SetError> {
        if tokens > TOKENS_MAX - self.tokens {
            return Err(SetError::TooManyTokens);
        }
        self.budget.take("the sets", size_of::<u32>() * tokens + SET_BYTES * rows)?;
        self.is_two_sided |= side == Side::Right;
        self.tokens += tokens;
        Ok(())
    }

    /// Notes expected sets that have arrived, of which some `rows` and `tokens` are left out.
    pub(crate) fn gathered(&mut self, [rows, tokens]: [usize; 2], extent: Extent) {
        self.budget.give_back(size_of::<u32>() * tokens + SET_BYTES * rows);
        self.tokens -= tokens;
        self.longest = self.longest.max(extent.longest);
        self.token_max = self.token_max.max(extent.token_max);
    }

    /// Makes room in `counter` for all tokens so far. Returns false if the room is not worth its
    /// memory, or does not fit.
    pub(crate) fn make_room(&mut self, counter: &mut TokenCounter) -> bool {
        let totals = self.totals();
        let mut room = |side| counter.make_room(side, totals, &mut self.budget).is_ok_and(|is| is);
        room(Side::Left) && (!self.is_two_sided || room(Side::Right))
    }
}

/// An offset as a place among the tokens.
fn place(offset: i32) -> usize {
    usize::try_from(offset).expect("offsets are not negative, and do not descend")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shared::sets::sorting::shelves::ShelfPlan;

    /// A collection of this number of sets uses shelves of many sizes.
    #[test]
    fn a_large_collection_has_all_sets_in_order() {
        let set = |id: u32| -> Vec<u32> {
            let first = id.wrapping_mul(2_654_435_761) >> 14;
            (0..1 + id * 7919 % 121).map(|token| first + token * (1 + id % 3)).collect()
        };
        let mut collector = SetCollector::new(usize::MAX);
        let mut counts = std::collections::HashMap::new();
        for id in 0..140_000 {
            let tokens = set(id);
            tokens.iter().for_each(|token| *counts.entry(*token).or_insert(0_u32) += 1);
            let side = if id % 3 == 0 { Side::Right } else { Side::Left };
            collector.push(side, id, &tokens).unwrap();
        }
        assert!(
            ShelfPlan::new(&collector.blocks, Shares::ONE).unused_bytes(2, 0) > 0,
            "there are shelves"
        );
        let collection = collector.finish().unwrap();

        let order = |number: u32| {
            let tokens = collection.set(number);
            (tokens.len(), collection.side(number) == Side::Right, tokens)
        };
        let len = u32::try_from(collection.len()).unwrap();
        assert!((1..len).all(|number| order(number - 1) <= order(number)));
        let mut ids: Vec<u32> = (0..len).map(|number| collection.block().id(number)).collect();
        for (number, &id) in (0..).zip(&ids) {
            assert_eq!(collection.set(number).len(), set(id).len());
            assert_eq!(collection.side(number) == Side::Right, id % 3 == 0);
            assert!(collection.set(number).is_sorted_by(|left, right| left < right));
        }
        ids.sort_unstable();
        assert!(ids.into_iter().eq(0..140_000));
        // A token has the same number in all sets.
        let mut expected: Vec<u32> = counts.into_values().collect();
        expected.sort_unstable();
        let mut found = vec![0; expected.len()];
        (0..len).for_each(|number| {
            collection.set(number).iter().for_each(|&token| found[token as usize] += 1);
        });
        found.sort_unstable();
        assert_eq!(found, expected);
    }

    #[test]
    fn sets_that_lie_one_after_the_other_are_those_that_are_pushed() {
        let tokens: Vec<u32> = (0..40).chain(3..30).chain([7]).chain(0..9).collect();
        // The offsets are with an empty set, without an empty set, and without sets.
        for offsets in [&[2, 40, 40, 67, 68][..], &[0, 40, 67, 68, 77], &[5]] {
            let ids = &[4, 8, 2, 6][..offsets.len() - 1];
            let [mut pushed, mut extended] = [1 << 20; 2].map(SetCollector::new);
            for (&id, ends) in ids.iter().zip(offsets.windows(2)) {
                pushed.push(Side::Left, id, &tokens[place(ends[0])..place(ends[1])]).unwrap();
            }
            extended.extend(Side::Left, ids, offsets, &tokens).unwrap();
            assert_eq!(extended.empty_sets(), pushed.empty_sets());
            let [pushed, extended] = [pushed, extended].map(|sets| sets.finish().unwrap());
            let sets = |collection: &SetCollection| -> Vec<(u32, Vec<u32>)> {
                let set = |set| (collection.block().id(set), collection.set(set).to_vec());
                (0..).take(collection.len()).map(set).collect()
            };
            assert_eq!(sets(&extended), sets(&pushed));
        }
    }

    #[test]
    #[should_panic(expected = "3 offsets are needed, not 2")]
    fn sets_without_an_end_are_refused() {
        let _ = SetCollector::new(1 << 20).extend(Side::Left, &[1, 2], &[0, 2], &[5, 6]);
    }

    #[test]
    fn the_sizes_of_a_long_set_are_part_of_the_memory() {
        let set: Vec<u32> = (0..1_000_000).collect();
        let fits = |memory_max: usize| {
            let mut collector = SetCollector::new(memory_max);
            collector.push(Side::Left, 0, &set).unwrap();
            collector.finish().is_ok()
        };
        let (tokens, sizes) = (size_of_val(&set[..]), SIZE_BYTES * set.len());
        assert!(!fits(tokens + sizes));
        assert!(fits(4 * (tokens + sizes)));
    }
}
