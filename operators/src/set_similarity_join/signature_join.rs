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
//! How long signatures are follows from the sizes of the sets and from how many postings there
//! will be to test: there are none if the lists are so short that making them would cost more than
//! they save.

use std::sync::Arc;

use trommel_kernels::Isa;
use trommel_kernels::overlap::{self, Match, Start};
use trommel_kernels::postings::{
    self, Limits, Lists, Meeting, Met, NO_TOKEN, POSITION_MAX, PairLimit, Posting, Progress,
    RANKS_MAX, Row, SIDE_BIT,
};

use super::bounds::Bounds;
use super::chunk::CandidateChunk;
use super::collection::{SetCollection, SizeRun};
use super::collector::{JoinError, Side, TOKENS_MAX};
use super::join::{Find, JoinCounters};

/// Sizes that differ add up to more tokens than there can be.
const _: () = assert!(RANKS_MAX * (RANKS_MAX - 1) / 2 >= TOKENS_MAX);

/// The number of a set leaves a bit for its side.
const _: () = assert!(TOKENS_MAX <= SIDE_BIT as usize);

/// Tokens that are hashed in the time that a posting costs which a signature would have dropped.
const TOKENS_PER_MEETING: u64 = 8;

/// Bits of a signature for each token in which two similar sets can differ.
const BITS_PER_DIFFERENCE: u32 = 5;

/// Meetings of a call of `sift`, after which it stops at the next probe.
const MET_PER_CALL: usize = 1 << 12;

fn narrow(number: usize) -> u32 {
    u32::try_from(number).expect("tokens and sets have 32-bit numbers")
}

/// The bounds of all sizes, and how many bytes they take.
///
/// # Cost
/// Sizes that differ add up, so there are no more pairs of them than tokens, and no more positions.
fn limits(
    collection: &SetCollection,
    bounds: Bounds,
    not_probed: &[bool],
) -> Result<(Limits, usize), JoinError> {
    let sizes = collection.sizes();
    let (mut rows, mut rank_min, mut pairs, mut positions) = (Vec::new(), 0, 0, 0);
    for (rank, run) in sizes.iter().enumerate() {
        let size_min = bounds.size_min(run.size);
        while rank_min < rank && sizes[rank_min].size < size_min {
            rank_min += 1;
        }
        rows.push(Row {
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
    collection.reserve("the index", bytes)?;
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
    Ok((Limits::new(rows, limits, rank_max), bytes))
}

/// What a set of some size needs of those of other sizes, which are not larger.
fn pair_limits(size: u32, others: &[SizeRun], bounds: Bounds) -> impl Iterator<Item = PairLimit> {
    others.iter().scan(0, move |distance_max, other| {
        let required = bounds.required(size, other.size);
        // Rounding can make it one less for the next size. That loses nothing: the number of bits
        // is odd or even as the sum of the sizes is, and so is the bound.
        let distance = u64::from(size) + u64::from(other.size);
        let distance = distance.saturating_sub(2 * u64::from(required));
        *distance_max = u32::try_from(distance).map_or(u32::MAX, |d| d.max(*distance_max));
        let position_max = other.size.saturating_sub(required);
        Some(PairLimit { required, position_max, distance_max: *distance_max })
    })
}

/// The postings of all tokens that two sets of a pair can have in common.
struct Index {
    /// The token of the first list.
    token_min: u32,
    ends: Vec<u32>,
    postings: Vec<Posting>,
    /// The most postings of a list.
    len_max: usize,
    /// Pairs of postings in a list.
    meetings: u64,
}

impl Index {
    fn new(collection: &SetCollection, bounds: Bounds) -> Result<Self, JoinError> {
        let token_min = collection.unshared();
        let lists = (collection.distinct() - token_min) as usize;
        collection.reserve("the index", lists * size_of::<u32>())?;
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
        let (mut room, mut len_max, mut meetings) = (0, 0, 0);
        for end in &mut ends {
            len_max = len_max.max(*end);
            meetings += u64::from(*end) * u64::from(*end) / 2;
            room += std::mem::replace(end, room);
        }
        let postings_bytes = room as usize * size_of::<Posting>();
        collection.reserve("the index", lists * size_of::<u32>() + postings_bytes)?;
        let mut index = Self {
            token_min,
            ends,
            postings: vec![Posting::default(); room as usize],
            len_max: len_max as usize,
            meetings,
        };
        for (rank, run) in collection.sizes().iter().enumerate() {
            let prefix = bounds.probe_prefix(run.size) as usize;
            for set in run.begin..run.end {
                index.add(collection, narrow(rank), set, prefix);
            }
        }
        Ok(index)
    }

    fn bytes(&self) -> usize {
        size_of_val(&self.ends[..]) + size_of_val(&self.postings[..])
    }

    #[inline(always)]
    fn add(&mut self, collection: &SetCollection, rank: u32, set: u32, prefix: usize) {
        let side = match collection.side(set) {
            Side::Left => 0,
            Side::Right => SIDE_BIT,
        };
        let mut before = NO_TOKEN;
        for (position, &token) in (0_u32..).zip(&collection.set(set)[..prefix]) {
            if token >= self.token_min {
                let end = &mut self.ends[(token - self.token_min) as usize];
                let place = rank << 16 | position.min(POSITION_MAX);
                self.postings[*end as usize] = Posting { place, set: set | side, before };
                *end += 1;
            }
            before = token;
        }
    }
}

/// Words of a signature.
///
/// Signatures are worth making if there are enough postings to test for each token that is hashed.
/// They have to be the longer, the more tokens two similar sets of the usual size can have for
/// themselves. Measured by `trommel-bench set-join`.
fn words(collection: &SetCollection, bounds: Bounds, index: &Index) -> usize {
    let tokens = collection.tokens() as u64;
    if index.meetings.saturating_mul(TOKENS_PER_MEETING) < tokens {
        return 0;
    }
    let size = narrow(collection.tokens() / collection.len().max(1));
    let difference = 2 * size.saturating_sub(bounds.required(size, size));
    let bits = difference.saturating_mul(BITS_PER_DIFFERENCE);
    bits.div_ceil(u64::BITS).next_power_of_two().clamp(1, 8) as usize
}

/// The join by signatures.
pub(super) struct SignatureJoin {
    collection: Arc<SetCollection>,
    isa: Isa,
    limits: Limits,
    index: Index,
    words: usize,
    signatures: Vec<u64>,
    progress: Progress,
    met: Met,
    has_more: bool,
    /// From `emitted` on not yet handed over.
    matches: Vec<Match>,
    emitted: usize,
}

impl SignatureJoin {
    /// The join of these sets. `not_probed` is by rank, or empty: whether the sets of this size are
    /// probes elsewhere; they are found all the same.
    pub(super) fn new(
        collection: &Arc<SetCollection>,
        bounds: Bounds,
        isa: Isa,
        not_probed: &[bool],
    ) -> Result<Self, JoinError> {
        let index = Index::new(collection, bounds)?;
        let words = words(collection, bounds, &index);
        let two_sided = collection.is_two_sided();
        let (limits, limits_bytes) = limits(collection, bounds, not_probed)?;
        let bytes = index.bytes()
            + limits_bytes
            + words * size_of::<u64>() * collection.len()
            + Progress::bytes(index.len_max, words, two_sided);
        collection.reserve("the index", bytes)?;
        let mut signatures = vec![0; words * collection.len()];
        if words > 0 {
            let (offsets, tokens) = (collection.offsets(), collection.all_tokens());
            postings::sign_sets(isa, offsets, tokens, words, &mut signatures);
        }
        Ok(Self {
            limits,
            progress: Progress::new(index.len_max, words, two_sided),
            index,
            collection: Arc::clone(collection),
            isa,
            words,
            signatures,
            met: Met::default(),
            has_more: true,
            matches: Vec::new(),
            emitted: 0,
        })
    }

    /// Finds the matches of the next probes.
    fn sift(&mut self, counters: &mut JoinCounters) {
        let lists = Lists {
            ends: &self.index.ends,
            postings: &self.index.postings,
            words: self.words,
            signatures: &self.signatures,
            is_two_sided: self.collection.is_two_sided(),
        };
        let Self { limits, progress, met, .. } = self;
        self.has_more = postings::sift(self.isa, lists, limits, progress, met, MET_PER_CALL);
        (counters.postings, counters.pre_candidates) = progress.tested();
        self.matches.clear();
        self.emitted = 0;
        let mut begin = 0;
        for meeting in &self.met.meetings {
            let end = meeting.end as usize;
            let token = self.index.token_min + meeting.list;
            let sets = self.met.sets[begin..end].iter().zip(&self.met.places[begin..end]);
            begin = end;
            let Meeting { place, probe, .. } = *meeting;
            let tokens = self.collection.set(probe);
            let probe_at = position_of(token, place, tokens);
            let probe_left = narrow(tokens.len()) - probe_at;
            for (&candidate, &other) in sets {
                let limit = limits.of(place >> 16, other >> 16);
                let candidate_at = match other & 0xffff {
                    POSITION_MAX => position_of(token, other, self.collection.set(candidate)),
                    position => position,
                };
                let required = limit.required;
                if required <= probe_left && candidate_at <= limit.position_max {
                    self.matches.push(Match { probe, candidate, probe_at, candidate_at, required });
                }
            }
        }
        let sets = self.collection.sets();
        let kept = overlap::retain_first(self.isa, sets, &mut self.matches);
        self.matches.truncate(kept);
        counters.candidates += kept as u64;
    }
}

/// Where a token is in a set, given its place.
fn position_of(token: u32, place: u32, set: &[u32]) -> u32 {
    match place & 0xffff {
        POSITION_MAX => narrow(set.binary_search(&token).expect("the set is in the token's list")),
        position => position,
    }
}

impl Find for SignatureJoin {
    fn fill(&mut self, chunk: &mut CandidateChunk, counters: &mut JoinCounters) -> bool {
        loop {
            for found in &self.matches[self.emitted..] {
                if chunk.is_full() {
                    return true;
                }
                self.emitted += 1;
                let Match { probe, candidate, probe_at, candidate_at, required } = *found;
                // Behind the first common token.
                let start = Start { probe: probe_at + 1, candidate: candidate_at + 1, overlap: 1 };
                chunk.push(probe, candidate, required, start);
            }
            if !self.has_more {
                return false;
            }
            self.sift(counters);
        }
    }
}
