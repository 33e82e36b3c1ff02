//! Candidates of a micro-batch among all earlier sets of the window.
//!
//! ```text
//! probe   3 9 | 12 40 ..     joins the posting lists of 3 and 9, whose older postings are tested:
//!         prefix             sizes, signatures ──► new? ──► positions ──► window ──► candidate
//! ```
//!
//! Sources: the sources of
//! [`find::prefix_join`](crate::set_similarity_join::find::published::prefix_join) for positions,
//! and the sources of `stream_postings` of the kernels for sizes and signatures. Unlike in a
//! collection, sets smaller and larger than the probe are partners.

use hashbrown::HashMap;
use rapidhash::fast::RandomState;
use trommel_kernels::Isa;
use trommel_kernels::overlap::Start;
use trommel_kernels::sets::sign_sets;
use trommel_kernels::stream_postings::{Hit, LookUp, PLACE_MAX, Posting, probe_lists};

use super::index::StreamIndex;
use super::index::newest_first::{LookUpOrigin, NewestFirst};
use super::pane::SetPane;
use super::tokens::number_of;
use crate::set_similarity_join::find::JoinCounters;
use crate::set_similarity_join::parameters::tuning::Tuning;
use crate::set_similarity_join::postings::prefix::start_after_match;
use crate::set_similarity_join::similarity::Bounds;
use crate::shared::sets::SetBlock;
use crate::shared::window::Extent;

/// Number of sets between the set that is added to the index, or removed, and the set whose posting
/// lists or postings are prefetched. The list and the posting each cost a cache miss, and the place
/// of the posting is known only from the list.
const LISTS_AHEAD: usize = 16;
const POSTINGS_AHEAD: usize = 8;

/// Number of set sizes whose prefix lengths are kept; the prefix lengths of larger sets are
/// computed each time.
const PREFIXES_KEPT: u32 = 256;

/// Bits of a signature.
const SIGNATURE_BITS: u32 = u64::BITS;

/// Bounds on the partners of a set, if the first common token is at a position of the set within a
/// range of positions.
#[derive(Debug, Clone, Copy)]
struct PositionBounds {
    /// End of the range of positions.
    end: u32,
    size_min: u16,
    size_max: u16,
    /// Maximum number of tokens that occur in only one of the two sets.
    distance_max: u32,
}

/// A cache of position bounds, by size of the set.
#[derive(Debug)]
pub(super) struct BoundsBySize {
    bounds: Bounds,
    of_size: HashMap<u32, Box<[PositionBounds]>, RandomState>,
    held: usize,
    held_max: usize,
}

impl BoundsBySize {
    fn new(bounds: Bounds, held_max: usize) -> Self {
        Self { bounds, of_size: HashMap::default(), held: 0, held_max }
    }

    /// Bounds for all positions of the prefix of a set of `size` tokens, in their order.
    fn of(&mut self, size: u32) -> &[PositionBounds] {
        if self.held > self.held_max && !self.of_size.contains_key(&size) {
            self.of_size.clear();
            self.held = 0;
        }
        let Self { bounds, of_size, held, .. } = self;
        of_size.entry(size).or_insert_with(|| {
            let found = position_bounds(size, *bounds);
            *held += found.len();
            found
        })
    }

    fn bytes(&self) -> usize {
        let entry = size_of::<(u32, Box<[PositionBounds]>)>() + 1;
        size_of::<PositionBounds>() * self.held + entry * self.of_size.capacity() * 8 / 7
    }
}

/// Position bounds of a set of `size` tokens.
///
/// # Cost
/// A few steps per size of a partner below 2^16, however large `size` is.
fn position_bounds(size: u32, bounds: Bounds) -> Box<[PositionBounds]> {
    let (size_min, prefix) = (bounds.size_min(size), bounds.probe_prefix(size));
    // Maximum number of tokens that occur in only one of two similar sets.
    let distance = |other: u32| {
        let required = u64::from(bounds.required(size, other));
        (u64::from(size) + u64::from(other)).saturating_sub(2 * required)
    };
    let known = |size: u32| u16::try_from(size).unwrap_or(PLACE_MAX);
    // The search for the largest partner of position 0 can bisect, because the required overlap
    // grows with the size of the partner.
    let (mut reached, mut beyond) = (size_min, u32::from(PLACE_MAX) + 1);
    while reached + 1 < beyond {
        let middle = reached.midpoint(beyond);
        if bounds.required(size, middle) <= size { reached = middle } else { beyond = middle }
    }
    let mut found: Vec<PositionBounds> = Vec::new();
    let mut begin = 0;
    while begin < prefix {
        // A partner of size `reached` is possible while the set has its required overlap left.
        let end = prefix.min((size + 1).saturating_sub(bounds.required(size, reached)));
        if end > begin {
            // The exact bound is largest at one of the two ends of the sizes. Rounding can lower
            // the bound at an end by at most 1.
            let distance_max = distance(size_min).max(distance(reached)) + 1;
            let distance_max = match known(reached) {
                PLACE_MAX => SIGNATURE_BITS,
                _ => u32::try_from(distance_max).unwrap_or(SIGNATURE_BITS),
            };
            let (size_min, size_max) = (known(size_min), known(reached));
            found.push(PositionBounds { end, size_min, size_max, distance_max });
            begin = end;
        }
        reached -= 1;
    }
    found.into()
}

/// A candidate pair of a probe of the micro-batch and an earlier set.
#[derive(Debug, Clone, Copy)]
pub(super) struct FoundPair {
    /// Index of the pane of the older set; the number of panes stands for the micro-batch itself.
    pub(super) pane: u32,
    pub(super) probe: u32,
    /// Number of the set in its pane.
    pub(super) set: u32,
    pub(super) required: u32,
    pub(super) start: Start,
}

/// For each set of the window: the last probe that has hit the set. Drops the repeated hits of a
/// pair.
///
/// The ring has at least a place for each set; the low bits of the set's number are the place.
#[derive(Debug, Default)]
pub(super) struct LastProbes {
    /// A set that arrives is entered as its own last probe, so that no entry of an older set with
    /// the same low bits is left.
    probes: Vec<u32>,
}

impl LastProbes {
    /// Makes room for the sets with numbers `begin..end`, of which `known..end` are new. Numbers
    /// wrap around.
    pub(super) fn widen(&mut self, begin: u32, known: u32, end: u32) {
        let sets = end.wrapping_sub(begin) as usize;
        let mut first = known;
        if sets > self.probes.len() {
            self.probes = vec![0; sets.next_power_of_two()];
            first = begin;
        }
        while first != end {
            *self.last(first) = first;
            first = first.wrapping_add(1);
        }
    }

    #[inline]
    fn last(&mut self, set: u32) -> &mut u32 {
        let mask = self.probes.len() - 1;
        &mut self.probes[set as usize & mask]
    }

    /// Whether `probe` hits `set` for the first time. Probes come in ascending order.
    #[inline]
    fn is_new_pair(&mut self, probe: u32, set: u32) -> bool {
        std::mem::replace(self.last(set), probe) != probe
    }

    pub(super) fn bytes(&self) -> usize {
        size_of_val(&self.probes[..])
    }

    /// Bytes for `sets` sets.
    pub(super) fn bytes_for(sets: usize) -> usize {
        size_of::<u32>() * sets.next_power_of_two()
    }
}

/// The sets that are looked up, and the sets among which they are looked up.
pub(super) struct SearchScope<'a> {
    /// The micro-batch.
    pub(super) sets: &'a SetBlock,
    /// For each set of the micro-batch: the stamp of its latest duplicate, which decides when the
    /// set leaves the window.
    pub(super) stamps: &'a [u64],
    /// For each set of the micro-batch: the stamp of its arrival.
    pub(super) arrived: &'a [u64],
    /// Number of the first set of the micro-batch.
    pub(super) begin: u32,
    /// All earlier sets.
    pub(super) panes: &'a [SetPane],
    pub(super) window: Extent,
    /// Whether a set of the micro-batch need not be looked up any further.
    pub(super) is_settled: &'a dyn Fn(u32) -> bool,
    pub(super) isa: Isa,
}

/// The index has no room for another posting.
#[derive(Debug)]
pub(super) struct IndexFull;

/// Finds the candidates of a micro-batch, a bounded number in each call. The finder owns the index
/// of the stream.
#[derive(Debug)]
pub(super) struct StreamFinder {
    bounds_by_size: BoundsBySize,
    /// Prefix lengths by size.
    prefixes: Vec<u32>,
    pub(super) index: StreamIndex,
    pub(super) last_probes: LastProbes,
    /// Signature of each set of the micro-batch.
    signatures: Vec<u64>,
    /// Next set to be added to the index.
    next: usize,
    /// Look-ups of the present round, and the origin of each look-up.
    look_ups: Vec<LookUp>,
    origins: Vec<LookUpOrigin>,
    look_ups_max: usize,
    /// Number of postings from which on a list is looked up in slices, and number of postings of
    /// the first slice.
    long_list: [u32; 2],
    /// Number of look-ups that are done.
    done: usize,
    /// If one similar set is enough: the look-ups of the last set of the round, if a list of that
    /// set is long.
    newest_first: Option<NewestFirst>,
    /// Whether the answer is each pair.
    is_each_pair: bool,
    hits: Vec<Hit>,
    /// Candidates by pane; the candidates from `handed_over` on are in no chunk yet.
    pub(super) found: Vec<FoundPair>,
    pub(super) handed_over: usize,
    found_max: usize,
}

impl StreamFinder {
    /// A finder with an empty index. With `is_each_pair`, the finder looks up many sets in a round;
    /// without, the finder takes small steps, because a set whose first similar set is known is not
    /// looked up further.
    pub(super) fn new(bounds: Bounds, is_each_pair: bool, tuning: &Tuning) -> Self {
        Self {
            bounds_by_size: BoundsBySize::new(bounds, tuning.position_bounds_max),
            prefixes: (0..PREFIXES_KEPT).map(|size| bounds.probe_prefix(size)).collect(),
            index: StreamIndex::new(tuning.postings_max),
            last_probes: LastProbes::default(),
            signatures: Vec::new(),
            next: 0,
            look_ups: Vec::new(),
            origins: Vec::new(),
            look_ups_max: tuning.look_ups,
            long_list: [tuning.long_list, tuning.first_slice],
            done: 0,
            newest_first: None,
            is_each_pair,
            hits: Vec::new(),
            found: Vec::new(),
            handed_over: 0,
            found_max: if is_each_pair { tuning.candidates } else { tuning.candidates_first },
        }
    }

    /// Prefix length of a set of `size` tokens, both for indexing and for looking up; 0 if no set
    /// can be similar to that set.
    pub(super) fn prefix(&self, size: u32) -> u32 {
        match self.prefixes.get(size as usize) {
            Some(&prefix) => prefix,
            None => self.bounds_by_size.bounds.probe_prefix(size),
        }
    }

    /// Tokens in the prefix of the set `set`; empty if there is no such set.
    #[inline]
    fn prefix_tokens<'a>(&self, sets: &'a SetBlock, set: usize) -> &'a [u32] {
        let [begin, end] = match sets.offsets().get(set..set + 2) {
            Some(ends) => [ends[0], ends[1]],
            None => return &[],
        };
        &sets.sets().tokens()[begin as usize..][..self.prefix(end - begin) as usize]
    }

    pub(super) fn bytes(&self) -> usize {
        let Self { bounds_by_size, index, last_probes, signatures, look_ups, .. } = self;
        let of_all = bounds_by_size.bytes() + index.bytes() + last_probes.bytes();
        of_all
            + size_of_val(&self.prefixes[..])
            + size_of::<u64>() * signatures.capacity()
            + size_of::<LookUp>() * look_ups.capacity()
            + size_of::<LookUpOrigin>() * self.origins.capacity()
            + self.newest_first.as_ref().map_or(0, NewestFirst::bytes)
            + size_of::<Hit>() * self.hits.capacity()
            + size_of::<FoundPair>() * self.found.capacity()
    }

    /// Starts a micro-batch: signs its sets, and begins with the first set.
    pub(super) fn begin(&mut self, isa: Isa, sets: &SetBlock) {
        // One long posting list can have made the buffers much larger than usual.
        self.hits.clear();
        self.hits.shrink_to(2 * self.found_max);
        self.found.clear();
        self.found.shrink_to(2 * self.found_max);
        self.signatures.clear();
        self.signatures.resize(sets.len(), 0);
        sign_sets(isa, sets.offsets(), sets.sets().tokens(), 1, &mut self.signatures);
        (self.next, self.done, self.newest_first) = (0, 0, None);
        self.look_ups.clear();
        self.origins.clear();
    }

    /// Adds all sets of `pane` to the index without look-ups.
    pub(super) fn add(&mut self, isa: Isa, pane: &SetPane) -> Result<(), IndexFull> {
        self.begin(isa, &pane.sets);
        while self.next < pane.sets.len() {
            self.add_next(&pane.sets, pane.begin)?;
            self.look_ups.clear();
            self.origins.clear();
        }
        self.signatures = Vec::new();
        Ok(())
    }

    /// Removes the sets of the oldest pane from the index. The set with the number `end` is the
    /// first set that stays.
    pub(super) fn remove(&mut self, sets: &SetBlock, end: u32) {
        let is_before = |set: u32| end.wrapping_sub(set).cast_signed() > 0;
        for set in 0..sets.len() {
            for &token in self.prefix_tokens(sets, set + LISTS_AHEAD) {
                self.index.prefetch_list(number_of(token));
            }
            for &token in self.prefix_tokens(sets, set + POSTINGS_AHEAD) {
                self.index.prefetch_first(number_of(token));
            }
            for &token in self.prefix_tokens(sets, set) {
                self.index.forget(number_of(token), is_before);
            }
        }
    }

    /// Adds the next set to the posting lists of its prefix, and plans the look-ups of the earlier
    /// postings in these lists.
    fn add_next(&mut self, sets: &SetBlock, begin: u32) -> Result<(), IndexFull> {
        for &token in self.prefix_tokens(sets, self.next + LISTS_AHEAD) {
            self.index.prefetch_list(number_of(token));
        }
        for &token in self.prefix_tokens(sets, self.next + POSTINGS_AHEAD) {
            self.index.prefetch_end(number_of(token));
        }
        let Self { bounds_by_size, index, signatures, look_ups, origins, .. } = self;
        let probe = u32::try_from(self.next).expect("a batch has fewer than 2^31 rows");
        let signature = signatures[self.next];
        self.next += 1;
        let tokens = sets.set(probe);
        let size = u32::try_from(tokens.len()).expect("at most 2^31 tokens");
        let set = begin.wrapping_add(probe);
        let mut begin = 0;
        // Positions with equal bounds are one range, so the bounds are read once for each range.
        for &PositionBounds { end, size_min, size_max, distance_max } in bounds_by_size.of(size) {
            let tokens = &tokens[begin as usize..end as usize];
            for (position, &token) in (begin..end).zip(tokens) {
                let slot = number_of(token);
                let [size, at] =
                    [size, position].map(|place| u16::try_from(place).unwrap_or(PLACE_MAX));
                let posting = Posting { set, size, position: at, signature };
                // A list that holds no earlier posting needs no look-up: most tokens of a prefix
                // are rare. The look-up tests the `len` earlier postings, so no set meets itself or
                // a later set.
                let len = index.push(slot, posting).ok_or(IndexFull)?;
                if len > 0 {
                    // `begin` is filled in at the end of the round, because the list can move until
                    // then.
                    let begin = 0;
                    look_ups.push(LookUp {
                        begin,
                        len,
                        signature,
                        distance_max,
                        size_min,
                        size_max,
                    });
                    origins.push(LookUpOrigin { probe, position, slot });
                }
            }
            begin = end;
        }
        Ok(())
    }

    /// Replaces the candidates by the next candidates; false if no candidate is left.
    pub(super) fn find(
        &mut self,
        scope: &SearchScope<'_>,
        counters: &mut JoinCounters,
    ) -> Result<bool, IndexFull> {
        self.found.clear();
        self.handed_over = 0;
        while self.found.len() < self.found_max {
            if self.done < self.look_ups.len() {
                self.probe(scope, counters);
                // One of these candidates can settle the set.
                let is_sliced = self.newest_first.as_ref().is_some_and(NewestFirst::has_begun);
                if is_sliced && !self.found.is_empty() {
                    break;
                }
            } else if !self.slice(scope) && !self.plan(scope)? {
                break;
            }
        }
        counters.candidates += self.found.len() as u64;
        // A chunk names the sets of one pane, so the candidates of a pane have to be together.
        self.found.sort_unstable_by_key(|found| (found.pane, found.probe));
        Ok(!self.found.is_empty())
    }

    /// Does a part of the look-ups that are left, and takes their hits.
    fn probe(&mut self, scope: &SearchScope<'_>, counters: &mut JoinCounters) {
        self.hits.clear();
        let (postings, look_ups) = (self.index.postings(), &self.look_ups[self.done..]);
        let done = probe_lists(scope.isa, postings, look_ups, &mut self.hits, self.found_max);
        let tested = look_ups[..done].iter().map(|look_up| u64::from(look_up.len));
        counters.postings += tested.sum::<u64>();
        counters.pre_candidates += self.hits.len() as u64;
        self.take_hits(scope);
        self.done += done;
    }

    /// Replaces the look-ups, which are done, by the next look-ups of a set with a long list; false
    /// if there is no such set, if no look-up is left, or if a similar set is known.
    fn slice(&mut self, scope: &SearchScope<'_>) -> bool {
        let Some(newest_first) = &mut self.newest_first else { return false };
        self.look_ups.clear();
        self.origins.clear();
        self.done = 0;
        let has_more = !(scope.is_settled)(newest_first.probe)
            && newest_first.next(self.index.postings(), &mut self.look_ups, &mut self.origins);
        if !has_more {
            self.newest_first = None;
        }
        has_more
    }

    /// Adds sets to the index until a round of look-ups is full, or, if one similar set is enough,
    /// until a set with a long list has been added. False if there is no look-up.
    fn plan(&mut self, scope: &SearchScope<'_>) -> Result<bool, IndexFull> {
        self.look_ups.clear();
        self.origins.clear();
        (self.done, self.newest_first) = (0, None);
        let mut long_from = None;
        while self.next < scope.sets.len()
            && self.look_ups.len() < self.look_ups_max
            && long_from.is_none()
        {
            let before = self.look_ups.len();
            self.add_next(scope.sets, scope.begin)?;
            let [long, _] = self.long_list;
            let is_long = self.look_ups[before..].iter().any(|look_up| look_up.len >= long);
            long_from = (is_long && !self.is_each_pair).then_some(before);
        }
        for (look_up, origin) in self.look_ups.iter_mut().zip(&self.origins) {
            look_up.begin = self.index.begin(origin.slot);
        }
        if let Some(from) = long_from {
            let (look_ups, origins) = (self.look_ups.split_off(from), self.origins.split_off(from));
            let [_, first] = self.long_list;
            self.newest_first = Some(NewestFirst::new(scope.begin, look_ups, origins, first));
        }
        Ok(!self.look_ups.is_empty() || self.newest_first.is_some())
    }

    /// Tests each hit by the exact bounds of its pair. The kernel has tested sizes and signatures
    /// by bounds that hold for all partners of a position.
    fn take_hits(&mut self, scope: &SearchScope<'_>) {
        let Self { bounds_by_size, index, last_probes, look_ups, origins, found, .. } = self;
        let first = scope.panes.first().map_or(scope.begin, |pane| pane.begin);
        for hit in &self.hits {
            let look_up = self.done + hit.look_up as usize;
            let LookUpOrigin { probe, position, .. } = origins[look_up];
            let posting = index.postings()[hit.posting as usize];
            // The hits of a pair are in the order of positions, and the bounds get tighter with the
            // position. A pair that fails at its first hit fails at each later hit, so later hits
            // are dropped without a test.
            if !last_probes.is_new_pair(scope.begin.wrapping_add(probe), posting.set) {
                continue;
            }
            // Ages, not numbers, are compared: numbers wrap around within the window.
            let age = posting.set.wrapping_sub(first);
            let pane = scope.panes.partition_point(|pane| pane.begin.wrapping_sub(first) <= age);
            let (pane, sets, stamps, begin) = if posting.set.wrapping_sub(scope.begin) < 1 << 31 {
                (scope.panes.len(), scope.sets, scope.stamps, scope.begin)
            } else {
                let SetPane { sets, stamps, begin, .. } = &scope.panes[pane - 1];
                (pane - 1, &**sets, &stamps[..], *begin)
            };
            let set = posting.set.wrapping_sub(begin);
            let other_size = match posting.size {
                PLACE_MAX => sets.size(set),
                size => size.into(),
            };
            let size = scope.sets.size(probe);
            let required = bounds_by_size.bounds.required(size, other_size);
            let distance = (posting.signature ^ look_ups[look_up].signature).count_ones();
            // A position of `PLACE_MAX` is a lower bound of the real position, which keeps the test
            // correct. The distance of two signatures is a lower bound of the distance of the sets,
            // and that distance is the sum of the sizes minus twice the overlap.
            let is_possible = required <= size - position
                && required + u32::from(posting.position) <= other_size
                && u64::from(distance) + 2 * u64::from(required)
                    <= u64::from(size) + u64::from(other_size);
            if is_possible
                && scope.window.reaches(stamps[set as usize], scope.arrived[probe as usize])
            {
                let start = start_after_match(position, posting.position.into());
                let pane = u32::try_from(pane).expect("fewer panes than sets");
                found.push(FoundPair { pane, probe, set, required, start });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;
    use crate::set_similarity_join::similarity::{Similarity, Threshold};
    use crate::testing::oracle::SIMILARITIES;

    fn bounds(similarity: Similarity, percent: u32) -> Bounds {
        let whole = if similarity == Similarity::Overlap { 1 } else { 100 };
        Bounds::new(similarity, Threshold::new(percent, whole).unwrap()).unwrap()
    }

    #[test]
    fn position_bounds_are_the_sizes_for_which_enough_tokens_are_left() {
        for (similarity, percent) in SIMILARITIES
            .into_iter()
            .flat_map(|similarity| [7, 33, 50, 80, 100].map(|p| (similarity, p)))
        {
            let bounds = bounds(similarity, percent);
            for size in (1..=40).chain(118..=120) {
                let mut begin = 0;
                for found in position_bounds(size, bounds) {
                    for position in begin..found.end {
                        for other in 1..=2000 {
                            let required = bounds.required(size, other);
                            let is_possible = required <= other && required <= size - position;
                            let is_within = (found.size_min..=found.size_max)
                                .contains(&u16::try_from(other).unwrap());
                            assert_eq!(
                                is_within, is_possible,
                                "{similarity:?} {percent}: {other} at {position} of {size}"
                            );
                        }
                    }
                    begin = found.end;
                }
                assert_eq!(begin, bounds.probe_prefix(size));
            }
        }
    }

    #[test]
    fn position_bounds_of_large_sets_are_few() {
        let begun = Instant::now();
        for similarity in SIMILARITIES {
            for size in [1 << 16, 100_000_000] {
                let found = position_bounds(size, bounds(similarity, 1));
                assert!((1..=1 << 16).contains(&found.len()), "{similarity:?}");
            }
        }
        assert!(begun.elapsed() < Duration::from_secs(10));
    }
}
