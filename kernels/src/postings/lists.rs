//! The loop over lists and their postings.

use super::BLOCK;
use super::call::{Limits, Lists, Meeting, Met, NO_TOKEN, Posting, Progress, Row, SIDE_BIT, Shelf};
use super::registers::{
    BEFORES, Kernel, Line, PLACES, Registers, SETS, SIGNATURES, Sought, lines_per_block,
};
use crate::prefetch::prefetch;

/// How many postings ahead signatures are asked for.
const AHEAD: usize = 32;

const POSTINGS: &str = "a list has fewer than 2^31 postings";

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
        met.clear();
        while let Some(&end) = lists.ends.get(progress.list) {
            let end = end as usize;
            let list = &lists.postings[progress.begin..end];
            // A set alone meets nobody.
            if list.len() > 1 {
                if progress.next == 0 {
                    shelve::<WORDS>(lists, list, limits, progress);
                }
                for (posting, &upto) in list.iter().zip(&progress.upto).skip(progress.next) {
                    progress.next += 1;
                    if upto == 0 {
                        continue;
                    }
                    let probe = Probe::<WORDS>::new(lists, limits, *posting);
                    let shelf = &mut progress.shelves[probe.partner(lists)];
                    let found = met.len;
                    progress.tested += probe.look_up(registers, shelf, upto as usize, limits, met);
                    if met.len > found {
                        progress.passed += (met.len - found) as u64;
                        met.meetings.push(Meeting {
                            list: u32::try_from(progress.list).expect("tokens are below 2^31"),
                            place: posting.place,
                            probe: posting.set & !SIDE_BIT,
                            end: u32::try_from(met.len).expect(POSTINGS),
                        });
                        if met.len >= met_max {
                            return true;
                        }
                    }
                }
            }
            progress.list += 1;
            (progress.begin, progress.next) = (end, 0);
        }
        false
    }
}

/// Puts those postings of a list on the shelves that others find, and writes down how many are
/// there before each posting.
///
/// All before the first one is looked up: a load of sixteen that had just been written one by one
/// would have to wait for the last of them.
#[inline(always)]
fn shelve<const WORDS: usize>(
    lists: Lists<'_>,
    list: &[Posting],
    limits: &Limits,
    progress: &mut Progress,
) {
    for shelf in &mut progress.shelves {
        (shelf.begin, shelf.len) = (0, 0);
    }
    let upto = &mut progress.upto[..list.len()];
    let from_here = &lists.postings[progress.begin..];
    for (at, (posting, upto)) in list.iter().zip(upto).enumerate() {
        // Perhaps of a list to come: most are short.
        if let Some(ahead) = from_here.get(at + AHEAD) {
            prefetch(lists.signatures, (ahead.set & !SIDE_BIT) as usize * WORDS);
        }
        let probe = Probe::<WORDS>::new(lists, limits, *posting);
        let len = progress.shelves[probe.partner(lists)].len;
        *upto = u32::try_from(len).expect(POSTINGS);
        probe.add(&mut progress.shelves[probe.side()]);
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

    #[inline(always)]
    fn side(&self) -> usize {
        usize::from(self.posting.set & SIDE_BIT != 0)
    }

    /// The side on which it finds others.
    #[inline(always)]
    fn partner(&self, lists: Lists<'_>) -> usize {
        self.side() ^ usize::from(lists.is_two_sided)
    }

    /// Writes down those of the first `upto` sets of the shelf that pass; returns how many were
    /// tested.
    #[inline(always)]
    fn look_up(
        &self,
        registers: impl Registers,
        shelf: &mut Shelf,
        upto: usize,
        limits: &Limits,
        met: &mut Met,
    ) -> u64 {
        let Self { posting, row, signature } = *self;
        if !row.is_probe {
            return 0;
        }
        let place_min = row.rank_min << 16;
        let begin = shelf.first_not_below::<WORDS>(place_min, upto);
        if begin >= upto {
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
        let mut left = upto - begin;
        met.make_room(met.len + left);
        let (sets, places) = (&mut met.sets[..], &mut met.places[..]);
        let (mut written, mut tested) = (met.len, 0);
        let pairs = limits.pairs(row);
        let lines_per_block = const { lines_per_block(WORDS) };
        let first_line = begin / BLOCK * lines_per_block;
        for block in shelf.lines[first_line..].chunks_exact(lines_per_block) {
            if left == 0 || block[PLACES][0] >> 16 > rank_max {
                break;
            }
            let end = BLOCK.min(left);
            // The loosest bounds are those of the greatest size.
            let rank = (block[PLACES][end - 1] >> 16).min(rank_max);
            let limit = &pairs[rank.saturating_sub(row.rank_min) as usize];
            sought.position_max = limit.position_max;
            sought.distance_max = limit.distance_max;
            let valid = (1_u32 << end) - 1;
            let passed = registers.test(block, valid, &sought) & valid;
            let room = written..written + BLOCK;
            let to = sets[room.clone()].as_mut_array().expect("room for a block");
            registers.compress(passed, &block[SETS], to);
            let to = places[room].as_mut_array().expect("room for a block");
            registers.compress(passed, &block[PLACES], to);
            written += passed.count_ones() as usize;
            tested += end;
            left -= end;
        }
        met.len = written;
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
        // Two sets that begin with the common token have no token before it, rather than the same
        // one: it is another number on the shelf than in a probe.
        block[BEFORES][lane] = posting.before.min(NO_TOKEN - 1);
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

impl Shelf {
    /// The first block with a set that is large enough; behind the last one that is full, the next.
    #[inline(always)]
    fn first_not_below<const WORDS: usize>(&mut self, place_min: u32, upto: usize) -> usize {
        let lines_per_block = const { lines_per_block(WORDS) };
        let last_place =
            |begin: usize| self.lines[begin / BLOCK * lines_per_block + PLACES][BLOCK - 1];
        while self.begin + BLOCK <= upto && last_place(self.begin) < place_min {
            self.begin += BLOCK;
        }
        self.begin
    }
}

impl Met {
    fn clear(&mut self) {
        self.meetings.clear();
        self.len = 0;
    }

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
