//! The order of sets in a collection: by size, side and tokens.
//!
//! There are few sizes, so sets are put into runs of one size and side by counting. Within a run,
//! sets are compared by their first tokens, as many tokens as fit into a place. Only if the first
//! tokens are equal are the other tokens read, which costs a cache miss per set.

use crate::shared::sets::arrival::arrived::ArrivedBlock;

/// Place of a set among the blocks, with its first tokens.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct SetPlace {
    /// First tokens, with the first token in the highest bits. All sets of a run have the same
    /// number of tokens here.
    prefix: u64,
    pub(crate) block: u32,
    pub(crate) index: u32,
}

/// Bytes of a place.
pub(crate) const SET_PLACE_BYTES: usize = size_of::<SetPlace>();

/// The places of all sets of `blocks`, sorted by size, side and tokens. Sets are not empty, and
/// their tokens ascend.
pub(crate) fn in_order(blocks: &[ArrivedBlock]) -> Vec<SetPlace> {
    let sizes = || blocks.iter().flat_map(|block| block.offsets.windows(2).map(size));
    let longest = sizes().max().unwrap_or(0) as usize;
    let bits = token_bits(blocks);
    let kept = (u64::BITS / bits) as usize;
    // Start of each run. The list has an entry for each size up to the longest set, per side.
    let mut starts = vec![0_u32; 2 * (longest + 1)];
    for block in blocks {
        for ends in block.offsets.windows(2) {
            starts[run(block, ends)] += 1;
        }
    }
    let mut start = 0;
    for count in &mut starts {
        start += std::mem::replace(count, start);
    }
    let mut places = vec![SetPlace::default(); start as usize];
    for (number, block) in (0..).zip(blocks) {
        for (index, ends) in (0..).zip(block.offsets.windows(2)) {
            let place = &mut starts[run(block, ends)];
            let tokens = block.set(index as usize);
            let first = &tokens[..tokens.len().min(kept)];
            let prefix = first.iter().fold(0, |prefix, &token| prefix << bits | u64::from(token));
            places[*place as usize] = SetPlace { prefix, block: number, index };
            *place += 1;
        }
    }
    let tokens = |place: &SetPlace| blocks[place.block as usize].set(place.index as usize);
    // Each start has become the end of its run.
    let mut begin = 0;
    for end in starts {
        let run = &mut places[begin..end as usize];
        // The first tokens alone are compared: a comparison of words needs no branch, and few sets
        // need further tokens.
        run.sort_unstable_by_key(|place| place.prefix);
        for equal in run.chunk_by_mut(|left, right| left.prefix == right.prefix) {
            // Equal sets become neighbours, from which GroupJoin and the caches gain. Arrival
            // breaks ties, so that the order does not depend on the sort.
            equal.sort_unstable_by(|left, right| {
                let arrival = (left.block, left.index).cmp(&(right.block, right.index));
                tokens(left).cmp(tokens(right)).then(arrival)
            });
        }
        begin = end as usize;
    }
    places
}

/// Bits of the largest token; 1 or more.
fn token_bits(blocks: &[ArrivedBlock]) -> u32 {
    let of_block = |block: &ArrivedBlock| {
        let ends = block.offsets.iter().skip(1);
        ends.fold(0, |tokens, &end| tokens | block.tokens[end as usize - 1])
    };
    let tokens = blocks.iter().fold(0, |tokens, block| tokens | of_block(block));
    (u32::BITS - tokens.leading_zeros()).max(1)
}

fn size(ends: &[u32]) -> u32 {
    ends[1] - ends[0]
}

/// Number of the run of a set of `block`.
fn run(block: &ArrivedBlock, ends: &[u32]) -> usize {
    2 * size(ends) as usize + block.side.index()
}
