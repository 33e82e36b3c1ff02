//! The loop over lists and their postings.

use super::BLOCK;
use super::call::{Limits, Lists, Meeting, Met, NO_TOKEN, Posting, Progress, Row, SIDE_BIT, Shelf};
use super::registers::{
    BEFORES, Kernel, Line, PLACES, Registers, SETS, SIGNATURES, Sought, lines_per_block,
};
use crate::prefetch::prefetch;

/// How many postings ahead signatures are asked for.
const AHEAD: usize = 16;

/// The arguments of [`sift`](super::sift).
pub(super) struct Sift<'a, 'b> {
    pub(super) lists: Lists<'a>,
    pub(super) limits: &'a Limits,
    pub(super) progress: &'b mut Progress,
    pub(super) met: &'b mut Met,
    pub(super) met_max: usize,
}

impl Kernel for Sift<'_, '_> {
    type Output = bool;

    #[inline(always)]
    fn run<R: Registers>(self, registers: R) -> bool {
        match self.lists.words {
            0 => self.of_words::<0, R>(registers),
            1 => self.of_words::<1, R>(registers),
            2 => self.of_words::<2, R>(registers),
            4 => self.of_words::<4, R>(registers),
            _ => self.of_words::<8, R>(registers),
        }
    }
}

/// A posting as a probe.
struct Probe<'a, const WORDS: usize> {
    posting: Posting,
    row: &'a Row,
    signature: &'a [u64; WORDS],
}

impl<'a> Sift<'a, '_> {
    #[inline(always)]
    fn of_words<const WORDS: usize, R: Registers>(self, registers: R) -> bool {
        let Self { lists, limits, progress, met, met_max } = self;
        met.meetings.clear();
        let mut len = 0;
        while let Some(&end) = lists.ends.get(progress.list) {
            let end = end as usize;
            // A set alone meets nobody.
            let first = if progress.next + 1 < end || progress.shelves_hold() {
                progress.next
            } else {
                end
            };
            for at in first..end {
                if len >= met_max {
                    progress.next = at;
                    return true;
                }
                if let Some(ahead) = lists.postings.get(at + AHEAD) {
                    prefetch(lists.signatures, (ahead.set & !SIDE_BIT) as usize * WORDS);
                }
                let probe = Probe::<WORDS>::new(lists, limits, lists.postings[at]);
                let side = usize::from(probe.posting.set & SIDE_BIT != 0);
                let partner = side ^ usize::from(lists.is_two_sided);
                let found = len;
                let shelf = &mut progress.shelves[partner];
                progress.tested += probe.look_up(registers, shelf, limits, met, &mut len);
                if len > found {
                    progress.passed += (len - found) as u64;
                    met.meetings.push(Meeting {
                        list: u32::try_from(progress.list).expect("tokens are below 2^31"),
                        place: probe.posting.place,
                        probe: probe.posting.set & !SIDE_BIT,
                        end: u32::try_from(len).expect("a list has fewer than 2^31 postings"),
                    });
                }
                probe.add(&mut progress.shelves[side]);
            }
            progress.list += 1;
            progress.next = end;
            for shelf in &mut progress.shelves {
                (shelf.begin, shelf.len) = (0, 0);
            }
        }
        false
    }
}

impl Progress {
    fn shelves_hold(&self) -> bool {
        self.shelves.iter().any(|shelf| shelf.len > 0)
    }
}

impl<'a, const WORDS: usize> Probe<'a, WORDS> {
    #[inline(always)]
    fn new(lists: Lists<'a>, limits: &'a Limits, posting: Posting) -> Self {
        let row = limits.row(posting.place >> 16);
        let set = (posting.set & !SIDE_BIT) as usize;
        let signature = &lists.signatures[set * WORDS..][..WORDS];
        let signature = signature.as_array().expect("so many words");
        Self { posting, row, signature }
    }

    /// Writes down the sets of the shelf that pass; returns how many were tested.
    #[inline(always)]
    fn look_up(
        &self,
        registers: impl Registers,
        shelf: &mut Shelf,
        limits: &Limits,
        met: &mut Met,
        len: &mut usize,
    ) -> u64 {
        let Self { posting, row, signature } = *self;
        if !row.is_probe {
            return 0;
        }
        let lines_per_block = const { lines_per_block(WORDS) };
        let place_at =
            |at: usize| shelf.lines[at / BLOCK * lines_per_block + PLACES][at % BLOCK] >> 16;
        let mut begin = shelf.begin;
        while begin < shelf.len && place_at(begin) < row.rank_min {
            begin += 1;
        }
        shelf.begin = begin;
        if begin == shelf.len {
            return 0;
        }
        let rank_max = limits.rank_max(row, posting.place & 0xffff);
        let mut sought = Sought {
            position_max: 0,
            // Whoever begins with the common token has the same `before`, and has not been met.
            before: posting.before.min(NO_TOKEN - 1),
            signature: *signature,
            distance_max: 0,
        };
        let first_block = begin / BLOCK;
        let mut left = shelf.len - first_block * BLOCK;
        met.make_room(*len + left);
        let (sets, places) = (&mut met.sets[..], &mut met.places[..]);
        let mut written = *len;
        let (mut behind_first, mut tested) = (begin % BLOCK, 0);
        let pairs = limits.pairs(row);
        let blocks = shelf.lines[first_block * lines_per_block..].chunks_exact(lines_per_block);
        for block in blocks {
            if left == 0 || block[PLACES][behind_first] >> 16 > rank_max {
                break;
            }
            let end = BLOCK.min(left);
            let valid = (1_u32 << end) - (1 << behind_first);
            // The loosest bounds are those of the greatest size.
            let rank = (block[PLACES][end - 1] >> 16).min(rank_max);
            let limit = pairs[(rank - row.rank_min) as usize];
            sought.position_max = limit.position_max;
            sought.distance_max = limit.distance_max;
            let passed = registers.test(block, valid, &sought) & valid;
            let room = written..written + BLOCK;
            let to = sets[room.clone()].as_mut_array().expect("room for a block");
            registers.compress(passed, &block[SETS], to);
            let to = places[room].as_mut_array().expect("room for a block");
            registers.compress(passed, &block[PLACES], to);
            written += passed.count_ones() as usize;
            tested += end - behind_first;
            behind_first = 0;
            left -= end;
        }
        *len = written;
        tested as u64
    }

    /// Puts the posting on its shelf, if others find it.
    #[inline(always)]
    fn add(&self, shelf: &mut Shelf) {
        let Self { posting, row, signature } = self;
        let lines_per_block = const { lines_per_block(WORDS) };
        let lane = shelf.len % BLOCK;
        // What is written behind the last one is overwritten by the next.
        let block = &mut shelf.lines[shelf.len / BLOCK * lines_per_block..][..lines_per_block];
        block[PLACES][lane] = posting.place;
        block[BEFORES][lane] = posting.before;
        block[SETS][lane] = posting.set & !SIDE_BIT;
        for (halves, word) in block[SIGNATURES..].as_chunks_mut().0.iter_mut().zip(*signature) {
            let halves: &mut [Line; 2] = halves;
            let line = &mut halves[lane / 8];
            line[lane % 8 * 2] = (word & 0xffff_ffff) as u32;
            line[lane % 8 * 2 + 1] = (word >> 32) as u32;
        }
        shelf.len += usize::from(posting.place & 0xffff < row.index_prefix);
    }
}

impl Met {
    /// Makes room for so many, and a block more.
    #[inline(always)]
    fn make_room(&mut self, len: usize) {
        if self.sets.len().min(self.places.len()) < len + BLOCK {
            self.grow(len + BLOCK);
        }
    }

    #[cold]
    fn grow(&mut self, len: usize) {
        let room = len.next_power_of_two();
        self.sets.resize(room, 0);
        self.places.resize(room, 0);
    }
}
