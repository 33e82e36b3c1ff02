//! Shelves: sets between the order of arrival and the order of a collection.
//!
//! ```text
//! blocks of arrival ──► numbered, sorted ──► | sizes 1..6 | 7..9 | 10..15 | ..   ──► collection
//!     each dropped once its sets are on shelves        each dropped once it is in the collection
//! ```
//!
//! A collection has its sets by size, and each block of arrival has sets of all sizes. Copied
//! straight from the blocks, all tokens would be in memory twice, and each set would be read from
//! elsewhere. A shelf has the sets of some consecutive sizes, so it is emptied as a whole, and only
//! one of them is held twice. A collection of few tokens has one shelf, which is the blocks of
//! arrival.

use trommel_kernels::memory::drop_pages;
use trommel_kernels::prefetch;

use super::arrived::ArrivedBlock;
use super::collection::SortedSets;
use super::order::{SET_PLACE_BYTES, SetPlace, in_order};

/// Collections of fewer tokens, 16 MiB, have one shelf: putting sets on shelves takes longer than
/// reading them from elsewhere, and nobody misses the memory.
const FEW_TOKENS: usize = 1 << 22;

/// Tokens of a shelf, where sets of one size are not more: at least this many,
const SHELF_TOKENS_MIN: usize = 1 << 17;
/// and at least this part of all.
const SHELVES: usize = 24;

/// Blocks of a shelf. One of them is being filled, so memory for as many tokens is unused.
const BLOCKS_PER_SHELF: usize = 8;

/// Sets whose memory is fetched ahead.
const AHEAD: usize = 8;

/// Bytes of a set besides its tokens in a collection: id, offset and side.
const SORTED_SET_BYTES: usize = 2 * size_of::<u32>() + 1;

/// The shelf of each size.
pub(super) struct ShelfPlan {
    /// By size.
    shelf_of: Vec<u8>,
    shelves: usize,
    /// Tokens of a block of a shelf.
    block_tokens: usize,
    sets: usize,
    tokens: usize,
    /// Maximum bytes of the sets of a shelf in the collection, and of their places.
    bytes_max: usize,
}

impl ShelfPlan {
    pub(super) fn new(blocks: &[ArrivedBlock]) -> Self {
        let tokens: usize = blocks.iter().map(|block| block.tokens.len()).sum();
        Self::with_shelves_of(if tokens < FEW_TOKENS { tokens } else { SHELF_TOKENS_MIN }, blocks)
    }

    fn with_shelves_of(tokens_min: usize, blocks: &[ArrivedBlock]) -> Self {
        let sizes = || blocks.iter().flat_map(|block| block.offsets.windows(2).map(size));
        let longest = sizes().max().unwrap_or(0) as usize;
        // As long as the longest set.
        let mut counts = vec![0_usize; longest + 1];
        sizes().for_each(|size| counts[size as usize] += 1);
        let tokens: usize = counts.iter().enumerate().map(|(size, sets)| size * sets).sum();
        let per_shelf = (tokens / SHELVES).max(tokens_min);
        let mut plan = Self {
            shelf_of: Vec::with_capacity(longest + 1),
            shelves: 1,
            block_tokens: per_shelf / BLOCKS_PER_SHELF,
            sets: counts.iter().sum(),
            tokens,
            bytes_max: 0,
        };
        let (mut held_tokens, mut held_sets) = (0, 0);
        for (size, sets) in counts.into_iter().enumerate() {
            if held_tokens > 0 && held_tokens + size * sets > per_shelf {
                plan.shelves += 1;
                (held_tokens, held_sets) = (0, 0);
            }
            held_tokens += size * sets;
            held_sets += sets;
            let bytes =
                size_of::<u32>() * held_tokens + (SORTED_SET_BYTES + SET_PLACE_BYTES) * held_sets;
            plan.bytes_max = plan.bytes_max.max(bytes);
            // Each shelf but the last has, with the size after it, more than `per_shelf` tokens.
            let shelf = u8::try_from(plan.shelves - 1).expect("at most twice `SHELVES`");
            plan.shelf_of.push(shelf);
        }
        plan
    }

    /// Number of sets.
    pub(super) fn sets(&self) -> usize {
        self.sets
    }

    /// Maximum bytes of shelves without a set in them: one block of each shelf is not full, and one
    /// block of arrival is still there after its sets are on shelves.
    pub(super) fn unused_bytes(&self, sides: usize, arrived_tokens: usize) -> usize {
        if self.shelves == 1 {
            return 0;
        }
        size_of::<u32>() * (self.shelves * sides * self.block_tokens + arrived_tokens)
    }

    /// Bytes that are needed only while the collection is filled: a second copy of one shelf, and
    /// the places of its sets.
    pub(super) fn shelf_bytes_max(&self) -> usize {
        self.bytes_max
    }

    /// Bytes of a collection of the sets.
    pub(super) fn sorted_bytes(&self) -> usize {
        size_of::<u32>() * self.tokens + SORTED_SET_BYTES * self.sets
    }
}

/// Sets by size.
pub(super) struct Shelves {
    plan: ShelfPlan,
    shelves: Vec<Shelf>,
}

/// The sets of some consecutive sizes.
#[derive(Default)]
struct Shelf {
    blocks: Vec<ArrivedBlock>,
    /// By side: one more than the index of the block that is being filled, or 0.
    open: [usize; 2],
}

impl Shelves {
    pub(super) fn new(plan: ShelfPlan) -> Self {
        let shelves = std::iter::repeat_with(Shelf::default).take(plan.shelves).collect();
        Self { plan, shelves }
    }

    /// Puts the sets of `block` on their shelves.
    pub(super) fn add(&mut self, block: ArrivedBlock) {
        let Self { plan, shelves } = self;
        if let [shelf] = &mut shelves[..] {
            shelf.blocks.push(block);
            return;
        }
        for (index, &id) in block.ids.iter().enumerate() {
            let tokens = block.set(index);
            let shelf = &mut shelves[usize::from(plan.shelf_of[tokens.len()])];
            shelf.room(&block, tokens.len(), plan.block_tokens).push(id, tokens);
        }
    }

    /// The sets of all shelves, by size, side and tokens.
    pub(super) fn into_sorted(self) -> SortedSets {
        let mut sorted = SortedSets::with_capacity(self.plan.sets, self.plan.tokens);
        for Shelf { blocks, .. } in self.shelves {
            append(&blocks, &mut sorted);
            // The index of a join takes their place: kept by the allocator, they would add to it.
            if self.plan.tokens >= FEW_TOKENS {
                for ArrivedBlock { ids, offsets, tokens, .. } in blocks {
                    [ids, offsets, tokens].into_iter().for_each(drop_pages);
                }
            }
        }
        sorted
    }
}

impl Shelf {
    /// The block for a set of `tokens` tokens of the side of `of`.
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
fn append(blocks: &[ArrivedBlock], sorted: &mut SortedSets) {
    let places: Vec<SetPlace> = in_order(blocks);
    for (number, place) in places.iter().enumerate() {
        // Sets are anywhere in the shelf: their misses of the cache overlap.
        if let Some(far) = places.get(number + 2 * AHEAD) {
            prefetch(&blocks[far.block as usize].offsets, far.index as usize);
        }
        if let Some(near) = places.get(number + AHEAD) {
            let block = &blocks[near.block as usize];
            prefetch(&block.tokens, block.offsets[near.index as usize] as usize);
        }
        let block = &blocks[place.block as usize];
        let index = place.index as usize;
        sorted.push(block.side, block.ids[index], block.set(index));
    }
}

fn size(ends: &[u32]) -> u32 {
    ends[1] - ends[0]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::sets::Side;
    use crate::sets::collection::SetCollection;

    /// A set as it comes out: side, id, tokens.
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
        ) {
            let side = |is_right| if is_right { Side::Right } else { Side::Left };
            let mut blocks = Vec::new();
            for sets in sets.chunks(per_block) {
                let mut of_side = [Side::Left, Side::Right].map(|side| {
                    ArrivedBlock::with_capacity(side, 0)
                });
                for (is_right, set) in sets {
                    let id = u32::try_from(blocks.len() * 100 + of_side[0].ids.len()).unwrap();
                    let tokens: Vec<u32> = set.iter().copied().collect();
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
            let plan = ShelfPlan::with_shelves_of(tokens_min, &blocks);
            prop_assert_eq!(plan.sets(), expected.len());
            prop_assert!(plan.shelf_bytes_max() <= plan.sorted_bytes() + 16 * expected.len());
            let mut shelves = Shelves::new(plan);
            blocks.into_iter().for_each(|block| shelves.add(block));
            let counts = crate::sets::numbering::TokenCounts { distinct: 30, unshared: 0 };
            let budget = crate::budget::Budget::new(0);
            let collection = shelves.into_sorted().finish(true, counts, budget);
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
        let plan = ShelfPlan::with_shelves_of(1, &blocks);
        assert!((SHELVES..=2 * SHELVES).contains(&plan.shelves), "{}", plan.shelves);
        assert!(plan.shelf_bytes_max() < 4 * tokens / SHELVES + 25 * 4000 / 4);
        assert_eq!(ShelfPlan::with_shelves_of(tokens, &blocks).shelves, 1);
    }
}
