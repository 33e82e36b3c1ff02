//! The join that `auto` means: prefixes, sizes, positions and signatures, by the kernels of
//! [`postings`].
//!
//! ```text
//! sets of one size and side ──► sift: tests of 16 postings ──► refine: more bits ──► chunk
//! ```
//!
//! Which signatures are made follows from the sizes of the sets and from how many postings there
//! will be to test: none, if the lists are so short that making them would cost more than they
//! save; one word in each posting; and for larger sets some more words in a table.

use std::sync::Arc;

use trommel_kernels::Isa;
use trommel_kernels::postings::{
    self, BLOCK, Candidate, Index, List, Posting, Probes, RANKS_MAX, Window as Sizes,
};

use super::bounds::Bounds;
use super::chunk::CandidateChunk;
use super::collection::SetCollection;
use super::collector::{JoinError, Side, TOKENS_MAX};
use super::join::{Find, JoinCounters};
use super::prefix::{Window, empty_lists, index_prefixes, lists_bytes, start_behind_match};

/// Sizes that differ add up to more tokens than there can be.
const _: () = assert!(RANKS_MAX * (RANKS_MAX - 1) / 2 >= TOKENS_MAX);

/// Candidates of a call of `sift`, after which it stops at the next probe.
const CANDIDATES_PER_CALL: usize = 1 << 13;

/// Tokens that are hashed in the time that a posting costs which a signature would have dropped.
const TOKENS_PER_MEETING: u64 = 16;

/// Sets below this mean size need no longer signatures than those in the postings.
const TABLE_SIZE_MIN: usize = 24;

/// Postings that a set finds, on average, from which on longer signatures pay.
const TABLE_MEETINGS_MIN: u64 = 8;

/// The finder for these sets.
pub(super) fn finder(
    collection: &Arc<SetCollection>,
    bounds: Bounds,
    isa: Isa,
) -> Result<SignatureJoin, JoinError> {
    collection.reserve("the index", lists_bytes(collection))?;
    let (lists, room) =
        empty_lists(collection, collection.unshared(), index_prefixes(collection, bounds));
    let signing = Signing::choose(collection, &lists, room);
    SignatureJoin::new(collection, bounds, isa, lists, room, signing)
}

/// Which signatures are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Signing {
    /// Whether there are any. Without, they are all zero, and no two differ.
    is_on: bool,
    /// Words of a longer one in a table: 0, 2, 4 or 8.
    table_words: usize,
}

impl Signing {
    /// Chooses by the postings that the lists will have.
    ///
    /// Signatures are worth making if there are enough postings to test for each token that is
    /// hashed. Longer ones, of about four bits for each token, are worth their table for sets of
    /// which the one word in the postings leaves too many, if there are many postings. Measured by
    /// `trommel-bench set-join`.
    fn choose(collection: &SetCollection, lists: &[List], room: usize) -> Self {
        let (sets, tokens) = (collection.len().max(1), collection.tokens() as u64);
        let size = collection.tokens() / sets;
        let ends = lists.iter().skip(1).map(|list| list.begin as usize).chain([room]);
        let lens = lists.iter().zip(ends).map(|(list, end)| (end - list.begin as usize) as u64);
        let meetings: u64 = match collection.is_two_sided() {
            false => lens.map(|len| len * len / 2).sum(),
            true => {
                let lens: Vec<u64> = lens.collect();
                let (left, right) = lens.split_at(lens.len() / 2);
                left.iter().zip(right).map(|(left, right)| left * right).sum()
            }
        };
        let is_on = meetings.saturating_mul(TOKENS_PER_MEETING) >= tokens;
        let is_large = size >= TABLE_SIZE_MIN && meetings / sets as u64 >= TABLE_MEETINGS_MIN;
        let words = (4 * size).div_ceil(64).next_power_of_two().clamp(2, 8);
        Self { is_on, table_words: if is_on && is_large { words } else { 0 } }
    }
}

/// The join by signatures.
pub(super) struct SignatureJoin {
    collection: Arc<SetCollection>,
    bounds: Bounds,
    isa: Isa,
    window: Window,
    lists: Vec<List>,
    postings: Vec<Posting>,
    /// By set: the signature in its postings.
    signatures: Vec<u64>,
    /// By set: so many words of a longer one, or none.
    table: Vec<u64>,
    table_words: usize,
    met: Vec<u32>,
    /// By position of a probe.
    rank_max: Vec<u32>,
    /// By rank.
    position_max: Vec<u32>,
    distance_max: Vec<u32>,
    /// By rank: whether the sets of this size are probes elsewhere; they are found all the same.
    not_probed: Vec<bool>,
    /// The next probe.
    next: u32,
    candidates: Vec<Candidate>,
    /// How many of them have been found, and handed over.
    found: usize,
    emitted: usize,
}

fn narrow(number: usize) -> u32 {
    u32::try_from(number).expect("tokens and sets have 32-bit numbers")
}

impl SignatureJoin {
    fn new(
        collection: &Arc<SetCollection>,
        bounds: Bounds,
        isa: Isa,
        lists: Vec<List>,
        room: usize,
        signing: Signing,
    ) -> Result<Self, JoinError> {
        let (sets, table_words) = (collection.len(), signing.table_words);
        let set_bytes = (1 + table_words) * size_of::<u64>() + size_of::<u32>();
        let postings_bytes = (room + BLOCK) * size_of::<Posting>();
        let bytes = lists_bytes(collection) + postings_bytes + sets * set_bytes;
        collection.reserve("the index", bytes)?;
        let mut join = Self {
            collection: Arc::clone(collection),
            bounds,
            isa,
            window: Window::default(),
            lists,
            postings: vec![Posting::default(); room + BLOCK],
            signatures: vec![0; sets],
            table: vec![0; sets * table_words],
            table_words,
            met: vec![0; sets],
            rank_max: Vec::new(),
            position_max: Vec::new(),
            distance_max: Vec::new(),
            not_probed: Vec::new(),
            next: 0,
            candidates: Vec::new(),
            found: 0,
            emitted: 0,
        };
        if signing.is_on {
            join.sign();
        }
        Ok(join)
    }

    /// Leaves the probes of some sizes to others, by rank.
    pub(super) fn without_probes(self, not_probed: Vec<bool>) -> Self {
        Self { not_probed, ..self }
    }

    /// Makes the signatures: the one in the postings is the longer one, folded.
    fn sign(&mut self) {
        let words = self.table_words;
        for (number, folded) in (0..).zip(&mut self.signatures) {
            let tokens = self.collection.set(number);
            if words == 0 {
                postings::sign(tokens, std::slice::from_mut(folded));
                continue;
            }
            let signature = &mut self.table[number as usize * words..][..words];
            postings::sign(tokens, signature);
            *folded = signature.iter().fold(0, |fold, word| fold ^ word);
        }
    }

    /// Finds the candidates of the next probes, which have the same size and side.
    fn sift(&mut self, counters: &mut JoinCounters) {
        let collection = Arc::clone(&self.collection);
        let sizes = collection.sizes();
        if self.next == 0 {
            self.move_to(0);
        } else if self.next == sizes[self.window.rank].end {
            self.move_to(self.window.rank + 1);
        }
        let side = collection.side(self.next);
        let end = self.end_of_side(side, sizes[self.window.rank].end);
        if self.window.probe_prefix == 0 {
            self.next = end;
            return;
        }
        let first_list = |side: Side| side.index() * collection.distinct() as usize;
        let probes = Probes {
            offsets: collection.offsets(),
            tokens: collection.all_tokens(),
            signatures: &self.signatures,
            range: self.next..end,
            token_min: collection.unshared(),
        };
        let window = Sizes {
            rank: narrow(self.window.rank),
            rank_min: narrow(self.window.rank_min),
            index_prefix: self.window.index_prefix,
            rank_max: &self.rank_max,
            position_max: &self.position_max,
            distance_max: &self.distance_max,
        };
        let mut index = Index {
            lists: &mut self.lists,
            partner_lists: first_list(collection.partner_side(side)),
            own_lists: first_list(side),
            postings: &mut self.postings,
            met: &mut self.met,
        };
        let candidates = &mut self.candidates;
        let sifted =
            postings::sift(self.isa, probes, window, &mut index, candidates, CANDIDATES_PER_CALL);
        self.next += sifted.probes;
        counters.postings += sifted.postings;
        counters.pre_candidates += sifted.passed;
        self.emitted = 0;
        self.found = sifted.candidates;
        if self.table_words > 0 && self.found > 0 {
            let candidates = &mut self.candidates[..self.found];
            let words = self.table_words;
            self.found =
                postings::refine(self.isa, words, &self.table, &self.distance_max, candidates);
        }
        counters.candidates += self.found as u64;
    }

    /// The end of the sets of the next probe's side, of those before `end`.
    fn end_of_side(&self, side: Side, end: u32) -> u32 {
        if !self.collection.is_two_sided() {
            return end;
        }
        let (mut low, mut high) = (self.next, end);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.collection.side(middle) == side {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    /// Makes the bounds for probes of the size of this rank.
    fn move_to(&mut self, rank: usize) {
        let sizes = self.collection.sizes();
        self.window.move_to(rank, sizes, self.bounds);
        let Window { rank_min, size, probe_prefix, ref required, .. } = self.window;
        self.position_max.resize(rank + 1, 0);
        self.distance_max.resize(rank + 1, 0);
        let mut distance_max = 0;
        for (other, run) in sizes.iter().enumerate().take(rank + 1).skip(rank_min) {
            let required = required[other];
            self.position_max[other] = run.size.saturating_sub(required);
            // Rounding can make it one less for the next size. That loses nothing: the number of
            // bits is odd or even as the sum of the sizes is, and so is the bound.
            let distance = u64::from(size) + u64::from(run.size);
            let distance = distance.saturating_sub(2 * u64::from(required));
            distance_max = u32::try_from(distance).map_or(u32::MAX, |d| d.max(distance_max));
            self.distance_max[other] = distance_max;
        }
        self.rank_max.clear();
        if self.not_probed.get(rank) == Some(&true) {
            return;
        }
        let mut greatest = rank;
        for left in (0..=size).rev().take(probe_prefix) {
            while greatest > rank_min && required[greatest] > left {
                greatest -= 1;
            }
            self.rank_max.push(narrow(greatest));
        }
    }
}

impl Find for SignatureJoin {
    fn fill(&mut self, chunk: &mut CandidateChunk, counters: &mut JoinCounters) -> bool {
        loop {
            for &candidate in &self.candidates[self.emitted..self.found] {
                if chunk.is_full() {
                    return true;
                }
                self.emitted += 1;
                let Candidate { probe, set, position, place } = candidate;
                let required = self.window.required[(place >> 16) as usize];
                chunk.push(probe, set, required, start_behind_match(position, place & 0xffff));
            }
            if self.next as usize == self.collection.len() {
                return false;
            }
            self.sift(counters);
        }
    }
}
