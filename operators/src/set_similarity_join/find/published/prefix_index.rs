//! The index of the published joins: each entry is looked up among the entries before it, and
//! then added.
//!
//! An *entry* is a set, or a group of sets with equal sizes and equal prefixes; of a group, only
//! the first set is read. Entries are added by ascending size.
//!
//! The loop is compiled for the level of the join
//! ([`run_compiled_for`](trommel_kernels::run_compiled_for)), and has no code that is specific to a
//! level.

use std::marker::PhantomData;
use std::sync::Arc;

use trommel_kernels::Isa;
use trommel_kernels::overlap::Start;

use crate::set_similarity_join::find::JoinCounters;
use crate::set_similarity_join::find::filters::Filters;
use crate::set_similarity_join::parameters::error::JoinError;
use crate::set_similarity_join::postings::prefix::{
    PostingRange, SizeRange, empty_lists, list_of, lists_bytes,
};
use crate::set_similarity_join::postings::signatures::{SetSignatures, words_for};
use crate::set_similarity_join::similarity::Bounds;
use crate::shared::budget::Budget;
use crate::shared::sets::{SETS_AHEAD, SetCollection, SizeRun};

/// An entry of the index, by its first set.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entry {
    /// Number of the entry, from 0 on without a gap.
    pub(crate) number: u32,
    /// First set of the entry.
    pub(crate) set: u32,
}

/// An entry that has a token in its prefix.
#[derive(Debug, Clone, Copy, Default)]
struct PrefixPosting {
    entry: u32,
    /// Rank of the size of the entry.
    rank: u32,
    /// Number of tokens of the set from the token of this posting on.
    left: u32,
}

/// Bytes of the lists and of `postings` postings, which are most of the bytes of an index.
pub(crate) fn index_bytes(collection: &SetCollection, postings: u64) -> u64 {
    lists_bytes(collection) as u64 + postings.saturating_mul(size_of::<PrefixPosting>() as u64)
}

/// An entry that passed the filters of the last look-up.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Candidate {
    pub(crate) entry: u32,
    /// Rank of the size of the entry.
    rank: u32,
}

/// Verification of a pair: the required overlap, and the first positions to compare.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Verification {
    pub(crate) required: u32,
    pub(crate) start: Start,
}

/// Value in `matches` of an entry that the signatures have ruled out as a candidate of the last
/// entry.
const RULED_OUT: u32 = 1 << 31;

/// Posting lists of the prefixes of all entries so far.
pub(crate) struct PrefixIndex<F> {
    collection: Arc<SetCollection>,
    bounds: Bounds,
    /// By rank of the size: prefix length by which an entry is indexed.
    prefixes: Vec<usize>,
    lists: Vec<PostingRange>,
    postings: Vec<PrefixPosting>,
    /// Partner sizes of the last entry.
    pub(crate) range: SizeRange,
    /// By entry: number of tokens that the prefixes of this entry and of the last entry have in
    /// common, or at least `RULED_OUT`. 0 unless the entry is in `found` or in `ruled_out`.
    matches: Vec<u32>,
    /// Candidates of the last entry.
    pub(crate) found: Vec<Candidate>,
    /// Entries that the signatures have ruled out.
    ruled_out: Vec<u32>,
    signatures: SetSignatures,
    filters: PhantomData<F>,
}

impl<F: Filters> PrefixIndex<F> {
    /// An empty index with room for `entries`, given by their first sets.
    ///
    /// # Errors
    /// If the index does not fit the memory.
    pub(crate) fn new(
        collection: &Arc<SetCollection>,
        bounds: Bounds,
        isa: Isa,
        entries: impl ExactSizeIterator<Item = u32>,
        budget: &mut Budget,
    ) -> Result<Self, JoinError> {
        // For each entry: its matches, and a place among the candidates or among the ruled out
        // entries.
        let of_entry = size_of::<u32>() + size_of::<Candidate>();
        budget.take("the index", lists_bytes(collection) + of_entry * entries.len())?;
        let prefix = |run: &SizeRun| bounds.index_prefix(run.size) as usize;
        let prefixes: Vec<usize> = collection.sizes().iter().map(prefix).collect();
        let matches = vec![0; entries.len()];
        let (sizes, mut rank) = (collection.sizes(), 0);
        let with_prefix = |set| {
            while set >= sizes[rank].end {
                rank += 1;
            }
            (set, prefixes[rank])
        };
        let (lists, room) = empty_lists(collection, entries.map(with_prefix));
        budget.take("the index", room * size_of::<PrefixPosting>())?;
        let words = if F::TESTS_SIGNATURES { words_for(collection, bounds) } else { 0 };
        Ok(Self {
            collection: Arc::clone(collection),
            bounds,
            prefixes,
            lists,
            postings: vec![PrefixPosting::default(); room],
            range: SizeRange::default(),
            matches,
            found: Vec::new(),
            ruled_out: Vec::new(),
            signatures: SetSignatures::new(collection, words, isa, budget)?,
            filters: PhantomData,
        })
    }

    /// Replaces the candidates by the candidates of `entry`, and adds `entry` to the index.
    #[inline(always)]
    pub(crate) fn join(&mut self, entry: Entry, counters: &mut JoinCounters) {
        let Entry { number, set } = entry;
        let sizes = self.collection.sizes();
        if number == 0 {
            self.range.move_to(0, sizes, self.bounds);
        } else if set == sizes[self.range.rank].end {
            self.range.move_to(self.range.rank + 1, sizes, self.bounds);
        }
        self.look_up(set, counters);
        self.add(entry);
    }

    /// Replaces the candidates by the candidates of `set`.
    #[inline(always)]
    fn look_up(&mut self, set: u32, counters: &mut JoinCounters) {
        let Self {
            collection, range, lists, postings, matches, found, ruled_out, signatures, ..
        } = self;
        found.clear();
        collection.prefetch(set + SETS_AHEAD);
        let partner_side = collection.partner_side(collection.side(set));
        let rank_min = narrow(range.rank_min);
        for (left, &token) in (0..=range.size).rev().zip(&collection.set(set)[..range.probe_prefix])
        {
            let list = &mut lists[list_of(collection, partner_side, token)];
            let of_list = &postings[list.begin as usize..list.end as usize];
            // Entries are added and looked up by ascending size. So the entries that are too small
            // for this entry are at the front of the list, and are also too small for all later
            // entries. The list drops these entries.
            let small = of_list.iter().take_while(|posting| posting.rank < rank_min).count();
            for posting in &of_list[small..] {
                let required = range.required[posting.rank as usize];
                let matches = &mut matches[posting.entry as usize];
                // These filters are applied at the first common token only. The matches of a pair
                // that passes are still counted, because its verification begins after the counted
                // tokens. A pair that fails by its positions has fewer tokens left at each later
                // match, so the pair fails at each later match, too.
                if *matches == 0 {
                    if F::TESTS_POSITIONS && left.min(posting.left) < required {
                        continue;
                    }
                    if F::TESTS_SIGNATURES {
                        let size = collection.sizes()[posting.rank as usize].size;
                        let distance = u64::from(signatures.distance(set, posting.entry));
                        let sizes = u64::from(range.size) + u64::from(size);
                        if distance + 2 * u64::from(required) > sizes {
                            *matches = RULED_OUT;
                            ruled_out.push(posting.entry);
                            continue;
                        }
                    }
                    found.push(Candidate { entry: posting.entry, rank: posting.rank });
                }
                *matches += 1;
            }
            counters.postings += of_list.len() as u64;
            counters.pre_candidates += (of_list.len() - small) as u64;
            list.begin += narrow(small);
        }
        for entry in ruled_out.drain(..) {
            matches[entry as usize] = 0;
        }
    }

    /// Adds an entry, which has just been looked up, to the lists of its prefix.
    #[inline(always)]
    fn add(&mut self, Entry { number, set }: Entry) {
        let Self { collection, range, lists, postings, .. } = self;
        let (side, rank) = (collection.side(set), narrow(range.rank));
        for (left, &token) in (0..=range.size).rev().zip(&collection.set(set)[..range.index_prefix])
        {
            let list = &mut lists[list_of(collection, side, token)];
            postings[list.end as usize] = PrefixPosting { entry: number, rank, left };
            list.end += 1;
        }
    }

    /// Takes the matches of `candidate` with the last entry, and returns the verification of
    /// `probe`, a set of the last entry, with `set`, a set of the candidate.
    #[inline(always)]
    pub(crate) fn take(&mut self, candidate: Candidate, probe: u32, set: u32) -> Verification {
        let matches = std::mem::take(&mut self.matches[candidate.entry as usize]);
        let rank = candidate.rank as usize;
        let required = self.range.required[rank];
        let lens = [self.range.probe_prefix, self.prefixes[rank]];
        let start = start_after_prefix(
            Prefix { set: self.collection.set(probe), len: lens[0] },
            Prefix { set: self.collection.set(set), len: lens[1] },
            matches,
        );
        Verification { required, start }
    }
}

fn narrow(number: usize) -> u32 {
    u32::try_from(number).expect("sets and postings have 32-bit numbers")
}

/// A set and the length of its prefix.
#[derive(Debug, Clone, Copy)]
struct Prefix<'a> {
    set: &'a [u32],
    /// At least 1.
    len: usize,
}

impl Prefix<'_> {
    fn last(self) -> u32 {
        self.set[self.len - 1]
    }

    fn end(self) -> u32 {
        u32::try_from(self.len).expect("prefixes are below 2^31")
    }
}

/// Start of the verification of a pair whose prefixes share `matches` tokens: after the prefix
/// with the smaller last token, and after `matches` tokens of the other set.
///
/// All common tokens up to the end of the first prefix are in the other prefix, too, so these
/// tokens have been counted. The other set has at least `matches` tokens up to that end.
fn start_after_prefix(probe: Prefix<'_>, candidate: Prefix<'_>, matches: u32) -> Start {
    if probe.last() < candidate.last() {
        Start { probe: probe.end(), candidate: matches, overlap: matches }
    } else {
        Start { probe: matches, candidate: candidate.end(), overlap: matches }
    }
}
