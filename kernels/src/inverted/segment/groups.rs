//! Lists by groups of 64 documents: a summary with a bit for each group, and the words of the
//! groups that are not empty.
//!
//! ```text
//! summary   0 1 1 0 0 0 0 1 ..   a bit a group, 512 groups a line
//! ranks     0        17     ..   for each 64 groups, the number of groups before, without empty ones
//! packed    two words for each group that is not empty; a bitmap has its own words
//! ```
//!
//! Eight groups are a line of documents. The packed groups of a line are neighbours, and an
//! expanding load puts them into their places.
//!
//! Source: a rank as in Vigna, *Broadword Implementation of Rank/Select Queries*, WEA 2008, with
//! one count for 64 bits.

use super::layout::{Form, GROUP_SHIFT, LINE_RANKS, summary_lines};
use crate::inverted::levels::{LINE, Lines};

/// The groups of a list.
#[derive(Clone, Copy, Debug)]
pub(in crate::inverted) struct Groups<'a> {
    /// A bit for each group, in lines; empty for a bitmap without a summary.
    pub(in crate::inverted) summary: &'a [[u32; LINE]],
    pub(super) content: Content<'a>,
}

/// The documents of groups.
#[derive(Clone, Copy, Debug)]
pub(super) enum Content<'a> {
    /// The words of all groups.
    Bits(&'a [u32]),
    /// The words of the groups that are not empty.
    Packed {
        /// For each 64 groups, the number of earlier groups that are not empty.
        ranks: &'a [u32],
        /// Two words for each group, and all later words of the segment.
        packed: &'a [u32],
    },
}

impl Groups<'_> {
    /// The bits of the line of a byte of a line of the summary.
    #[inline(always)]
    pub(in crate::inverted) fn line<L: Lines>(&self, level: L, at: usize, byte: usize) -> L::Line {
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

/// Writes the summary of a list, and for a list that is not a bitmap also ranks and the words of
/// groups.
pub(in crate::inverted) fn encode_groups(
    words: &mut [u32],
    form: Form,
    documents: u32,
    ids: &[u32],
) {
    let lines = usize::try_from(summary_lines(documents)).expect("it fits the address space");
    let (summary, rest) = words.split_at_mut(lines * LINE);
    let (ranks, packed) =
        rest.split_at_mut(if form == Form::Bits { 0 } else { lines * LINE_RANKS });
    let (mut groups, mut before, mut ranked) = (0_u32, u32::MAX, 0);
    for &id in ids {
        let group = id >> GROUP_SHIFT;
        let is_new = group != before;
        before = group;
        summary[(group / 32) as usize] |= 1 << (group % 32);
        if form == Form::Bits {
            continue;
        }
        // The number of groups before each run of 64 groups.
        let place = (group / 64) as usize;
        if is_new {
            ranks[ranked..=place].fill(groups);
            ranked = place + 1;
            groups += 1;
        }
        packed[2 * (groups as usize - 1) + (id / 32 % 2) as usize] |= 1 << (id % 32);
    }
    if form != Form::Bits {
        ranks[ranked..].fill(groups);
    }
}
