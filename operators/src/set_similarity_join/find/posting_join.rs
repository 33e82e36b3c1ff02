//! The algorithm `auto` by postings: prefix, size, positional and signature filters, by the kernels
//! of [`postings`](trommel_kernels::postings).
//!
//! ```text
//! posting lists, one per token ──► 16 postings at a time: size, position, signature ──► hits
//!   ──► positions, by the bounds of the pair ──► first common token? ──► chunk
//! ```
//!
//! Each posting list is joined to itself, in place of a look-up of each set in the lists of its
//! tokens, so that memory is read in order. A pair with several common tokens is taken from the
//! list of the first common token.
//!
//! The index holds the lists of one slice of the tokens at a time, so the index stays smaller than
//! the sets; several cores hold several slices ([`searching`](super::searching)).
//!
//! The length of signatures follows from the sizes of the sets and from the number of postings to
//! test. There are no signatures if lists are so short that making signatures costs more time than
//! signatures save.

use super::posting_index::PostingIndex;
use super::slice::{Slice, SliceSearch};
use super::{Find, JoinCounters};
use crate::set_similarity_join::candidates::chunk::CandidateChunk;

/// The finder of `auto` by postings, slice after slice.
pub(crate) struct PostingJoin {
    index: PostingIndex,
    slice: Slice,
    search: SliceSearch,
    /// Number of the slice after the present one.
    next: usize,
}

impl PostingJoin {
    /// A finder before the first slice.
    pub(crate) fn new(index: PostingIndex) -> Self {
        let (slice, search) = (Slice::new(&index), SliceSearch::new(&index));
        Self { index, slice, search, next: 0 }
    }
}

impl Find for PostingJoin {
    fn fill(&mut self, chunk: &mut CandidateChunk, counters: &mut JoinCounters) -> bool {
        let Self { index, slice, search, next } = self;
        while !search.fill(index, slice, chunk, counters) {
            if *next == index.slices() {
                return false;
            }
            slice.build(index, *next);
            search.begin();
            *next += 1;
        }
        true
    }
}
