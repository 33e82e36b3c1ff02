//! The join that `auto` means: prefixes, sizes, positions and signatures, by the kernels of
//! [`postings`].
//!
//! ```text
//! lists of postings, one for each token ──► sift: 16 postings at a time ──► who meets whom
//!   ──► positions, by the bounds of the pair ──► first common token? ──► chunk
//! ```
//!
//! Each list is joined to itself, rather than each set looked up in the lists of its tokens: that
//! reads memory in its order. A pair that meets in several lists is taken in that of the first
//! token that both sets have.
//!
//! There are lists of some of the tokens at a time, so that the index stays smaller than the sets.
//!
//! How long signatures are follows from the sizes of the sets and from how many postings there
//! will be to test: there are none if the lists are so short that making them would cost more than
//! they save.

use std::ops::Range;
use std::sync::Arc;

use trommel_kernels::Isa;
use trommel_kernels::overlap::{self, ChunkStore, Cursor};
use trommel_kernels::postings::{
    self, Limits, Lists, Met, NO_TOKEN, POSITION_MAX, PairLimit, Posting, Progress, RANKS_MAX, Row,
    SIDE_BIT,
};

use crate::budget::Budget;
use crate::set_similarity_join::candidates::chunk::CandidateChunk;
use crate::set_similarity_join::error::JoinError;
use crate::set_similarity_join::find::{Find, JoinCounters};
use crate::set_similarity_join::similarity::Bounds;
use crate::sets::{SetCollection, Side, SizeRun, TOKENS_MAX};

/// Sizes that differ add up to more tokens than there can be.
const _: () = assert!(RANKS_MAX * (RANKS_MAX - 1) / 2 >= TOKENS_MAX);

/// The number of a set leaves a bit for its side.
const _: () = assert!(TOKENS_MAX <= SIDE_BIT as usize);

/// Tokens that are hashed in the time that a posting costs which a signature would have dropped.
const TOKENS_PER_PAIR: u64 = 8;

/// Bits of a signature for each token in which two similar sets can differ.
const BITS_PER_DIFFERENCE: u32 = 5;

/// Tokens of the sets for each posting of a slice.
const TOKENS_PER_POSTING: usize = 4;

/// For so many postings it is not worth going over the sets again.
const SLICE_MIN: usize = if cfg!(test) { 8 } else { 1 << 16 };

/// Meetings of a call of `sift`, after which it stops at the next probe.
const HITS_PER_CALL: usize = 1 << 11;

fn narrow(number: usize) -> u32 {
    u32::try_from(number).expect("tokens and sets have 32-bit numbers")
}

/// The bounds of all sizes.
///
/// # Cost
/// Sizes that differ add up, so there are no more pairs of them than tokens, and no more positions.
fn limits(
    collection: &SetCollection,
    bounds: Bounds,
    not_probed: &[bool],
    budget: &mut Budget,
) -> Result<Limits, JoinError> {
    let sizes = collection.sizes();
    let (mut rows, mut rank_min, mut pairs, mut positions) = (Vec::new(), 0, 0, 0);
    for (rank, run) in sizes.iter().enumerate() {
        let size_min = bounds.size_min(run.size);
        while rank_min < rank && sizes[rank_min].size < size_min {
            rank_min += 1;
        }
        rows.push(Row {
            size: run.size,
            is_probe: not_probed.get(rank) != Some(&true),
            rank_min: narrow(rank_min),
            index_prefix: bounds.index_prefix(run.size),
            pairs: narrow(pairs),
            positions: narrow(positions),
        });
        pairs += rank - rank_min + 1;
        positions += bounds.probe_prefix(run.size) as usize;
    }
    let bytes = rows.len() * size_of::<Row>()
        + pairs * size_of::<PairLimit>()
        + positions * size_of::<u32>();
    budget.take("the index", bytes)?;
    let (mut limits, mut rank_max) = (Vec::with_capacity(pairs), Vec::with_capacity(positions));
    for (rank, (row, run)) in rows.iter().zip(sizes).enumerate() {
        let rank_min = row.rank_min as usize;
        limits.extend(pair_limits(run.size, &sizes[rank_min..=rank], bounds));
        let of_row: &[PairLimit] = &limits[row.pairs as usize..];
        let mut greatest = rank;
        for left in (0..=run.size).rev().take(bounds.probe_prefix(run.size) as usize) {
            while greatest > rank_min && of_row[greatest - rank_min].required > left {
                greatest -= 1;
            }
            rank_max.push(narrow(greatest));
        }
    }
    Ok(Limits::new(rows, limits, rank_max))
}

/// What a set of some size needs of those of other sizes, which are not larger.
fn pair_limits(size: u32, others: &[SizeRun], bounds: Bounds) -> impl Iterator<Item = PairLimit> {
    others.iter().scan(0, move |distance_max, other| {
        let required = bounds.required(size, other.size);
        // Rounding can make it one less for the next size. That loses nothing: the number of bits
        // is odd or even as the sum of the sizes is, and so is the bound.
        let distance = u64::from(size) + u64::from(other.size);
        let distance = distance.saturating_sub(2 * u64::from(required));
        *distance_max = distance.max(*distance_max);
        let position_max = other.size.saturating_sub(required);
        Some(PairLimit { required, position_max, distance_max: *distance_max })
    })
}

/// The postings of all tokens that two sets of a pair can have in common, a slice of the tokens at
/// a time: so many that they take three quarters of the memory of the tokens of the sets, more only
/// for [`SLICE_MIN`] postings or for the longest list.
struct SlicedIndex {
    /// The token of the first list.
    token_min: u32,
    /// By list: where it ends among the postings of the slice; behind the slice, how many postings
    /// it will have.
    ends: Vec<u32>,
    /// The lists of the slice.
    slice: Range<usize>,
    /// Those of the slice, and room for the largest one.
    postings: Vec<Posting>,
    /// The most postings of a list.
    len_max: usize,
    /// Pairs of postings in a list.
    posting_pairs: u64,
}

impl SlicedIndex {
    /// Counts the postings of all lists; the first slice is empty.
    fn new(
        collection: &SetCollection,
        bounds: Bounds,
        budget: &mut Budget,
    ) -> Result<Self, JoinError> {
        let token_min = collection.unshared();
        let lists = (collection.distinct() - token_min) as usize;
        budget.take("the index", lists * size_of::<u32>())?;
        let mut ends = vec![0_u32; lists];
        for run in collection.sizes() {
            let prefix = bounds.probe_prefix(run.size) as usize;
            for set in run.begin..run.end {
                for &token in &collection.set(set)[..prefix] {
                    if token >= token_min {
                        ends[(token - token_min) as usize] += 1;
                    }
                }
            }
        }
        let len_max = ends.iter().max().map_or(0, |len| *len as usize);
        let posting_pairs = ends.iter().map(|len| u64::from(*len) * u64::from(*len) / 2).sum();
        let all: usize = ends.iter().map(|len| *len as usize).sum();
        let slice_max = SLICE_MIN.max(collection.tokens() / TOKENS_PER_POSTING);
        let slice_max = slice_max.max(len_max).min(all);
        budget.take("the index", slice_max * size_of::<Posting>())?;
        let postings = vec![Posting::default(); slice_max];
        Ok(Self { token_min, ends, slice: 0..0, postings, len_max, posting_pairs })
    }

    /// Goes on to the next slice; false if there is none.
    fn next_slice(&mut self, collection: &SetCollection, bounds: Bounds) -> bool {
        let begin = self.slice.end;
        let (mut end, mut room) = (begin, 0_usize);
        while let Some(len) = self.ends.get_mut(end) {
            let with_it = room + *len as usize;
            if with_it > self.postings.len() {
                break;
            }
            *len = narrow(std::mem::replace(&mut room, with_it));
            end += 1;
        }
        self.slice = begin..end;
        if begin == end {
            return false;
        }
        for (rank, run) in collection.sizes().iter().enumerate() {
            let prefix = bounds.probe_prefix(run.size) as usize;
            for set in run.begin..run.end {
                self.add(collection, narrow(rank), set, prefix);
            }
        }
        true
    }

    #[inline(always)]
    fn add(&mut self, collection: &SetCollection, rank: u32, set: u32, prefix: usize) {
        let side = match collection.side(set) {
            Side::Left => 0,
            Side::Right => SIDE_BIT,
        };
        let tokens = self.first_token()..self.token_min + narrow(self.slice.end);
        let mut before = NO_TOKEN;
        for (position, &token) in (0_u32..).zip(&collection.set(set)[..prefix]) {
            if token >= tokens.end {
                break;
            }
            if token >= tokens.start {
                let end = &mut self.ends[(token - self.token_min) as usize];
                let place = rank << 16 | position.min(POSITION_MAX);
                self.postings[*end as usize] = Posting { place, set: set | side, before };
                *end += 1;
            }
            before = token;
        }
    }

    /// The token of the first list of the slice.
    fn first_token(&self) -> u32 {
        self.token_min + narrow(self.slice.start)
    }
}

/// Words of a signature.
///
/// Signatures are worth making if there are enough postings to test for each token that is hashed.
/// They have to be the longer, the more tokens two similar sets of the usual size can have for
/// themselves. Measured by `trommel-bench set-join`.
fn words(collection: &SetCollection, bounds: Bounds, index: &SlicedIndex) -> usize {
    let tokens = collection.tokens() as u64;
    if index.posting_pairs.saturating_mul(TOKENS_PER_PAIR) < tokens {
        return 0;
    }
    let size = narrow(collection.tokens() / collection.len().max(1));
    let difference = 2 * size.saturating_sub(bounds.required(size, size));
    let bits = difference.saturating_mul(BITS_PER_DIFFERENCE);
    bits.div_ceil(u64::BITS).next_power_of_two().clamp(1, 8) as usize
}

/// The join by signatures.
pub(crate) struct PostingJoin {
    collection: Arc<SetCollection>,
    bounds: Bounds,
    isa: Isa,
    limits: Limits,
    index: SlicedIndex,
    words: usize,
    signatures: Vec<u64>,
    progress: Progress,
    hits: Met,
    /// Whether the slice has more.
    has_more: bool,
    matches: ChunkStore,
    /// From here on they are not yet handed over.
    cursor: Cursor,
}

impl PostingJoin {
    /// The join of these sets. `not_probed` is by rank, or empty: whether the sets of this size are
    /// probes elsewhere; they are found all the same.
    pub(crate) fn new(
        collection: &Arc<SetCollection>,
        bounds: Bounds,
        isa: Isa,
        not_probed: &[bool],
        budget: &mut Budget,
    ) -> Result<Self, JoinError> {
        let index = SlicedIndex::new(collection, bounds, budget)?;
        let words = words(collection, bounds, &index);
        let two_sided = collection.is_two_sided();
        let limits = limits(collection, bounds, not_probed, budget)?;
        budget.take("the index", Progress::bytes(index.len_max, words, two_sided))?;
        let matches = HITS_PER_CALL + index.len_max;
        budget.take("the index", Met::bytes(matches) + ChunkStore::bytes(matches))?;
        budget.take("the index", words * size_of::<u64>() * collection.len())?;
        let mut signatures = vec![0; words * collection.len()];
        if words > 0 {
            let (offsets, tokens) = (collection.sets().offsets(), collection.sets().tokens());
            postings::sign_sets(isa, offsets, tokens, words, &mut signatures);
        }
        Ok(Self {
            limits,
            progress: Progress::new(index.len_max, words, two_sided),
            index,
            collection: Arc::clone(collection),
            bounds,
            isa,
            words,
            signatures,
            hits: Met::default(),
            has_more: false,
            matches: ChunkStore::default(),
            cursor: Cursor::default(),
        })
    }

    /// Finds the matches of the next probes; false if there are none.
    fn sift(&mut self, counters: &mut JoinCounters) -> bool {
        if !self.has_more {
            if !self.index.next_slice(&self.collection, self.bounds) {
                return false;
            }
            self.progress.go_on();
        }
        let lists = Lists {
            ends: &self.index.ends[self.index.slice.clone()],
            postings: &self.index.postings,
            words: self.words,
            signatures: &self.signatures,
            is_two_sided: self.collection.is_two_sided(),
        };
        let Self { limits, progress, hits, .. } = self;
        self.has_more = postings::sift(self.isa, lists, limits, progress, hits, HITS_PER_CALL);
        (counters.postings, counters.pre_candidates) = progress.tested();
        let sets = self.collection.sets();
        hits.write_matches(limits, sets, self.index.first_token(), &mut self.matches);
        overlap::retain_first(self.isa, sets, &mut self.matches);
        self.cursor = Cursor::default();
        counters.candidates += self.matches.len() as u64;
        true
    }
}

impl Find for PostingJoin {
    fn fill(&mut self, chunk: &mut CandidateChunk, counters: &mut JoinCounters) -> bool {
        loop {
            chunk.take(&self.matches, &mut self.cursor);
            if chunk.is_full() {
                return true;
            }
            if !self.sift(counters) {
                return false;
            }
        }
    }
}
