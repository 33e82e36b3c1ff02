//! The loop over lists and their postings.

use std::ops::Range;

use super::block_list::BlockList;
use super::hits::{Hits, ProbeHits};
use super::levels::{BLOCK, BlockTest, PLACES, SETS, Sought};
use super::limits::{Limits, Row};
use super::lists::{Lists, Posting, SIDE_BIT};
use super::progress::Progress;
use crate::simd::{RunOn, prefetch};

/// Number of postings between the current posting and the posting whose signature is prefetched.
const AHEAD: usize = 32;

const POSTINGS: &str = "a list has fewer than 2^31 postings";

/// The arguments of [`scan_lists`](super::scan_lists).
pub(super) struct ScanLists<'a, 'b> {
    pub(super) lists: Lists<'a>,
    pub(super) limits: &'a Limits,
    pub(super) progress: &'b mut Progress,
    pub(super) hits: &'b mut Hits,
    pub(super) hits_max: usize,
}

impl<L: BlockTest> RunOn<L, bool> for ScanLists<'_, '_> {
    /// The number of words is a constant of each loop, so that registers hold a signature.
    #[inline(always)]
    fn run_on(self, level: L) -> bool {
        match self.lists.words {
            0 => self.scan::<0, L>(level),
            1 => self.scan::<1, L>(level),
            2 => self.scan::<2, L>(level),
            4 => self.scan::<4, L>(level),
            _ => self.scan::<8, L>(level),
        }
    }
}

/// A posting as a probe.
struct Probe<'a, const WORDS: usize> {
    posting: Posting,
    row: &'a Row,
    signature: &'a [u64; WORDS],
}

impl<'a> ScanLists<'a, '_> {
    #[inline(always)]
    fn scan<const WORDS: usize, L: BlockTest>(self, level: L) -> bool {
        let Self { lists, limits, progress, hits, hits_max } = self;
        hits.clear();
        while progress.probes.start < progress.probes.end {
            let Progress { begin, probes: Range { start, end: probes_end }, .. } = *progress;
            let list_end = lists.ends[progress.list] as usize;
            if start >= list_end {
                progress.list += 1;
                (progress.begin, progress.transposed) = (list_end, list_end);
                continue;
            }
            let end = list_end.min(probes_end);
            // A list of one set has no pair.
            if end - begin > 1 {
                transpose::<WORDS>(lists, end, limits, progress);
                let probes = &lists.postings[start..end];
                for (posting, &visible) in probes.iter().zip(&progress.visible[start - begin..]) {
                    progress.probes.start += 1;
                    if visible == 0 {
                        continue;
                    }
                    let probe = Probe::<WORDS>::new(lists, limits, *posting);
                    let block_list = &mut progress.block_lists[probe.partner(lists)];
                    let found = hits.len;
                    progress.tested +=
                        probe.look_up(level, block_list, visible as usize, limits, hits);
                    if hits.len > found {
                        progress.passed += (hits.len - found) as u64;
                        hits.probes.push(ProbeHits {
                            list: u32::try_from(progress.list).expect("tokens are below 2^31"),
                            place: posting.place,
                            probe: posting.set & !SIDE_BIT,
                            end: u32::try_from(hits.len).expect(POSTINGS),
                        });
                        if hits.len >= hits_max {
                            return progress.probes.start < probes_end;
                        }
                    }
                }
            }
            progress.probes.start = end;
        }
        false
    }
}

/// Copies the postings of the current list up to `end` that other sets find into blocks, and counts
/// for each posting the earlier copied postings.
///
/// The copy ends before the first posting is looked up: a load of sixteen numbers that have just
/// been written one by one would have to wait for the last of these stores.
#[inline(always)]
fn transpose<const WORDS: usize>(
    lists: Lists<'_>,
    end: usize,
    limits: &Limits,
    progress: &mut Progress,
) {
    let Progress { begin, transposed, block_lists, visible, .. } = progress;
    if *transposed == *begin {
        block_lists.iter_mut().for_each(BlockList::clear);
    }
    let visible = &mut visible[*transposed - *begin..end - *begin];
    let from_here = &lists.postings[*transposed..];
    for (at, (posting, visible)) in from_here.iter().zip(visible).enumerate() {
        // The posting may be of a later list: most lists are short.
        if let Some(ahead) = from_here.get(at + AHEAD) {
            prefetch(lists.signatures, (ahead.set & !SIDE_BIT) as usize * WORDS);
        }
        let probe = Probe::<WORDS>::new(lists, limits, *posting);
        let len = block_lists[probe.partner(lists)].len();
        *visible = u32::try_from(len).expect(POSTINGS);
        let is_indexed = posting.place & 0xffff < probe.row.index_prefix;
        block_lists[probe.side()].push(*posting, probe.signature, is_indexed);
    }
    *transposed = end;
}

impl<'a, const WORDS: usize> Probe<'a, WORDS> {
    #[inline(always)]
    fn new(lists: Lists<'a>, limits: &'a Limits, posting: Posting) -> Self {
        let row = limits.row(posting.place >> 16);
        let set = (posting.set & !SIDE_BIT) as usize;
        let signature = &lists.signatures[set * WORDS..][..WORDS];
        let signature = signature.as_array().expect("a slice of `WORDS` words");
        Self { posting, row, signature }
    }

    #[inline(always)]
    fn side(&self) -> usize {
        usize::from(self.posting.set & SIDE_BIT != 0)
    }

    /// The side on which the probe finds sets.
    #[inline(always)]
    fn partner(&self, lists: Lists<'_>) -> usize {
        self.side() ^ usize::from(lists.is_two_sided)
    }

    /// Tests the first `visible` sets of the list, and adds the sets that pass to the hits. Returns
    /// the number of tested sets.
    #[inline(always)]
    fn look_up(
        &self,
        level: impl BlockTest,
        block_list: &mut BlockList,
        visible: usize,
        limits: &Limits,
        hits: &mut Hits,
    ) -> u64 {
        let Self { posting, row, signature } = *self;
        if !row.is_probe {
            return 0;
        }
        let place_min = row.rank_min << 16;
        // Sizes ascend, so the sets that are too small are a prefix of the list.
        let begin = block_list.first_not_below::<WORDS>(place_min, visible);
        if begin >= visible {
            return 0;
        }
        let rank_max = limits.rank_max(row, posting.place & 0xffff);
        let mut sought = Sought {
            place_min,
            position_max: 0,
            before: posting.before,
            signature: *signature,
            distance_max: 0,
        };
        let mut left = visible - begin;
        hits.make_room(hits.len + left);
        let (sets, places) = (&mut hits.sets[..], &mut hits.places[..]);
        let (mut written, mut tested) = (hits.len, 0);
        let pairs = limits.pairs(row);
        for block in block_list.blocks_from::<WORDS>(begin) {
            // Ranks ascend: all further sets are too large.
            if left == 0 || block[PLACES][0] >> 16 > rank_max {
                break;
            }
            let end = BLOCK.min(left);
            // The greatest size has the loosest bounds.
            let rank = (block[PLACES][end - 1] >> 16).min(rank_max);
            let limit = &pairs[rank.saturating_sub(row.rank_min) as usize];
            sought.position_max = limit.position_max;
            sought.distance_max = limit.distance_max;
            let valid = (1_u32 << end) - 1;
            let passed = level.test(block, valid, &sought) & valid;
            if passed != 0 {
                let room = written..written + BLOCK;
                let to = sets[room.clone()].as_mut_array().expect("room for a block");
                level.compress(passed, &block[SETS], to);
                let to = places[room].as_mut_array().expect("room for a block");
                level.compress(passed, &block[PLACES], to);
                written += passed.count_ones() as usize;
            }
            tested += end;
            left -= end;
        }
        hits.len = written;
        tested as u64
    }
}
