//! The candidates of a micro-batch among all sets before them.
//!
//! ```text
//! probe   3 9 | 12 40 ..     is added to the lists of 3 and 9, whose older postings are looked at:
//!         prefix             sizes, signatures ──► positions ──► new? ──► in the window? ──► found
//! ```
//!
//! Sources: as [`super::super::prefix_join`] for positions, and `arrivals` of the kernels for sizes
//! and signatures. Other than there, sets on both sides of the probe's size are partners.

use hashbrown::HashMap;
use rapidhash::fast::RandomState;
use trommel_kernels::Isa;
use trommel_kernels::arrivals::{self, Hit, LookUp, PLACE_MAX, Posting};
use trommel_kernels::overlap::Start;
use trommel_kernels::postings::sign_sets;

use super::index::StreamIndex;
use super::pane::SetPane;
use super::tokens::number_of;
use crate::set_similarity_join::find::JoinCounters;
use crate::set_similarity_join::find::prefix::start_after_match;
use crate::set_similarity_join::similarity::Bounds;
use crate::sets::SetBlock;
use crate::window::Extent;

/// Look-ups that are done together, so that what they read is still in the nearest caches where
/// they were added.
const GROUP: usize = if cfg!(test) { 8 } else { 1 << 11 };

/// Candidates that are looked for at a time; and when it is only asked whether there is a similar
/// set, because a set that has one need not be looked up any more.
const FOUND_MAX: usize = if cfg!(test) { 16 } else { 1 << 14 };
const FOUND_FIRST_MAX: usize = if cfg!(test) { 4 } else { 1 << 8 };

/// Bounds of all sizes after which they are made anew.
const POSITION_BOUNDS_MAX: usize = if cfg!(test) { 32 } else { 1 << 18 };

/// The bits of a signature.
const SIGNATURE_BITS: u32 = u64::BITS;

/// What the partners of a set can be that have the token at some position of it in common, and none
/// before. Positions that follow each other and say the same have one.
#[derive(Debug, Clone, Copy)]
struct PositionBounds {
    /// Behind the last position.
    end: u32,
    size_min: u16,
    size_max: u16,
    distance_max: u32,
}

/// What sets of each size look for.
#[derive(Debug)]
pub(super) struct BoundsBySize {
    bounds: Bounds,
    /// By size: those of all positions of the prefix.
    of_size: HashMap<u32, Box<[PositionBounds]>, RandomState>,
    held: usize,
}

impl BoundsBySize {
    fn new(bounds: Bounds) -> Self {
        Self { bounds, of_size: HashMap::default(), held: 0 }
    }

    /// The bounds of a set of this size, the first positions first.
    fn of(&mut self, size: u32) -> &[PositionBounds] {
        if self.held > POSITION_BOUNDS_MAX && !self.of_size.contains_key(&size) {
            self.of_size.clear();
            self.held = 0;
        }
        let Self { bounds, of_size, held } = self;
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

/// # Cost
/// A few steps for each size of a partner below 2^16, however large the set is.
fn position_bounds(size: u32, bounds: Bounds) -> Box<[PositionBounds]> {
    let (size_min, prefix) = (bounds.size_min(size), bounds.probe_prefix(size));
    // Of two sets, in how many tokens they may differ.
    let distance = |other: u32| {
        let required = u64::from(bounds.required(size, other));
        (u64::from(size) + u64::from(other)).saturating_sub(2 * required)
    };
    let known = |size: u32| u16::try_from(size).unwrap_or(PLACE_MAX);
    let (mut reached, mut beyond) = (size_min, u32::from(PLACE_MAX) + 1);
    while reached + 1 < beyond {
        let middle = reached.midpoint(beyond);
        if bounds.required(size, middle) <= size { reached = middle } else { beyond = middle }
    }
    let mut found: Vec<PositionBounds> = Vec::new();
    let mut begin = 0;
    while begin < prefix {
        // A partner of this size is possible as long as so many tokens are left.
        let end = prefix.min((size + 1).saturating_sub(bounds.required(size, reached)));
        if end > begin {
            // The real bound is largest at one of the ends; rounding makes it one less there at
            // most.
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

/// A set that may be similar to a probe.
#[derive(Debug, Clone, Copy)]
pub(super) struct FoundPair {
    /// The pane of the set: its index, or behind the last one, the micro-batch.
    pub(super) pane: u32,
    pub(super) probe: u32,
    /// The number of the set in its pane.
    pub(super) set: u32,
    pub(super) required: u32,
    pub(super) start: Start,
}

/// What a look-up is for.
#[derive(Debug, Clone, Copy)]
struct LookUpOrigin {
    probe: u32,
    position: u32,
    slot: u32,
}

/// Which sets a probe has met, by the last digits of their number.
#[derive(Debug, Default)]
pub(super) struct LastProbes {
    /// The last probe. A set meets itself when it comes, so that nothing is left of those before.
    probes: Vec<u32>,
}

impl LastProbes {
    /// Has room for the sets from `begin` to before `end`, of which those from `known` on are new.
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

    /// Whether the probe meets this set for the first time.
    #[inline]
    fn is_new_pair(&mut self, probe: u32, set: u32) -> bool {
        std::mem::replace(self.last(set), probe) != probe
    }

    pub(super) fn bytes(&self) -> usize {
        size_of_val(&self.probes[..])
    }

    /// Bytes for so many sets.
    pub(super) fn bytes_for(sets: usize) -> usize {
        size_of::<u32>() * sets.next_power_of_two()
    }
}

/// The sets that are looked up, and where.
pub(super) struct SearchScope<'a> {
    /// The micro-batch.
    pub(super) sets: &'a SetBlock,
    /// By set: how long it is remembered, and when it came.
    pub(super) stamps: &'a [u64],
    pub(super) arrived: &'a [u64],
    /// The number of its first set.
    pub(super) begin: u32,
    /// All before it.
    pub(super) panes: &'a [SetPane],
    pub(super) window: Extent,
    pub(super) isa: Isa,
}

/// There is no room for a posting.
#[derive(Debug)]
pub(super) struct IndexFull;

/// Looks up one set of a micro-batch after the other. Made once, for one after the other.
#[derive(Debug)]
pub(super) struct StreamFinder {
    bounds_by_size: BoundsBySize,
    pub(super) index: StreamIndex,
    pub(super) last_probes: LastProbes,
    /// By set of the micro-batch.
    signatures: Vec<u64>,
    /// The next set to be added.
    next: usize,
    look_ups: Vec<LookUp>,
    origins: Vec<LookUpOrigin>,
    /// How many of the look-ups are done.
    done: usize,
    hits: Vec<Hit>,
    /// By pane, and from `handed_over` on not yet in a chunk.
    pub(super) found: Vec<FoundPair>,
    pub(super) handed_over: usize,
    found_max: usize,
}

impl StreamFinder {
    /// Finds all candidates of a set, or as many as it takes to see that there is a similar one.
    pub(super) fn new(bounds: Bounds, is_each_pair: bool) -> Self {
        Self {
            bounds_by_size: BoundsBySize::new(bounds),
            index: StreamIndex::default(),
            last_probes: LastProbes::default(),
            signatures: Vec::new(),
            next: 0,
            look_ups: Vec::new(),
            origins: Vec::new(),
            done: 0,
            hits: Vec::new(),
            found: Vec::new(),
            handed_over: 0,
            found_max: if is_each_pair { FOUND_MAX } else { FOUND_FIRST_MAX },
        }
    }

    /// How many tokens a set of this size is found by, and looks up; none if nothing is similar to
    /// it.
    pub(super) fn prefix(&self, size: u32) -> u32 {
        self.bounds_by_size.bounds.probe_prefix(size)
    }

    pub(super) fn bytes(&self) -> usize {
        let Self {
            bounds_by_size,
            index,
            last_probes,
            signatures,
            look_ups,
            origins,
            hits,
            found,
            ..
        } = self;
        let of_all = bounds_by_size.bytes() + index.bytes() + last_probes.bytes();
        of_all
            + size_of::<u64>() * signatures.capacity()
            + size_of::<LookUp>() * look_ups.capacity()
            + size_of::<LookUpOrigin>() * origins.capacity()
            + size_of::<Hit>() * hits.capacity()
            + size_of::<FoundPair>() * found.capacity()
    }

    /// Begins with the first set of these.
    pub(super) fn begin(&mut self, isa: Isa, sets: &SetBlock) {
        // What one long list took is given back.
        self.hits.clear();
        self.hits.shrink_to(2 * self.found_max);
        self.found.clear();
        self.found.shrink_to(2 * self.found_max);
        self.signatures.clear();
        self.signatures.resize(sets.len(), 0);
        sign_sets(isa, sets.offsets(), sets.sets().tokens(), 1, &mut self.signatures);
        (self.next, self.done) = (0, 0);
        self.look_ups.clear();
        self.origins.clear();
    }

    /// Adds all sets to the index, and looks none of them up.
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

    /// Takes the sets of a pane out of the index, where they are the first ones; `end` is the
    /// number behind the last one.
    pub(super) fn remove(&mut self, sets: &SetBlock, end: u32) {
        let is_before = |set: u32| end.wrapping_sub(set).cast_signed() > 0;
        for ends in sets.offsets().windows(2) {
            let prefix = self.prefix(ends[1] - ends[0]);
            for &token in &sets.sets().tokens()[ends[0] as usize..][..prefix as usize] {
                self.index.forget(number_of(token), is_before);
            }
        }
    }

    /// Adds the next set to the lists of its prefix, and plans to look up those before it.
    fn add_next(&mut self, sets: &SetBlock, begin: u32) -> Result<(), IndexFull> {
        let Self { bounds_by_size, index, signatures, look_ups, origins, .. } = self;
        let probe = u32::try_from(self.next).expect("a batch has fewer than 2^31 rows");
        let signature = signatures[self.next];
        self.next += 1;
        let tokens = sets.set(probe);
        let size = u32::try_from(tokens.len()).expect("at most 2^31 tokens");
        let set = begin.wrapping_add(probe);
        let mut begin = 0;
        for &PositionBounds { end, size_min, size_max, distance_max } in bounds_by_size.of(size) {
            let tokens = &tokens[begin as usize..end as usize];
            for (position, &token) in (begin..end).zip(tokens) {
                let slot = number_of(token);
                let [size, at] =
                    [size, position].map(|place| u16::try_from(place).unwrap_or(PLACE_MAX));
                let posting = Posting { set, size, position: at, signature };
                let len = index.push(slot, posting).ok_or(IndexFull)?;
                if len > 0 {
                    // The list may yet move.
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

    /// Finds the next candidates, in place of those that were found before; false if there are no
    /// more.
    pub(super) fn find(
        &mut self,
        scope: &SearchScope<'_>,
        counters: &mut JoinCounters,
    ) -> Result<bool, IndexFull> {
        self.found.clear();
        self.handed_over = 0;
        while self.found.len() < self.found_max {
            if self.done == self.look_ups.len() && !self.plan(scope)? {
                break;
            }
            self.hits.clear();
            let (postings, look_ups) = (self.index.postings(), &self.look_ups[self.done..]);
            let done =
                arrivals::sift(scope.isa, postings, look_ups, &mut self.hits, self.found_max);
            let looked_at = look_ups[..done].iter().map(|look_up| u64::from(look_up.len));
            counters.postings += looked_at.sum::<u64>();
            counters.pre_candidates += self.hits.len() as u64;
            self.take_hits(scope);
            self.done += done;
        }
        counters.candidates += self.found.len() as u64;
        self.found.sort_unstable_by_key(|found| (found.pane, found.probe));
        Ok(!self.found.is_empty())
    }

    /// Adds the next sets, so that there are look-ups to be done; false if there are no more.
    fn plan(&mut self, scope: &SearchScope<'_>) -> Result<bool, IndexFull> {
        self.look_ups.clear();
        self.origins.clear();
        self.done = 0;
        while self.next < scope.sets.len() && self.look_ups.len() < GROUP {
            self.add_next(scope.sets, scope.begin)?;
        }
        for (look_up, origin) in self.look_ups.iter_mut().zip(&self.origins) {
            look_up.begin = self.index.begin(origin.slot);
        }
        Ok(!self.look_ups.is_empty())
    }

    /// Tests hits by their own bounds.
    fn take_hits(&mut self, scope: &SearchScope<'_>) {
        let Self { bounds_by_size, index, last_probes, look_ups, origins, found, .. } = self;
        let first = scope.panes.first().map_or(scope.begin, |pane| pane.begin);
        for hit in &self.hits {
            let look_up = self.done + hit.look_up as usize;
            let LookUpOrigin { probe, position, .. } = origins[look_up];
            let posting = index.postings()[hit.posting as usize];
            // What fails the tests where it is met first fails them everywhere.
            if !last_probes.is_new_pair(scope.begin.wrapping_add(probe), posting.set) {
                continue;
            }
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

    fn bounds(similarity: Similarity, percent: u32) -> Bounds {
        let whole = if similarity == Similarity::Overlap { 1 } else { 100 };
        Bounds::new(similarity, Threshold::new(percent, whole).unwrap()).unwrap()
    }

    const ALL: [Similarity; 4] =
        [Similarity::Jaccard, Similarity::Cosine, Similarity::Dice, Similarity::Overlap];

    #[test]
    fn position_bounds_are_the_sizes_for_which_enough_tokens_are_left() {
        for (similarity, percent) in
            ALL.into_iter().flat_map(|similarity| [7, 33, 50, 80, 100].map(|p| (similarity, p)))
        {
            let bounds = bounds(similarity, percent);
            for size in 1..=120 {
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
        for similarity in ALL {
            for size in [1 << 16, 100_000_000] {
                let found = position_bounds(size, bounds(similarity, 1));
                assert!((1..=1 << 16).contains(&found.len()), "{similarity:?}");
            }
        }
        assert!(begun.elapsed() < Duration::from_secs(10));
    }
}
