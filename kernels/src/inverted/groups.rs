//! Lists by groups of 64 documents: a summary with a bit a group, and the words of the groups that
//! are not empty.
//!
//! ```text
//! summary   0 1 1 0 0 0 0 1 ..   a bit a group, 512 groups a line
//! ranks     0        17     ..   for each 64 groups, the number of groups before that are not empty
//! packed    two words for each group that is not empty; a bitmap has its own words
//! ```
//!
//! The summaries of all lists of a query are combined first. Eight groups are a line of documents;
//! only lines in which all lists share a group are read. The packed groups of a line are neighbours,
//! and an expanding load puts them into their places.
//!
//! Source: a rank as in Vigna, *Broadword Implementation of Rank/Select Queries*, WEA 2008, with one
//! count for 64 bits.

use super::blocks::Blocks;
use super::lines::{LINE, Lines};
use super::plan::Steps;
use crate::Isa;
use crate::simd::{Call, Popcount, RunOn, dispatch};

/// Lists that are combined by groups at most.
const LISTS: usize = 8;

/// The groups of a list.
#[derive(Clone, Copy, Debug)]
pub(super) struct Groups<'a> {
    /// A bit a group, in lines; empty for a bitmap whose groups are not told.
    pub(super) summary: &'a [[u32; LINE]],
    pub(super) content: Content<'a>,
}

/// The documents of groups.
#[derive(Clone, Copy, Debug)]
pub(super) enum Content<'a> {
    /// Of all groups.
    Bits(&'a [u32]),
    /// Of the groups that are not empty.
    Packed {
        /// For each 64 groups, the number of groups before that are not empty.
        ranks: &'a [u32],
        /// Two words a group, and all words of the segment after them.
        packed: &'a [u32],
    },
}

/// The groups of all lists of a query.
#[derive(Clone, Copy)]
pub(super) struct Grouped<'a> {
    /// The first one has a summary.
    lists: [Groups<'a>; LISTS],
    len: usize,
}

impl<'a> Grouped<'a> {
    /// `None` if a list is neither a bitmap nor has groups, no list has groups, or there are too
    /// many lists.
    #[inline(always)]
    pub(super) fn new(steps: Steps<'a>) -> Option<Self> {
        let (&first, others) = steps.keys.split_first()?;
        // Most queries without groups end here: ids come from the shortest list.
        let first = steps.groups(first)?;
        let mut grouped = Self { lists: [first; LISTS], len: steps.keys.len() };
        let (mut front, mut has_summary) = (0, !first.summary.is_empty());
        for (at, &key) in (1..).zip(others) {
            let groups = steps.groups(key)?;
            if !has_summary && !groups.summary.is_empty() {
                (front, has_summary) = (at, true);
            }
            *grouped.lists.get_mut(at)? = groups;
        }
        grouped.lists.swap(0, front);
        has_summary.then_some(grouped)
    }

    /// Gives the number and the bits of each line in which all lists share a group.
    #[inline(always)]
    fn for_each_line<L: Lines>(&self, level: L, mut take: impl FnMut(usize, L::Line)) {
        let [first, others @ ..] = &self.lists;
        let others = &others[..self.len.saturating_sub(1)];
        for (at, summary) in first.summary.iter().enumerate() {
            let mut common = level.line(summary);
            for list in others {
                if let Some(summary) = list.summary.get(at) {
                    common = level.and(common, level.line(summary));
                }
            }
            let mut lines = level.bytes(common);
            while lines != 0 {
                let byte = lines.trailing_zeros() as usize;
                lines &= lines - 1;
                let mut line = first.line(level, at, byte);
                for list in others {
                    line = level.and(line, list.line(level, at, byte));
                }
                take(at * 64 + byte, line);
            }
        }
    }
}

impl Groups<'_> {
    /// The bits of the line of a byte of a line of the summary.
    #[inline(always)]
    fn line<L: Lines>(&self, level: L, at: usize, byte: usize) -> L::Line {
        match self.content {
            Content::Bits(words) => {
                let words = words.get((at * 64 + byte) * LINE..).unwrap_or(&[]);
                if let Some(line) = words.first_chunk() {
                    return level.line(line);
                }
                let mut last = [0; LINE];
                last[..words.len()].copy_from_slice(words);
                level.line(&last)
            }
            Content::Packed { ranks, packed } => {
                let pair = byte / 8;
                let (pairs, _) = self.summary[at].as_chunks::<2>();
                let [low, high] = pairs[pair % pairs.len()];
                let bits = u64::from(low) | u64::from(high) << 32;
                let shift = byte % 8 * 8;
                let before = (bits & !(u64::MAX << shift)).count_ones();
                let rank =
                    ranks.get(at * pairs.len() + pair).map_or(0, |rank| rank.wrapping_add(before));
                let words = packed.get(2 * rank as usize..).and_then(|words| words.first_chunk());
                let present = (bits >> shift & 0xff) as u8;
                level.expand(words.unwrap_or(&[0; LINE]), present)
            }
        }
    }
}

/// The number of documents in all lists.
pub(super) fn count_common_groups(isa: Isa, lists: &Grouped<'_>) -> u32 {
    dispatch::<Popcount, _>(isa, CountCommon(lists))
}

struct CountCommon<'a>(&'a Grouped<'a>);

impl Call for CountCommon<'_> {
    type Output = u32;
}

impl<L: Lines> RunOn<L> for CountCommon<'_> {
    #[inline(always)]
    fn run_on(self, level: L) -> u32 {
        let mut sums = level.line(&[0; LINE]);
        self.0.for_each_line(level, |_, line| sums = level.add_bits(sums, line));
        level.total(sums)
    }
}

/// Appends the documents in all lists.
#[inline(always)]
pub(super) fn find_common_groups<L: Blocks>(level: L, lists: &Grouped<'_>, found: &mut Vec<u32>) {
    // On the stack, so that nothing is cleared in `found` that is then overwritten.
    let mut ids = [0; LINE * 32 + 32];
    lists.for_each_line(level, |at, line| {
        let mut base = u32::try_from(at * LINE * 32).expect("a line of documents");
        let mut len = 0;
        for word in level.words(line) {
            let free = ids[len..].first_chunk_mut().expect("there is room for a word");
            level.ids_of(base, word, free);
            len += word.count_ones() as usize;
            base = base.wrapping_add(32);
        }
        found.extend_from_slice(&ids[..len]);
    });
}
