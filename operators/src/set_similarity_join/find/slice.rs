//! A slice of an index by postings, and its search, which several cores can share.
//!
//! ```text
//! sets ──► posting lists of a slice ──► runs of probes ──┬──► search ──► candidates
//!                                                        └──► search ──► candidates
//! ```
//!
//! Most pairs of postings can be in a few long lists, and these lists can be in one slice. So a
//! slice is built once, and searches take its probes in runs of about equal numbers of pairs.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use trommel_kernels::memory::prefer_huge_pages;
use trommel_kernels::overlap::{self, ChunkStore, Cursor};
use trommel_kernels::postings::{
    Hits, Lists, NO_TOKEN, POSITION_MAX, Posting, Progress, SIDE_BIT, scan_lists,
};

use super::JoinCounters;
use super::posting_index::{HITS_PER_CALL, PostingIndex};
use crate::set_similarity_join::candidates::chunk::CandidateChunk;
use crate::set_similarity_join::postings::lists::{PAIRS_PER_POSTING, PostingCounts};
use crate::shared::sets::{SETS_AHEAD, Side};

/// The posting lists of a slice, and the runs of probes that searches take.
#[derive(Debug)]
pub(crate) struct Slice {
    /// Numbers of the lists of the slice in the index.
    lists: Range<usize>,
    /// End of each list among the postings.
    ends: Vec<u32>,
    postings: Vec<Posting>,
    /// End of each run among the postings.
    runs: Vec<u32>,
    /// Work of a run, in pairs of postings.
    run_pairs: u64,
    /// Number of runs that searches have taken; larger than the number of runs if searches asked in
    /// vain.
    taken: AtomicUsize,
}

impl Slice {
    /// Memory of a slice, without lists.
    pub(crate) fn new(index: &PostingIndex) -> Self {
        let mut postings = Vec::with_capacity(index.postings_max);
        // All lists are written at the same time, so the writes spread over all pages.
        prefer_huge_pages(&mut postings);
        postings.resize(index.postings_max, Posting::default());
        let (ends, runs) = (Vec::new(), Vec::new());
        let run_pairs = index.run_pairs;
        Self { lists: 0..0, ends, postings, runs, run_pairs, taken: AtomicUsize::new(0) }
    }

    /// Builds the slice `number` of `index`.
    pub(crate) fn build(&mut self, index: &PostingIndex, number: usize) {
        let PostingIndex { collection, bounds, lists, .. } = index;
        self.lists = index.slices[number].clone();
        self.ends.clear();
        let mut end = 0;
        // At first, the entries are the starts of the lists; `add` moves each entry to the end of
        // its list.
        self.ends.extend(lists.lens[self.lists.clone()].iter().map(|len| {
            end += len;
            end - len
        }));
        match &index.visits {
            Some(visits) => visits.sets.iter().for_each(|sets| self.visit(index, &sets[number])),
            None => {
                for (rank, run) in (0..).zip(collection.sizes()) {
                    let prefix = bounds.probe_prefix(run.size) as usize;
                    for set in run.begin..run.end {
                        collection.prefetch(set + SETS_AHEAD);
                        self.add(index, rank, set, prefix);
                    }
                }
            }
        }
        self.cut();
    }

    /// Adds the postings of `sets`, whose numbers ascend, to the lists of the slice.
    fn visit(&mut self, index: &PostingIndex, sets: &[u32]) {
        let PostingIndex { collection, bounds, .. } = index;
        let (sizes, mut rank, mut prefix) = (collection.sizes(), 0, None);
        for (place, &set) in sets.iter().enumerate() {
            if let Some(&ahead) = sets.get(place + SETS_AHEAD as usize) {
                collection.prefetch(ahead);
            }
            while sizes[rank as usize].end <= set {
                (rank, prefix) = (rank + 1, None);
            }
            let prefix =
                *prefix.get_or_insert_with(|| bounds.probe_prefix(sizes[rank as usize].size));
            self.add(index, rank, set, prefix as usize);
        }
    }

    /// Adds the postings of `set`, whose size has `rank`, to the lists of the slice.
    #[inline(always)]
    fn add(&mut self, index: &PostingIndex, rank: u32, set: u32, prefix: usize) {
        let collection = &index.collection;
        let side = match collection.side(set) {
            Side::Left => 0,
            Side::Right => SIDE_BIT,
        };
        let (first, end) = (index.token(self.lists.start), index.token(self.lists.end));
        let mut before = NO_TOKEN;
        for (position, &token) in (0_u32..).zip(&collection.set(set)[..prefix]) {
            // Tokens ascend, so no later token is in the slice.
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
            // Two postings with the same earlier token also meet in the list of that token, and are
            // found there.
            before = token;
        }
    }

    /// Cuts the postings into runs. A long list is cut into several runs.
    fn cut(&mut self) {
        let run_pairs = self.run_pairs;
        self.runs.clear();
        *self.taken.get_mut() = 0;
        let (mut begin, mut room) = (0, run_pairs);
        for &end in &self.ends {
            let list = PostingCounts::of(&[end - begin]).weight();
            if list < room {
                room -= list;
            } else {
                for probe in begin..end {
                    // Each posting is compared with the earlier postings of its list.
                    let probe_weight = PAIRS_PER_POSTING + u64::from(probe - begin);
                    room = room.saturating_sub(probe_weight);
                    if room == 0 {
                        self.runs.push(probe + 1);
                        room = run_pairs;
                    }
                }
            }
            begin = end;
        }
        if self.runs.last() != Some(&begin) && begin > 0 {
            self.runs.push(begin);
        }
    }

    /// Takes the next run of probes. Each run is taken once.
    fn take_run(&self) -> Option<Range<usize>> {
        // Relaxed: the counter orders no other data, because the runs were made before the slice
        // was shared.
        let run = self.taken.fetch_add(1, Ordering::Relaxed);
        let end = *self.runs.get(run)?;
        let begin = run.checked_sub(1).map_or(0, |before| self.runs[before]);
        Some(begin as usize..end as usize)
    }

    /// Number of runs that no search has taken.
    fn runs_left(&self) -> usize {
        self.runs.len().saturating_sub(self.taken.load(Ordering::Relaxed))
    }

    /// Approximate work of the runs that no search has taken, in pairs.
    pub(crate) fn weight_left(&self) -> u64 {
        self.runs_left() as u64 * self.run_pairs
    }
}

/// A search that takes runs of one slice after another.
pub(crate) struct SliceSearch {
    progress: Progress,
    hits: Hits,
    /// Whether the run has more probes.
    has_probes: bool,
    /// Candidate pairs of the last probes; the pairs from `cursor` on are in no chunk yet.
    matches: ChunkStore,
    cursor: Cursor,
}

impl SliceSearch {
    /// A search that has not begun.
    pub(crate) fn new(index: &PostingIndex) -> Self {
        let is_two_sided = index.collection.is_two_sided();
        Self {
            progress: Progress::new(index.len_max, index.signatures.words, is_two_sided),
            hits: Hits::default(),
            has_probes: false,
            matches: ChunkStore::default(),
            cursor: Cursor::default(),
        }
    }

    /// Begins another slice, when no run of the previous slice is left.
    pub(crate) fn begin(&mut self) {
        self.progress.begin();
    }

    /// Finds the candidates of the next probes; false if no run is left.
    fn scan_lists(
        &mut self,
        index: &PostingIndex,
        slice: &Slice,
        counters: &mut JoinCounters,
    ) -> bool {
        let Self { progress, hits, .. } = self;
        if !self.has_probes {
            let Some(run) = slice.take_run() else { return false };
            progress.go_to(run);
        }
        let lists = Lists {
            ends: &slice.ends,
            postings: &slice.postings,
            words: index.signatures.words,
            signatures: &index.signatures.bits,
            is_two_sided: index.collection.is_two_sided(),
        };
        let (limits, isa) = (&index.limits, index.isa);
        let before = progress.tested();
        self.has_probes = scan_lists(isa, lists, limits, progress, hits, HITS_PER_CALL);
        let (tested, passed) = progress.tested();
        counters.postings += tested - before.0;
        counters.pre_candidates += passed - before.1;
        let sets = index.collection.sets();
        // `write_matches` applies the positional filter with the exact bounds of each pair. A pair
        // is taken from the list of its first common token: `retain_first` drops the pair in all
        // other lists.
        hits.write_matches(limits, sets, index.token(slice.lists.start), &mut self.matches);
        overlap::retain_first(isa, sets, &mut self.matches);
        self.cursor = Cursor::default();
        counters.candidates += self.matches.len() as u64;
        true
    }

    /// Adds candidate pairs of `slice` to `chunk` until the chunk is full or no run is left; false
    /// if no run is left.
    pub(crate) fn fill(
        &mut self,
        index: &PostingIndex,
        slice: &Slice,
        chunk: &mut CandidateChunk,
        counters: &mut JoinCounters,
    ) -> bool {
        loop {
            chunk.take(&self.matches, &mut self.cursor);
            if chunk.is_full() {
                return true;
            }
            if !self.scan_lists(index, slice, counters) {
                return false;
            }
        }
    }
}
