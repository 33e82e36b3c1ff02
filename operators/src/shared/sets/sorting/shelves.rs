//! Shelves: sets between the order of arrival and the order of a collection.
//!
//! ```text
//! blocks of arrival ──► numbered, sorted ──► | sizes 1..6 | 7..9 | 10..15 | ..   ──► collection
//!     each dropped once its sets are on shelves        each dropped once it is in the collection
//! ```
//!
//! A collection has its sets in the order of size, and each block of arrival has sets of all sizes.
//! If sets were copied directly from the blocks, all tokens would be in memory twice, and each set
//! would be read from a distant place. A shelf has the sets of some consecutive sizes, so a shelf
//! is emptied as a whole, and only one shelf is held twice. A collection of few tokens has one
//! shelf, which consists of the blocks of arrival.

use std::ops::Range;
use std::sync::Arc;

use trommel_kernels::memory::drop_pages;
use trommel_kernels::prefetch;

use super::order::{SET_PLACE_BYTES, SetPlace, in_order};
use crate::shared::sets::Shares;
use crate::shared::sets::arrival::arrived::ArrivedBlock;
use crate::shared::sets::collection::SortedPart;

/// Collections of fewer tokens (32 MiB) have one shelf: putting the sets on shelves takes longer
/// than reading the sets from distant places, and the additional memory is small.
const FEW_TOKENS: usize = 1 << 23;

/// Minimum tokens of a shelf. If the sets of one size have more, the shelf has more.
const SHELF_TOKENS_MIN: usize = 1 << 17;
/// A shelf has at least one part in `SHELVES` of all tokens.
const SHELVES: usize = 24;

/// Blocks per shelf. One block is being filled, so the memory for its tokens is unused.
const BLOCKS_PER_SHELF: usize = 8;

/// Parts per core, so that no core waits long for the slowest core.
const PARTS_PER_CORE: usize = 2;

/// Distance, in sets, at which memory is fetched ahead.
const AHEAD: usize = 12;

/// Tokens of a line of the cache.
const LINE_TOKENS: usize = 64 / size_of::<u32>();

/// Bytes of a set besides its tokens in a collection: id, offset and side.
const SORTED_SET_BYTES: usize = 2 * size_of::<u32>() + 1;

/// The shelf of each size.
#[derive(Debug)]
pub(crate) struct ShelfPlan {
    /// The number of the shelf, by size.
    shelf_of: Vec<u8>,
    /// Number of sets and of tokens of each shelf.
    shelves: Vec<(usize, usize)>,
    /// Number of parts of the sets that are put on shelves at the same time.
    parts: usize,
    /// Tokens of a block of a shelf.
    block_tokens: usize,
    sets: usize,
    tokens: usize,
}

impl ShelfPlan {
    /// A plan for the cores of `shares`.
    pub(crate) fn new(blocks: &[ArrivedBlock], shares: Shares) -> Self {
        let tokens: usize = blocks.iter().map(|block| block.tokens.len()).sum();
        let tokens_min = if shares.cores > 1 {
            shares.tokens_min.min(SHELF_TOKENS_MIN)
        } else if tokens < FEW_TOKENS {
            tokens
        } else {
            SHELF_TOKENS_MIN
        };
        Self::with_shelves_of(tokens_min, blocks, shares)
    }

    fn with_shelves_of(tokens_min: usize, blocks: &[ArrivedBlock], shares: Shares) -> Self {
        let sizes = || blocks.iter().flat_map(|block| block.offsets.windows(2).map(size));
        let longest = sizes().max().unwrap_or(0) as usize;
        // The counts have an entry for each size up to the longest set.
        let mut counts = vec![0_usize; longest + 1];
        sizes().for_each(|size| counts[size as usize] += 1);
        let tokens: usize = counts.iter().enumerate().map(|(size, sets)| size * sets).sum();
        let per_shelf = (tokens / SHELVES).max(tokens_min);
        let Shares { cores, tokens_min: part_min } = shares;
        let parts_max = if cores == 1 { 1 } else { PARTS_PER_CORE * cores };
        let parts = (tokens / part_min.max(1)).clamp(1, parts_max);
        let mut plan = Self {
            shelf_of: Vec::with_capacity(longest + 1),
            shelves: Vec::new(),
            parts,
            block_tokens: per_shelf / (BLOCKS_PER_SHELF * parts),
            sets: counts.iter().sum(),
            tokens,
        };
        let (mut held_sets, mut held_tokens) = (0, 0);
        for (size, sets) in counts.into_iter().enumerate() {
            if held_tokens > 0 && held_tokens + size * sets > per_shelf {
                plan.shelves.push((held_sets, held_tokens));
                (held_sets, held_tokens) = (0, 0);
            }
            held_tokens += size * sets;
            held_sets += sets;
            // Each shelf but the last has, together with the size after it, more than `per_shelf`
            // tokens.
            let shelf = u8::try_from(plan.shelves.len()).expect("at most twice `SHELVES`");
            plan.shelf_of.push(shelf);
        }
        plan.shelves.push((held_sets, held_tokens));
        plan
    }

    /// Number of parts of the sets that are put on shelves at the same time.
    pub(crate) fn parts(&self) -> usize {
        self.parts
    }

    /// Number of sets and of tokens of each shelf.
    pub(crate) fn shelves(&self) -> &[(usize, usize)] {
        &self.shelves
    }

    /// Number of sets.
    pub(crate) fn sets(&self) -> usize {
        self.sets
    }

    /// Maximum bytes of shelves without a set: in each part, one block of each shelf is not full,
    /// and one block of arrival still exists after its sets were put on shelves.
    pub(crate) fn unused_bytes(&self, sides: usize, arrived_tokens: usize) -> usize {
        if self.shelves.len() == 1 {
            return 0;
        }
        let open = self.shelves.len() * sides * self.block_tokens;
        size_of::<u32>() * self.parts * (open + arrived_tokens)
    }

    /// Bytes that are needed only while the collection is filled: for a second copy of one shelf,
    /// and for the places of its sets.
    pub(crate) fn shelf_bytes_max(&self) -> usize {
        let bytes = |&(sets, tokens): &(usize, usize)| {
            size_of::<u32>() * tokens + (SORTED_SET_BYTES + SET_PLACE_BYTES) * sets
        };
        self.shelves.iter().map(bytes).max().unwrap_or(0)
    }

    /// Bytes of the sets as they arrived.
    pub(crate) fn arrived_bytes(&self) -> usize {
        size_of::<u32>() * self.tokens + (SORTED_SET_BYTES - 1) * self.sets
    }

    /// Whether the memory of shelves returns to the system, because there are many tokens.
    fn is_large(&self) -> bool {
        self.tokens >= FEW_TOKENS
    }

    /// Bytes of a collection of the sets.
    pub(crate) fn sorted_bytes(&self) -> usize {
        size_of::<u32>() * self.tokens + SORTED_SET_BYTES * self.sets
    }
}

/// Sets by size.
#[derive(Debug)]
pub(crate) struct Shelves {
    plan: Arc<ShelfPlan>,
    shelves: Vec<Shelf>,
}

/// The sets of some consecutive sizes.
#[derive(Debug, Default)]
struct Shelf {
    blocks: Vec<ArrivedBlock>,
    /// For each side, one more than the index of the block that is being filled; 0 without such a
    /// block.
    open: [usize; 2],
}

impl Shelves {
    pub(crate) fn new(plan: &Arc<ShelfPlan>) -> Self {
        let shelves = std::iter::repeat_with(Shelf::default).take(plan.shelves.len()).collect();
        Self { plan: Arc::clone(plan), shelves }
    }

    /// Puts the sets of `block` on their shelves.
    pub(crate) fn add(&mut self, block: ArrivedBlock) {
        let Self { plan, shelves } = self;
        // The blocks of arrival are the only shelf, so no set is copied.
        if let [shelf] = &mut shelves[..] {
            shelf.blocks.push(block);
            return;
        }
        for (index, &id) in block.ids.iter().enumerate() {
            let tokens = block.set(index);
            let shelf = &mut shelves[usize::from(plan.shelf_of[tokens.len()])];
            let open = shelf.room(&block, tokens.len(), plan.block_tokens);
            open.push(id, tokens);
            // The next set of about this size goes to this place, which is fetched while other sets
            // go to other places.
            let end = open.tokens.len();
            fetch(&open.tokens, end..end + tokens.len() + 1);
        }
    }

    /// The shelves of all `parts`; the sets of a part precede the sets of the next part.
    pub(crate) fn of_parts(plan: &ShelfPlan, parts: Vec<Self>) -> Vec<FilledShelf> {
        let shelf = || FilledShelf { blocks: Vec::new(), is_large: plan.is_large() };
        let mut filled: Vec<FilledShelf> =
            std::iter::repeat_with(shelf).take(plan.shelves.len()).collect();
        for shelves in parts {
            for (filled, shelf) in filled.iter_mut().zip(shelves.shelves) {
                filled.blocks.extend(shelf.blocks);
            }
        }
        filled
    }
}

/// All sets of some consecutive sizes.
#[derive(Debug, Default)]
pub(crate) struct FilledShelf {
    blocks: Vec<ArrivedBlock>,
    /// Whether the memory of the shelf returns to the system.
    is_large: bool,
}

impl FilledShelf {
    /// Number of tokens.
    pub(crate) fn tokens(&self) -> usize {
        self.blocks.iter().map(|block| block.tokens.len()).sum()
    }

    /// Appends the sets of the shelf by size, side and tokens.
    pub(crate) fn append_to(self, sorted: &mut SortedPart) {
        append(&self.blocks, sorted);
        // The index of a join takes the place of this memory. Memory that the allocator kept would
        // add to the memory of the index.
        if self.is_large {
            for ArrivedBlock { ids, offsets, tokens, .. } in self.blocks {
                [ids, offsets, tokens].into_iter().for_each(drop_pages);
            }
        }
    }
}

impl Shelf {
    /// The block for a set of `tokens` tokens, of the side of the block `of`.
    fn room(&mut self, of: &ArrivedBlock, tokens: usize, block_tokens: usize) -> &mut ArrivedBlock {
        let open = &mut self.open[of.side.index()];
        let is_room = *open > 0 && {
            let block = &self.blocks[*open - 1].tokens;
            block.len() + tokens <= block.capacity()
        };
        if !is_room {
            self.blocks.push(ArrivedBlock::with_capacity(of.side, block_tokens.max(tokens)));
            *open = self.blocks.len();
        }
        &mut self.blocks[*open - 1]
    }
}

/// Appends the sets of a shelf in their order.
fn append(blocks: &[ArrivedBlock], sorted: &mut SortedPart) {
    let places: Vec<SetPlace> = in_order(blocks);
    for (number, place) in places.iter().enumerate() {
        // The sets are at any place of the shelf, so several cache misses overlap.
        if let Some(far) = places.get(number + 2 * AHEAD) {
            let block = &blocks[far.block as usize];
            prefetch(&block.offsets, far.index as usize);
            prefetch(&block.ids, far.index as usize);
        }
        if let Some(near) = places.get(number + AHEAD) {
            let block = &blocks[near.block as usize];
            fetch(&block.tokens, block.range(near.index as usize));
        }
        let block = &blocks[place.block as usize];
        let index = place.index as usize;
        sorted.push(block.side, block.ids[index], block.set(index));
    }
}

/// Fetches the cache lines of some tokens; the range may lie past the end.
#[inline]
fn fetch(tokens: &[u32], range: Range<usize>) {
    let last = range.end - 1;
    range.step_by(LINE_TOKENS).for_each(|token| prefetch(tokens, token));
    prefetch(tokens, last);
}

fn size(ends: &[u32]) -> u32 {
    ends[1] - ends[0]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::shared::sets::Side;
    use crate::shared::sets::collection::SetCollection;

    /// A set in the collection: side, id, tokens.
    type Set = (Side, u32, Vec<u32>);

    fn sorted(collection: &SetCollection) -> Vec<Set> {
        let set = |set: u32| {
            (collection.side(set), collection.block().id(set), collection.set(set).to_vec())
        };
        (0..).take(collection.len()).map(set).collect()
    }

    proptest! {
        #[test]
        fn sets_come_by_size_side_tokens_and_arrival(
            sets in proptest::collection::vec(
                (any::<bool>(), proptest::collection::btree_set(0_u32..30, 1..20)),
                0..80,
            ),
            tokens_min in 8_usize..200,
            per_block in 1_usize..20,
            blocks_per_part in 1_usize..9,
            // If tokens have many bits, only few tokens fit into a place.
            step in prop_oneof![Just(1), Just(1 << 9), Just(u32::MAX / 30)],
        ) {
            let side = |is_right| if is_right { Side::Right } else { Side::Left };
            let mut blocks = Vec::new();
            for sets in sets.chunks(per_block) {
                let mut of_side = [Side::Left, Side::Right].map(|side| {
                    ArrivedBlock::with_capacity(side, 0)
                });
                for (is_right, set) in sets {
                    let id = u32::try_from(blocks.len() * 100 + of_side[0].ids.len()).unwrap();
                    let tokens: Vec<u32> = set.iter().map(|token| token * step).collect();
                    of_side[usize::from(*is_right)].push(id, &tokens);
                }
                blocks.extend(of_side);
            }
            let mut expected: Vec<Set> = Vec::new();
            for block in &blocks {
                let set = |index| (block.side, block.ids[index], block.set(index).to_vec());
                expected.extend((0..block.ids.len()).map(set));
            }
            expected.sort_by(|left, right| {
                let key = |set: &Set| (set.2.len(), set.0 == side(true));
                key(left).cmp(&key(right)).then_with(|| left.2.cmp(&right.2))
            });
            let plan = Arc::new(ShelfPlan::with_shelves_of(tokens_min, &blocks, Shares::ONE));
            prop_assert_eq!(plan.sets(), expected.len());
            prop_assert!(plan.shelf_bytes_max() <= plan.sorted_bytes() + 16 * expected.len());
            let mut parts = vec![Shelves::new(&plan)];
            for (number, block) in blocks.into_iter().enumerate() {
                if number % blocks_per_part == 0 {
                    parts.push(Shelves::new(&plan));
                }
                parts.last_mut().unwrap().add(block);
            }
            let mut sorted_parts = SortedPart::split(plan.shelves());
            let shelves = Shelves::of_parts(&plan, parts).into_iter().zip(&mut sorted_parts);
            shelves.rev().for_each(|(shelf, part)| shelf.append_to(part));
            let counts = crate::shared::sets::arrival::numbering::TokenCounts { distinct: 30, unshared: 0 };
            let budget = crate::shared::budget::Budget::new(0);
            let collection = SortedPart::join(sorted_parts, true, counts, budget);
            prop_assert_eq!(sorted(&collection), expected);
        }
    }

    #[test]
    fn shelves_are_few_and_none_is_much_larger_than_the_others() {
        let mut block = ArrivedBlock::with_capacity(Side::Left, 0);
        for id in 0..4000 {
            block.push(id, &(0..1 + id % 97).collect::<Vec<u32>>());
        }
        let tokens = block.tokens.len();
        let blocks = [block];
        let plan = ShelfPlan::with_shelves_of(1, &blocks, Shares::ONE);
        let shelves = plan.shelves().len();
        assert!((SHELVES..=2 * SHELVES).contains(&shelves), "{shelves}");
        assert!(plan.shelf_bytes_max() < 4 * tokens / SHELVES + 25 * 4000 / 4);
        assert_eq!(ShelfPlan::with_shelves_of(tokens, &blocks, Shares::ONE).shelves().len(), 1);
    }
}
