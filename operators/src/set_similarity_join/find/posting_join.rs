//! The algorithm `auto` by postings: prefix, size, positional and signature filters, by the kernels
//! of [`postings`].
//!
//! ```text
//! posting lists, one per token ──► 16 postings at a time: size, position, signature ──► hits
//!   ──► positions, by the bounds of the pair ──► first common token? ──► chunk
//! ```
//!
//! Each posting list is joined to itself, instead of each set being looked up in the lists of its
//! tokens: that reads memory in order. A pair that has several common tokens is taken from the
//! list of the first one.
//!
//! The index holds the lists of one slice of the tokens at a time, so it stays smaller than the
//! sets.
//!
//! The length of signatures follows from the sizes of the sets and from the number of postings to
//! test. There are no signatures if lists are so short that making them costs more than they
//! save.

use std::ops::{Range, RangeInclusive};
use std::sync::Arc;

use trommel_kernels::Isa;
use trommel_kernels::memory::prefer_huge_pages;
use trommel_kernels::overlap::{self, ChunkStore, Cursor};
use trommel_kernels::postings::{
    Hits, Limits, Lists, NO_TOKEN, POSITION_MAX, PairLimit, Posting, Progress, RANKS_MAX, Row,
    SIDE_BIT, scan_lists,
};

use crate::budget::Budget;
use crate::set_similarity_join::candidates::chunk::CandidateChunk;
use crate::set_similarity_join::error::JoinError;
use crate::set_similarity_join::find::signatures::{SetSignatures, words_for};
use crate::set_similarity_join::find::{Find, JoinCounters};
use crate::set_similarity_join::similarity::Bounds;
use crate::sets::{SETS_AHEAD, SetCollection, Side, SizeRun, TOKENS_MAX};

// Sets of more than `RANKS_MAX` different sizes would have more than `TOKENS_MAX` tokens.
const _: () = assert!(RANKS_MAX * (RANKS_MAX - 1) / 2 >= TOKENS_MAX);

// The number of a set leaves a bit for its side.
const _: () = assert!(TOKENS_MAX <= SIDE_BIT as usize);

/// Tokens that can be hashed in the time that a pair of postings costs without a signature to
/// drop it.
const TOKENS_PER_PAIR: u64 = 8;

/// Tokens of the sets per posting of all slices that are searched at once: without lists of the
/// sets of each slice, and with them, which take as much.
const TOKENS_PER_POSTING: [usize; 2] = [4, 8];

/// Cores from which on slices have lists of their sets. They take as long to make as a dozen slices
/// take to go through all sets (0.26 s and 0.025 s of a core for 3 M sets of 14 tokens at .5), and
/// the number of slices grows with the cores.
pub(crate) const LISTING_CORES: usize = 4;

/// Sets that are counted for an estimate, about.
const SAMPLED_SETS: usize = 2048;

/// Sets of which one is counted for an estimate: a smaller part would be too coarse, and a larger
/// one saves little.
const SAMPLED_EVERY: RangeInclusive<usize> = 4..=64;

/// Hits after which a call of the kernel stops at the next probe.
const HITS_PER_CALL: usize = 1 << 11;

/// Slices for each of several cores: one that is searched, and one that waits for the core.
const SEARCHES_PER_CORE: usize = 2;

/// Name of the memory in errors.
const INDEX: &str = "the index";

fn narrow(number: usize) -> u32 {
    u32::try_from(number).expect("tokens and sets have 32-bit numbers")
}

/// The bounds of all pairs of sizes. `not_probed` is by rank: whether sets of this size are no
/// probes; it can be shorter.
///
/// # Cost
/// At most one limit per token of the sets, and one per position of a prefix: the sizes are
/// different, so their sum is at most the number of tokens.
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
    budget.take(INDEX, bytes)?;
    let (mut limits, mut rank_max) = (Vec::with_capacity(pairs), Vec::with_capacity(positions));
    for (rank, (row, run)) in rows.iter().zip(sizes).enumerate() {
        let rank_min = row.rank_min as usize;
        limits.extend(pair_limits(run.size, &sizes[rank_min..=rank], bounds));
        let of_row: &[PairLimit] = &limits[row.pairs as usize..];
        let mut greatest = rank;
        // Fewer tokens are left at later positions, so the largest partner shrinks along the
        // prefix.
        for left in (0..=run.size).rev().take(bounds.probe_prefix(run.size) as usize) {
            while greatest > rank_min && of_row[greatest - rank_min].required > left {
                greatest -= 1;
            }
            rank_max.push(narrow(greatest));
        }
    }
    Ok(Limits::new(rows, limits, rank_max))
}

/// Limits of a set of `size` tokens for each of the sizes `others`, which are not larger.
fn pair_limits(size: u32, others: &[SizeRun], bounds: Bounds) -> impl Iterator<Item = PairLimit> {
    others.iter().scan(0, move |distance_max, other| {
        let required = bounds.required(size, other.size);
        // The kernel needs bounds that do not descend, and rounding can lower the bound by 1 for
        // the next size. Raising it loses no filter: the number of differing bits has the parity
        // of the sum of the sizes, and so has the exact bound.
        let distance = u64::from(size) + u64::from(other.size);
        let distance = distance.saturating_sub(2 * u64::from(required));
        *distance_max = distance.max(*distance_max);
        let position_max = other.size.saturating_sub(required);
        Some(PairLimit { required, position_max, distance_max: *distance_max })
    })
}

/// Numbers of postings.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct PostingCounts {
    /// Of all lists.
    pub(crate) postings: u64,
    /// Half of the square of the length of each list, summed: about the pairs of postings of one
    /// list.
    pub(crate) pairs: u64,
}

impl PostingCounts {
    /// The numbers for lists of these lengths.
    fn of(lens: &[u32]) -> Self {
        let mut counts = Self::default();
        for len in lens.iter().map(|len| u64::from(*len)) {
            counts.postings += len;
            counts.pairs += len * len / 2;
        }
        counts
    }

    /// Estimates the numbers: counts the postings of 1 in 4 to 1 in 64 sets, and scales them up.
    ///
    /// # Errors
    /// If the counts do not fit the memory.
    pub(crate) fn estimate(
        collection: &SetCollection,
        bounds: Bounds,
        budget: &Budget,
    ) -> Result<Self, JoinError> {
        let lists = ListLengths::lists(collection);
        budget.clone().take(INDEX, lists * size_of::<u32>())?;
        let mut lens = vec![0_u32; lists];
        let (sets, token_min) = (narrow(collection.len()), collection.unshared());
        let every = collection.len() / SAMPLED_SETS;
        let every = narrow(every.clamp(*SAMPLED_EVERY.start(), *SAMPLED_EVERY.end()));
        let (mut postings, mut pairs) = (0, 0);
        // Of each block any set, because sets that are alike are often neighbours.
        let any = |begin: u32| begin + (begin.wrapping_mul(0x9E37_79B1) >> 16) % every;
        for set in (0..sets).step_by(every as usize).map(any).filter(|set| *set < sets) {
            let prefix = bounds.probe_prefix(collection.size(set)) as usize;
            for token in &collection.set(set)[..prefix] {
                if let Some(list) = token.checked_sub(token_min) {
                    let len = &mut lens[list as usize];
                    postings += 1;
                    pairs += u64::from(*len);
                    *len += 1;
                }
            }
        }
        let every = u64::from(every);
        let pairs = every.saturating_mul(every.saturating_mul(pairs) + postings / 2);
        Ok(Self { postings: every * postings, pairs })
    }

    /// Words of a signature, or 0: signatures pay if there are enough pairs of postings to test per
    /// token that has to be hashed.
    pub(crate) fn words(self, collection: &SetCollection, bounds: Bounds) -> usize {
        let tokens = collection.tokens() as u64;
        let pays = self.pairs.saturating_mul(TOKENS_PER_PAIR) >= tokens;
        if pays { words_for(collection, bounds) } else { 0 }
    }
}

/// The numbers of postings of all tokens that can be common to a pair.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ListLengths {
    /// Token of the first list.
    token_min: u32,
    lens: Vec<u32>,
    pub(crate) counts: PostingCounts,
}

impl ListLengths {
    /// Counts the postings of all probing prefixes.
    ///
    /// # Errors
    /// If the counts do not fit the memory.
    pub(crate) fn count(
        collection: &SetCollection,
        bounds: Bounds,
        budget: &mut Budget,
    ) -> Result<Self, JoinError> {
        let lists = Self::lists(collection);
        budget.take(INDEX, lists * size_of::<u32>())?;
        let mut lens = vec![0; lists];
        Self::add(collection, bounds, 0..narrow(collection.len()), &mut lens);
        Ok(Self::new(collection, lens))
    }

    /// Number of lists. Tokens before the first one occur in no two sets of a pair, so their lists
    /// would find nothing.
    pub(super) fn lists(collection: &SetCollection) -> usize {
        (collection.distinct() - collection.unshared()) as usize
    }

    /// Adds the postings of some `sets` to the lengths of their lists.
    pub(super) fn add(
        collection: &SetCollection,
        bounds: Bounds,
        sets: Range<u32>,
        lens: &mut [u32],
    ) {
        let token_min = collection.unshared();
        for run in collection.sizes() {
            let prefix = bounds.probe_prefix(run.size) as usize;
            for set in run.begin.max(sets.start)..run.end.min(sets.end) {
                collection.prefetch(set + SETS_AHEAD);
                for &token in &collection.set(set)[..prefix] {
                    if token >= token_min {
                        lens[(token - token_min) as usize] += 1;
                    }
                }
            }
        }
    }

    /// Lists of these lengths.
    pub(super) fn new(collection: &SetCollection, lens: Vec<u32>) -> Self {
        let counts = PostingCounts::of(&lens);
        Self { token_min: collection.unshared(), lens, counts }
    }

    /// The lengths that are planned, or else counted here.
    ///
    /// # Errors
    /// If the counts do not fit the memory.
    pub(crate) fn planned(
        planned: &mut Planned,
        collection: &SetCollection,
        bounds: Bounds,
        budget: &mut Budget,
    ) -> Result<Self, JoinError> {
        let Some(lists) = planned.lists.take() else {
            return Self::count(collection, bounds, budget);
        };
        budget.take(INDEX, lists.lens.len() * size_of::<u32>())?;
        Ok(lists)
    }

    /// Divides the lists into slices for `cores` cores, of at least `slice_min` postings if there
    /// are as many.
    pub(super) fn slices(
        &self,
        collection: &SetCollection,
        slice_min: usize,
        cores: usize,
    ) -> Slices {
        let len_max = self.lens.iter().max().map_or(0, |len| *len as usize);
        let all = usize::try_from(self.counts.postings).expect("at most one a token");
        let searches = if cores == 1 { 1 } else { SEARCHES_PER_CORE * cores };
        let per_posting = TOKENS_PER_POSTING[usize::from(cores >= LISTING_CORES)];
        let slice_max = slice_min.max(collection.tokens() / per_posting / searches);
        // Slices of about the same length: as many as before, or fewer, and each is smaller. A
        // list is in one slice, so a slice may end a list early.
        let count = all.div_ceil(slice_max.max(len_max)).max(1);
        let postings_max = (all.div_ceil(count) + len_max).min(all);
        Slices { slices: slices(&self.lens, postings_max), postings_max, len_max }
    }
}

/// Data of an index by postings that has been made before it.
#[derive(Debug, Default)]
pub(crate) struct Planned {
    pub(super) lists: Option<ListLengths>,
    pub(super) signatures: Option<SetSignatures>,
    pub(super) visits: Option<Visits>,
}

impl Planned {
    /// The lengths of the lists, if they are planned.
    pub(crate) fn lists(&self) -> Option<&ListLengths> {
        self.lists.as_ref()
    }
}

/// Options of a [`PostingIndex`].
pub(crate) struct PostingOptions<'a> {
    pub(crate) isa: Isa,
    /// By rank, or empty: whether the sets of this size are probes elsewhere. They are found as
    /// candidates all the same.
    pub(crate) not_probed: &'a [bool],
    /// Minimum number of postings of a slice.
    pub(crate) slice_min: usize,
    /// Number of cores that search slices side by side.
    pub(crate) cores: usize,
}

/// Data that all slices of a join share: bounds, signatures, and the lengths of the lists.
///
/// The posting lists of all tokens that can be common to a pair are built one slice of the tokens
/// at a time, each by a [`SliceSearch`]. All slices that are searched at once take at most 3/4 of
/// the memory of the sets' tokens, unless their minimum or one list needs more.
pub(crate) struct PostingIndex {
    collection: Arc<SetCollection>,
    bounds: Bounds,
    isa: Isa,
    limits: Limits,
    lists: ListLengths,
    signatures: SetSignatures,
    /// Lists of each slice.
    slices: Vec<Range<usize>>,
    /// Sets of each slice; without them, each slice goes through all sets.
    visits: Option<Visits>,
    /// Number of postings of the longest slice, and of the longest list.
    postings_max: usize,
    len_max: usize,
    /// Slices that can be searched at once, for which memory is taken.
    searches: usize,
}

impl PostingIndex {
    /// An index of `collection`, whose lists are as long as `lists` says, with
    /// signatures if these pay.
    ///
    /// # Errors
    /// If the index does not fit the memory.
    pub(crate) fn new(
        collection: &Arc<SetCollection>,
        bounds: Bounds,
        PostingOptions { isa, not_probed, slice_min, cores }: PostingOptions<'_>,
        lists: ListLengths,
        planned: &mut Planned,
        budget: &mut Budget,
    ) -> Result<Self, JoinError> {
        let words = lists.counts.words(collection, bounds);
        let limits = limits(collection, bounds, not_probed, budget)?;
        let signatures = match planned.signatures.take().filter(|made| made.words == words) {
            Some(made) => {
                budget.take(INDEX, SetSignatures::bytes(collection, words))?;
                made
            }
            None => SetSignatures::new(collection, words, isa, budget)?,
        };
        let Slices { slices, postings_max, len_max } = lists.slices(collection, slice_min, cores);
        let visits = planned.visits.take().filter(|visits| visits.slices == slices);
        let visits = visits.filter(|visits| budget.take(INDEX, visits.bytes()).is_ok());
        let searches = if cores == 1 { 1 } else { SEARCHES_PER_CORE * cores };
        let lists_max = slices.iter().map(Range::len).max().unwrap_or(0);
        let bytes = SliceSearch::bytes(postings_max, lists_max, len_max, words, collection);
        budget.take(INDEX, bytes)?;
        let mut fitting = 1;
        while fitting < searches.min(slices.len()) && budget.take(INDEX, bytes).is_ok() {
            fitting += 1;
        }
        Ok(Self {
            collection: Arc::clone(collection),
            bounds,
            isa,
            limits,
            lists,
            signatures,
            slices,
            visits,
            postings_max,
            len_max,
            searches: fitting,
        })
    }

    /// Number of slices.
    pub(crate) fn slices(&self) -> usize {
        self.slices.len()
    }

    /// Number of postings of a slice.
    pub(crate) fn postings_of(&self, slice: usize) -> u64 {
        let lens = &self.lists.lens[self.slices[slice].clone()];
        lens.iter().map(|len| u64::from(*len)).sum()
    }

    /// Number of slices that can be searched at once.
    pub(crate) fn searches(&self) -> usize {
        self.searches
    }
}

/// A division of lists into slices.
pub(super) struct Slices {
    /// Lists of each slice.
    pub(super) slices: Vec<Range<usize>>,
    /// Maximum number of postings of a slice, and number of postings of the longest list.
    postings_max: usize,
    len_max: usize,
}

/// The sets that have a token of a slice in their prefix, for each slice.
#[derive(Debug)]
pub(super) struct Visits {
    /// Lists of each slice.
    pub(super) slices: Vec<Range<usize>>,
    /// By run of sets, then by slice: numbers of sets, ascending.
    pub(super) sets: Vec<Vec<Vec<u32>>>,
}

impl Visits {
    fn bytes(&self) -> usize {
        let sets: usize = self.sets.iter().flatten().map(Vec::capacity).sum();
        sets * size_of::<u32>()
    }

    /// Adds the numbers of some `sets` to the slices of the tokens in their prefixes. `slice_of`
    /// is the slice of each list.
    pub(super) fn add(
        collection: &SetCollection,
        bounds: Bounds,
        sets: Range<u32>,
        slice_of: &[u16],
        visits: &mut [Vec<u32>],
    ) {
        let token_min = collection.unshared();
        for run in collection.sizes() {
            let prefix = bounds.probe_prefix(run.size) as usize;
            for set in run.begin.max(sets.start)..run.end.min(sets.end) {
                collection.prefetch(set + SETS_AHEAD);
                let mut before = u16::MAX;
                for &token in &collection.set(set)[..prefix] {
                    if token >= token_min {
                        // Tokens ascend, and so do slices.
                        let slice = slice_of[(token - token_min) as usize];
                        if slice != before {
                            visits[usize::from(slice)].push(set);
                            before = slice;
                        }
                    }
                }
            }
        }
    }
}

/// Cuts lists of the lengths `lens` into runs of at most `slice_max` postings.
fn slices(lens: &[u32], slice_max: usize) -> Vec<Range<usize>> {
    let (mut slices, mut begin, mut room) = (Vec::new(), 0, 0_usize);
    for (list, &len) in lens.iter().enumerate() {
        if room + len as usize > slice_max {
            slices.push(begin..list);
            (begin, room) = (list, 0);
        }
        room += len as usize;
    }
    if room > 0 {
        slices.push(begin..lens.len());
    }
    slices
}

/// The search of one slice after the other.
pub(crate) struct SliceSearch {
    /// Lists of the slice.
    slice: Range<usize>,
    /// End of each list of the slice among the postings.
    ends: Vec<u32>,
    postings: Vec<Posting>,
    progress: Progress,
    hits: Hits,
    /// Whether the slice has more probes.
    has_more: bool,
    /// Candidate pairs of the last probes; those from `cursor` on are in no chunk yet.
    matches: ChunkStore,
    cursor: Cursor,
}

impl SliceSearch {
    /// A search that has not begun.
    pub(crate) fn new(index: &PostingIndex) -> Self {
        let mut postings = Vec::with_capacity(index.postings_max);
        // Lists are written everywhere at once.
        prefer_huge_pages(&mut postings);
        postings.resize(index.postings_max, Posting::default());
        let is_two_sided = index.collection.is_two_sided();
        Self {
            slice: 0..0,
            ends: Vec::new(),
            postings,
            progress: Progress::new(index.len_max, index.signatures.words, is_two_sided),
            hits: Hits::default(),
            has_more: false,
            matches: ChunkStore::default(),
            cursor: Cursor::default(),
        }
    }

    /// Bytes of a search of slices of `postings_max` postings and `lists_max` lists, of up to
    /// `len_max` postings each.
    fn bytes(
        postings_max: usize,
        lists_max: usize,
        len_max: usize,
        words: usize,
        collection: &SetCollection,
    ) -> usize {
        let matches = HITS_PER_CALL + len_max;
        postings_max * size_of::<Posting>()
            + lists_max * size_of::<u32>()
            + Progress::bytes(len_max, words, collection.is_two_sided())
            + Hits::bytes(matches)
            + ChunkStore::bytes(matches)
    }

    /// Builds the slice with this number.
    pub(crate) fn begin(&mut self, index: &PostingIndex, slice: usize) {
        let PostingIndex { collection, bounds, lists, .. } = index;
        self.slice = index.slices[slice].clone();
        self.ends.clear();
        let mut end = 0;
        // Starts; `add` moves each to the end of its list.
        self.ends.extend(lists.lens[self.slice.clone()].iter().map(|len| {
            end += len;
            end - len
        }));
        match &index.visits {
            Some(visits) => visits.sets.iter().for_each(|sets| self.visit(index, &sets[slice])),
            None => {
                for (rank, run) in collection.sizes().iter().enumerate() {
                    let prefix = bounds.probe_prefix(run.size) as usize;
                    for set in run.begin..run.end {
                        collection.prefetch(set + SETS_AHEAD);
                        self.add(index, narrow(rank), set, prefix);
                    }
                }
            }
        }
        self.has_more = true;
        self.progress.go_on();
    }

    /// Adds the postings of `sets`, whose numbers ascend, to the lists of the slice.
    fn visit(&mut self, index: &PostingIndex, sets: &[u32]) {
        let PostingIndex { collection, bounds, .. } = index;
        let (sizes, mut rank, mut prefix) = (collection.sizes(), 0, None);
        for (place, &set) in sets.iter().enumerate() {
            if let Some(&ahead) = sets.get(place + SETS_AHEAD as usize) {
                collection.prefetch(ahead);
            }
            while sizes[rank].end <= set {
                (rank, prefix) = (rank + 1, None);
            }
            let prefix = *prefix.get_or_insert_with(|| bounds.probe_prefix(sizes[rank].size));
            self.add(index, narrow(rank), set, prefix as usize);
        }
    }

    /// Adds the postings of `set`, whose size has `rank`, to the lists of the slice.
    #[inline(always)]
    fn add(&mut self, index: &PostingIndex, rank: u32, set: u32, prefix: usize) {
        let PostingIndex { collection, lists, .. } = index;
        let side = match collection.side(set) {
            Side::Left => 0,
            Side::Right => SIDE_BIT,
        };
        let first = lists.token_min + narrow(self.slice.start);
        let end = lists.token_min + narrow(self.slice.end);
        let mut before = NO_TOKEN;
        for (position, &token) in (0_u32..).zip(&collection.set(set)[..prefix]) {
            // Tokens ascend, so none of the slice follows.
            if token >= end {
                break;
            }
            if token >= first {
                let end = &mut self.ends[(token - first) as usize];
                // Rank and position in one word: one comparison tests both.
                let place = rank << 16 | position.min(POSITION_MAX);
                self.postings[*end as usize] = Posting { place, set: set | side, before };
                *end += 1;
            }
            // Two postings with the same token before this one meet in that token's list, too.
            before = token;
        }
    }

    /// Finds the candidates of the next probes; false if the slice has no probe left.
    fn scan_lists(&mut self, index: &PostingIndex, counters: &mut JoinCounters) -> bool {
        if !self.has_more {
            return false;
        }
        let lists = Lists {
            ends: &self.ends,
            postings: &self.postings,
            words: index.signatures.words,
            signatures: &index.signatures.bits,
            is_two_sided: index.collection.is_two_sided(),
        };
        let (limits, isa) = (&index.limits, index.isa);
        let Self { progress, hits, .. } = self;
        let before = progress.tested();
        self.has_more = scan_lists(isa, lists, limits, progress, hits, HITS_PER_CALL);
        let (tested, passed) = progress.tested();
        counters.postings += tested - before.0;
        counters.pre_candidates += passed - before.1;
        let sets = index.collection.sets();
        let first_token = index.lists.token_min + narrow(self.slice.start);
        // `write_matches` applies the positional filter with the exact bounds of each pair. A
        // pair is taken from the list of its first common token: `retain_first` drops the others.
        hits.write_matches(limits, sets, first_token, &mut self.matches);
        overlap::retain_first(isa, sets, &mut self.matches);
        self.cursor = Cursor::default();
        counters.candidates += self.matches.len() as u64;
        true
    }

    /// Adds candidate pairs of the slice to `chunk` until it is full or no pair is left; false in
    /// the second case.
    pub(crate) fn fill(
        &mut self,
        index: &PostingIndex,
        chunk: &mut CandidateChunk,
        counters: &mut JoinCounters,
    ) -> bool {
        loop {
            chunk.take(&self.matches, &mut self.cursor);
            if chunk.is_full() {
                return true;
            }
            if !self.scan_lists(index, counters) {
                return false;
            }
        }
    }
}

/// The finder of `auto` by postings, slice after slice.
pub(crate) struct PostingJoin {
    index: PostingIndex,
    search: SliceSearch,
    /// Number of the slice after the present one.
    next: usize,
}

impl PostingJoin {
    /// A finder before the first slice.
    pub(crate) fn new(index: PostingIndex) -> Self {
        Self { search: SliceSearch::new(&index), index, next: 0 }
    }
}

impl Find for PostingJoin {
    fn fill(&mut self, chunk: &mut CandidateChunk, counters: &mut JoinCounters) -> bool {
        let Self { index, search, next } = self;
        while !search.fill(index, chunk, counters) {
            if *next == index.slices() {
                return false;
            }
            search.begin(index, *next);
            *next += 1;
        }
        true
    }
}
