//! What a call is given.

use std::ops::Range;

use super::{BLOCK, RANKS_MAX};

/// Where the postings of a token are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct List {
    /// The first posting; those before it belong to sets that are too small for all probes to come.
    pub begin: u32,
    /// Behind the last posting.
    pub end: u32,
}

/// A pair that passed the tests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Candidate {
    /// The probe.
    pub probe: u32,
    /// The set that was found.
    pub set: u32,
    /// The position in the probe of the first common token.
    pub position: u32,
    /// The rank of the set's size, shifted by 16, and the position of that token in the set, which
    /// is [`POSITION_MAX`](super::POSITION_MAX) also if it is greater.
    pub place: u32,
}

/// A set that has a token in its prefix.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Posting {
    /// The rank of the set's size and the position of the token, as in [`Candidate`].
    pub place: u32,
    /// The set.
    pub set: u32,
    /// The signature of the set.
    pub signature: u64,
}

/// The first half of a posting.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub(super) struct Met {
    pub(super) place: u32,
    pub(super) set: u32,
}

/// Sets of the same size, which are looked up and added one after the other.
#[derive(Clone, Debug)]
pub struct Probes<'a> {
    /// Set `i` of the join is `tokens[offsets[i]..offsets[i + 1]]`, strictly ascending.
    pub offsets: &'a [u32],
    /// The tokens of all sets of the join.
    pub tokens: &'a [u32],
    /// The signature of each set.
    pub signatures: &'a [u64],
    /// The sets to take; not empty.
    pub range: Range<u32>,
    /// Tokens below this have no postings and are not looked up.
    pub token_min: u32,
}

/// The bounds for sets of one size.
#[derive(Clone, Copy, Debug)]
pub struct Window<'a> {
    /// The rank of the probes' size, below [`RANKS_MAX`].
    pub rank: u32,
    /// The rank of the least size that is looked for; it must not descend from call to call.
    pub rank_min: u32,
    /// How many tokens of a probe are added to the index.
    pub index_prefix: usize,
    /// The greatest rank that can suffice when the first common token is at this position of the
    /// probe; as many as tokens of a probe that are looked up. All from `rank_min` to `rank`.
    pub rank_max: &'a [u32],
    /// By rank: the greatest position in a set at which its first common token can suffice. Not
    /// descending from `rank_min` on.
    pub position_max: &'a [u32],
    /// By rank: in how many bits signatures may differ. Not descending from `rank_min` on.
    pub distance_max: &'a [u32],
}

/// The lists, their postings, and which sets a probe has met.
#[derive(Debug)]
pub struct Index<'a> {
    /// The lists that are looked up, and those that are added to, by token.
    pub lists: &'a mut [List],
    /// Where the lists that are looked up begin.
    pub partner_lists: usize,
    /// Where the lists that are added to begin.
    pub own_lists: usize,
    /// The postings of all lists, and [`BLOCK`] more.
    pub postings: &'a mut [Posting],
    /// By set: one more than the last probe that has met it.
    pub met: &'a mut [u32],
}

/// How far a call came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sifted {
    /// Probes that were taken, at least one.
    pub probes: u32,
    /// Candidates that were written.
    pub candidates: usize,
    /// Postings that were tested.
    pub postings: u64,
    /// Postings that passed the tests of their block.
    pub passed: u64,
}

impl Probes<'_> {
    pub(super) fn check(&self) {
        let sets = self.offsets.len().saturating_sub(1);
        let Range { start, end } = self.range;
        assert!(start < end && end as usize <= sets, "probes {start}..{end} of {sets} sets");
        let signed = self.signatures.len();
        assert!(signed == sets, "{sets} sets need as many signatures, not {signed}");
    }
}

impl Window<'_> {
    pub(super) fn check(&self, probes: &Probes<'_>) {
        let Self { rank, rank_min, index_prefix, rank_max, .. } = *self;
        assert!(rank_min <= rank && (rank as usize) < RANKS_MAX, "ranks {rank_min} to {rank}");
        let first = probes.range.start as usize;
        let size = (probes.offsets[first + 1] - probes.offsets[first]) as usize;
        let prefix = rank_max.len().max(index_prefix);
        assert!(prefix <= size, "a prefix of {prefix} tokens in sets of {size}");
        let is_rank = |max: &u32| (rank_min..=rank).contains(max);
        assert!(rank_max.iter().all(is_rank), "a greatest rank outside {rank_min} to {rank}");
        for (name, bounds) in [("position", self.position_max), ("distance", self.distance_max)] {
            let known = bounds.len();
            assert!(known > rank as usize, "a {name} for {known} ranks, up to {rank}");
            let window = &bounds[rank_min as usize..=rank as usize];
            assert!(window.is_sorted(), "the {name} descends");
        }
    }
}

impl Index<'_> {
    pub(super) fn check(&self, probes: &Probes<'_>) {
        let (met, sets) = (self.met.len(), probes.offsets.len() - 1);
        assert!(met == sets, "{sets} sets need as many marks, not {met}");
        let room = self.postings.len();
        assert!(room >= BLOCK, "{BLOCK} postings of room behind the last one, not {room}");
    }
}
