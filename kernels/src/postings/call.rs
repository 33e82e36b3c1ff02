//! What a call is given, and its checks.

use super::registers::{Line, lines_per_block};
use super::{BLOCK, POSITION_MAX, RANKS_MAX};
use crate::overlap::{ChunkStore, Entry, Start, pair_number};
use crate::sets::Sets;

/// The token before the first one of a set: no token is as great.
pub const NO_TOKEN: u32 = u32::MAX;

/// The bit of [`Posting::set`] that tells the side of the set; the others are its number.
pub const SIDE_BIT: u32 = 1 << 31;

/// A set that has a token in its prefix.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Posting {
    /// The rank of the set's size, shifted by 16, and the position of the token in the set, which
    /// is [`POSITION_MAX`](super::POSITION_MAX) also if it is greater.
    pub place: u32,
    /// The set, and its side.
    pub set: u32,
    /// The token of the set before this one, or [`NO_TOKEN`].
    pub before: u32,
}

/// The postings of some tokens, and the signatures of all sets.
#[derive(Clone, Copy, Debug)]
pub struct Lists<'a> {
    /// Where each list ends; it begins where the one before it ends, the first one at 0.
    pub ends: &'a [u32],
    /// The postings of all lists; sets ascend within a list, and so do their ranks.
    pub postings: &'a [Posting],
    /// Words of a signature: 0, 1, 2, 4 or 8.
    pub words: usize,
    /// The signature of each set, set after set.
    pub signatures: &'a [u64],
    /// Whether the two sides are joined to each other, instead of one to itself.
    pub is_two_sided: bool,
}

/// What the sets of one size need of those that are not larger.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// The size.
    pub size: u32,
    /// Whether sets of this size meet others; they are found all the same.
    pub is_probe: bool,
    /// The rank of the least size.
    pub rank_min: u32,
    /// How many tokens of a set are found by other sets.
    pub index_prefix: u32,
    /// Where its bounds begin in the pairs of [`Limits`]: one for each rank from `rank_min` to its
    /// own.
    pub pairs: u32,
    /// Where its bounds begin in the greatest ranks of [`Limits`]: one for each token that is
    /// looked up.
    pub positions: u32,
}

/// What sets of two sizes need.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PairLimit {
    /// The least overlap.
    pub required: u32,
    /// The greatest position in the smaller set at which its first common token can suffice. It
    /// does not descend within a row.
    pub position_max: u32,
    /// In how many bits signatures may differ. It does not descend within a row.
    pub distance_max: u64,
}

/// The bounds of all sizes, checked once for many calls.
#[derive(Clone, Debug)]
pub struct Limits {
    rows: Vec<Row>,
    pairs: Vec<PairLimit>,
    rank_max: Vec<u32>,
}

impl Limits {
    /// `rows` are by rank of the probe's size. `pairs` are by row, then by rank of the smaller set.
    /// `rank_max` is by row, then by position in the probe: the greatest rank that can suffice when
    /// the first common token is there, from the row's `rank_min` to its own rank.
    ///
    /// # Panics
    ///
    /// If there are more than [`RANKS_MAX`] rows, a row is not as [`Row`] says or its bounds
    /// descend, a position is not below 2^31 or a distance not below 2^63, or a greatest rank is
    /// outside its row.
    #[must_use]
    pub fn new(rows: Vec<Row>, pairs: Vec<PairLimit>, rank_max: Vec<u32>) -> Self {
        let limits = Self { rows, pairs, rank_max };
        let (rows, pairs) = (limits.rows.len(), limits.pairs.len());
        assert!(rows <= RANKS_MAX, "{rows} sizes, more than {RANKS_MAX}");
        for (rank, row) in (0..).zip(&limits.rows) {
            assert!(row.rank_min <= rank, "sizes from rank {} to {rank}", row.rank_min);
            let begin = row.pairs as usize;
            let end = begin + (rank - row.rank_min) as usize;
            assert!(end < pairs, "bounds up to {end} of {pairs}");
            let of_row = &limits.pairs[begin..=end];
            assert!(of_row.is_sorted_by_key(|limit| limit.position_max), "the position descends");
            assert!(of_row.is_sorted_by_key(|limit| limit.distance_max), "the distance descends");
            let loosest = of_row[of_row.len() - 1];
            assert!(loosest.position_max < 1 << 31, "a position of 2^31 or more");
            assert!(loosest.distance_max < 1 << 63, "a distance of 2^63 or more");
            let positions = row.positions as usize;
            let next = limits.rows.get(rank as usize + 1);
            let positions_end = next.map_or(limits.rank_max.len(), |row| row.positions as usize);
            let is_rank = |max: &u32| (row.rank_min..=rank).contains(max);
            let are_ranks = limits.rank_max[positions..positions_end].iter().all(is_rank);
            assert!(are_ranks, "a greatest rank outside {} to {rank}", row.rank_min);
        }
        limits
    }

    /// The bounds of a probe and a set by their ranks.
    ///
    /// # Panics
    ///
    /// If the set's rank is outside the row.
    #[inline(always)]
    #[must_use]
    pub fn of(&self, probe_rank: u32, rank: u32) -> PairLimit {
        let row = self.rows[probe_rank as usize];
        self.pairs[(row.pairs + (rank - row.rank_min)) as usize]
    }

    #[inline(always)]
    pub(super) fn row(&self, rank: u32) -> &Row {
        &self.rows[rank as usize]
    }

    /// The bounds of a row, and more behind.
    #[inline(always)]
    pub(super) fn pairs(&self, row: &Row) -> &[PairLimit] {
        &self.pairs[row.pairs as usize..]
    }

    #[inline(always)]
    pub(super) fn rank_max(&self, row: &Row, position: u32) -> u32 {
        self.rank_max[(row.positions + position) as usize]
    }
}

impl Lists<'_> {
    pub(super) fn check(&self) {
        let words = self.words;
        assert!(matches!(words, 0 | 1 | 2 | 4 | 8), "signatures have no {words} words");
        let (last, postings) = (self.ends.last().map_or(0, |end| *end), self.postings.len());
        assert!(last as usize <= postings, "lists up to {last} of {postings} postings");
    }
}

/// A posting in which a probe has met sets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Meeting {
    /// The list.
    pub list: u32,
    /// The probe's place, as in [`Posting`].
    pub place: u32,
    /// The probe, without its side.
    pub probe: u32,
    /// Behind the last one of the sets that it met there.
    pub end: u32,
}

/// The meetings that passed the tests.
#[derive(Debug, Default)]
pub struct Met {
    /// One after the other; their sets are in `sets` and `places`, each from where the one before
    /// ends.
    pub meetings: Vec<Meeting>,
    /// The sets that were met, without their side; longer than needed.
    pub sets: Vec<u32>,
    /// Their places, as in [`Posting`].
    pub places: Vec<u32>,
    /// How many there are.
    pub(super) len: usize,
}

impl Met {
    /// Bytes that it takes at most for so many sets that were met.
    #[must_use]
    pub fn bytes(sets: usize) -> usize {
        let room = (sets + BLOCK).next_power_of_two();
        room * 2 * size_of::<u32>() + sets * size_of::<Meeting>()
    }

    /// Writes down those pairs that pass the test by their own bounds, as starts behind the token
    /// at which they meet. Token `token_min + i` is that of list `i`.
    ///
    /// # Shapes
    ///
    /// `sets`: those that the postings name, by size; `matches`: overwritten.
    ///
    /// # Panics
    ///
    /// If a set or a size is not there.
    pub fn write_matches(
        &self,
        limits: &Limits,
        sets: Sets<'_>,
        token_min: u32,
        matches: &mut ChunkStore,
    ) {
        matches.clear();
        matches.resize(self.len);
        let (mut begin, mut kept) = (0, 0);
        for meeting in &self.meetings {
            let end = meeting.end as usize;
            let (others, places) = (&self.sets[begin..end], &self.places[begin..end]);
            begin = end;
            let token = token_min + meeting.list;
            let position = |place: u32, set: u32| match place & 0xffff {
                POSITION_MAX => position_of(token, sets.set(set as usize)),
                position => position,
            };
            let probe_at = position(meeting.place, meeting.probe);
            let row = limits.row(meeting.place >> 16);
            let left = row.size.saturating_sub(probe_at);
            let of_row = limits.pairs(row);
            let first = kept;
            for (&candidate, &place) in others.iter().zip(places) {
                let limit = &of_row[((place >> 16) - row.rank_min) as usize];
                let candidate_at = position(place, candidate);
                let start = Start { probe: probe_at + 1, candidate: candidate_at + 1, overlap: 1 };
                matches.candidates[kept] = candidate;
                matches.required[kept] = limit.required;
                matches.starts[kept] = start;
                let is_near = candidate_at <= limit.position_max;
                kept += usize::from(is_near && limit.required <= left);
            }
            if kept > first {
                let (begin, end) = (pair_number(first), pair_number(kept));
                matches.entries.push(Entry { probe: meeting.probe, begin, end });
            }
        }
        matches.resize(kept);
    }
}

/// Where a token is in a set that has it.
#[cold]
fn position_of(token: u32, set: &[u32]) -> u32 {
    let position = set.binary_search(&token).expect("the set is in the token's list");
    u32::try_from(position).expect("sets have fewer than 2^32 tokens")
}

/// How far a join of lists has come.
#[derive(Debug, Default)]
pub struct Progress {
    /// The list in hand.
    pub(super) list: usize,
    /// Where it begins.
    pub(super) begin: usize,
    /// Its next probe; the list is on the shelves unless this is the first one.
    pub(super) next: usize,
    /// The postings of the list that others find, by side.
    pub(super) shelves: [Shelf; 2],
    /// How many of those on the partner's side are before each posting.
    pub(super) upto: Vec<u32>,
    /// Postings that were tested, and that passed.
    pub(super) tested: u64,
    pub(super) passed: u64,
}

/// Postings in blocks of sixteen, field by field.
#[derive(Debug, Default)]
pub(super) struct Shelf {
    /// Behind blocks of sets that are too small for all probes to come.
    pub(super) begin: usize,
    pub(super) len: usize,
    /// Block after block, each as `registers` says.
    pub(super) lines: Vec<Line>,
}

impl Progress {
    /// Before the first list, of lists of at most `len_max` postings.
    #[must_use]
    pub fn new(len_max: usize, words: usize, is_two_sided: bool) -> Self {
        let lines = len_max.div_ceil(BLOCK) * lines_per_block(words);
        let shelf = |lines| Shelf { begin: 0, len: 0, lines: vec![[0; BLOCK]; lines] };
        let other = if is_two_sided { lines } else { 0 };
        Self { shelves: [shelf(lines), shelf(other)], upto: vec![0; len_max], ..Self::default() }
    }

    /// Goes on with the first one of other lists, which are no longer.
    pub fn go_on(&mut self) {
        (self.list, self.begin, self.next) = (0, 0, 0);
    }

    /// Bytes that [`Self::new`] takes.
    #[must_use]
    pub fn bytes(len_max: usize, words: usize, is_two_sided: bool) -> usize {
        let lines = len_max.div_ceil(BLOCK) * lines_per_block(words);
        let shelves = (1 + usize::from(is_two_sided)) * lines * size_of::<Line>();
        shelves + len_max * size_of::<u32>()
    }

    /// Postings that were tested, and those that passed.
    #[must_use]
    pub fn tested(&self) -> (u64, u64) {
        (self.tested, self.passed)
    }
}
