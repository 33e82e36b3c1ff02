//! Sets that came one after the other, with a numbering and an index of their own.

use std::sync::Arc;

use hashbrown::HashMap;
use rapidhash::fast::RandomState;
use trommel_engine::operator::OperatorError;
use trommel_kernels::postings::{self, POSITION_MAX};

use super::super::bounds::Bounds;
use super::super::carried::Carried;
use super::super::collection::{SetCollection, SizeRun, SortedSets};
use super::super::collector::{Budget, JoinError, NamedSets, SetCollector, Side};

/// A set that came, and when.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Arrival {
    pub(super) id: u32,
    /// Position or time: see [`Extent`](super::window::Extent).
    pub(super) stamp: u64,
}

/// Sets with the numbers of their tokens, and when they came.
#[derive(Debug)]
pub(super) struct Members {
    /// The sets, each with its place among the arrivals.
    pub(super) sets: Arc<SetCollection>,
    /// By number of a token: the token.
    names: Vec<u32>,
    /// By set: when it came.
    pub(super) stamps: Vec<u64>,
}

impl Members {
    /// The sets of a collector, whose ids are indexes into `arrivals`.
    ///
    /// Where the collector leaves out copies, the one that is kept is remembered as long as the
    /// last one.
    pub(super) fn new(
        sets: SetCollector,
        mut arrivals: Vec<Arrival>,
        carried: Option<Carried>,
    ) -> Result<Self, JoinError> {
        let NamedSets { mut sets, names, copies } = sets.finish_named()?;
        for (kept, copy) in copies {
            let last = arrivals[copy as usize].stamp;
            let kept = &mut arrivals[kept as usize].stamp;
            *kept = last.max(*kept);
        }
        sets.label(|_, place| arrivals[place as usize].id);
        sets.pair_by_place();
        if let Some(carried) = carried {
            sets.carry(carried);
        }
        let stamps = sets.places().iter().map(|&place| arrivals[place as usize].stamp).collect();
        Ok(Self { sets: Arc::new(sets), names, stamps })
    }

    /// All sets of some of these as one; without copies, of equal sets the first one.
    ///
    /// # Cost
    /// A look-up for each token, and sorting, as for sets that are new.
    pub(super) fn merged<'a>(
        parts: impl Iterator<Item = &'a Self> + Clone,
        keeps_copies: bool,
        budget: Budget,
    ) -> Result<Self, OperatorError> {
        let mut collector = SetCollector::within(budget);
        if !keeps_copies {
            collector = collector.without_copies();
        }
        let mut arrivals = Vec::with_capacity(parts.clone().map(|part| part.sets.len()).sum());
        let mut tokens = Vec::new();
        for part in parts.clone() {
            for (set, &stamp) in (0..).zip(&part.stamps) {
                part.write_tokens(set, &mut tokens);
                tokens.sort_unstable();
                let index = u32::try_from(arrivals.len()).expect("sets have 32-bit numbers");
                collector.push(Side::Left, index, &tokens)?;
                arrivals.push(Arrival { id: part.sets.id(set), stamp });
            }
        }
        // Copies are left out only where nothing goes with the sets.
        let carried = Carried::gather(parts.map(|part| &*part.sets))?;
        collector.reserve("the columns", carried.as_ref().map_or(0, Carried::bytes))?;
        Ok(Self::new(collector, arrivals, carried)?)
    }

    /// Writes down the tokens of a set, in the order of their numbers.
    fn write_tokens(&self, set: u32, tokens: &mut Vec<u32>) {
        tokens.clear();
        tokens.extend(self.sets.set(set).iter().map(|&number| self.names[number as usize]));
    }

    /// By set: a signature of its tokens, which is the same in any numbering.
    pub(super) fn signatures(&self) -> Vec<u64> {
        let mut tokens = Vec::new();
        let sign = |(set, _): (u32, _)| {
            self.write_tokens(set, &mut tokens);
            let mut signature = 0;
            postings::sign(&tokens, std::slice::from_mut(&mut signature));
            signature
        };
        (0..).zip(&self.stamps).map(sign).collect()
    }

    /// How much it costs to make them anew.
    pub(super) fn weight(&self) -> usize {
        self.sets.len() + self.sets.tokens()
    }

    fn bytes(&self) -> usize {
        let (sets, tokens) = (self.sets.len(), self.sets.tokens());
        let carried = self.sets.carried().map_or(0, Carried::bytes);
        carried
            + 13 * sets
            + 4 * tokens
            + size_of_val(&self.names[..])
            + size_of_val(&self.stamps[..])
    }
}

/// A set that has a token in its prefix.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Posting {
    /// The rank of the set's size, and the position of the token, at most [`POSITION_MAX`].
    place: u32,
    pub(super) set: u32,
    pub(super) signature: u64,
}

impl Posting {
    #[inline]
    pub(super) fn rank(self) -> usize {
        (self.place >> 16) as usize
    }

    #[inline]
    pub(super) fn position(self) -> u32 {
        self.place & POSITION_MAX
    }
}

/// Bytes of an entry of a hash table, at its least load.
const ENTRY_BYTES: usize = 2 * (size_of::<(u32, u32)>() + 1) * 8 / 7;

/// Which sets have a token in their prefix, by token.
pub(super) struct PaneIndex {
    /// By token: its number.
    numbers: HashMap<u32, u32, RandomState>,
    /// By number: where its postings begin; and the end.
    begins: Vec<u32>,
    /// By number of the token, then of the set.
    postings: Vec<Posting>,
}

impl PaneIndex {
    /// Finds each set by all tokens that any partner may have to find it by.
    fn new(members: &Members, bounds: Bounds, budget: &mut Budget) -> Result<Self, JoinError> {
        let Members { sets, names, .. } = members;
        let prefix = |run: &SizeRun| bounds.probe_prefix(run.size) as usize;
        let room: usize =
            sets.sizes().iter().map(|run| (run.end - run.begin) as usize * prefix(run)).sum();
        let token_bytes = ENTRY_BYTES + size_of::<u32>();
        budget.take("the index", room * size_of::<Posting>() + names.len() * token_bytes)?;
        let mut begins = vec![0; names.len() + 1];
        for run in sets.sizes() {
            for set in run.begin..run.end {
                sets.set(set)[..prefix(run)].iter().for_each(|&token| begins[token as usize] += 1);
            }
        }
        let mut end = 0;
        for begin in &mut begins {
            end += *begin;
            *begin = end;
        }
        // From behind, which moves each beginning from the end of its list to where it belongs.
        let mut postings = vec![Posting::default(); room];
        let signatures = members.signatures();
        for (rank, run) in sets.sizes().iter().enumerate().rev() {
            let rank = u32::try_from(rank).expect("as many sizes as 32-bit tokens allow");
            for set in (run.begin..run.end).rev() {
                let signature = signatures[set as usize];
                for (position, &token) in (0..).zip(&sets.set(set)[..prefix(run)]) {
                    let begin = &mut begins[token as usize];
                    *begin -= 1;
                    let place = rank << 16 | POSITION_MAX.min(position);
                    postings[*begin as usize] = Posting { place, set, signature };
                }
            }
        }
        let numbers = names.iter().copied().zip(0..).collect();
        Ok(Self { numbers, begins, postings })
    }

    /// The postings of a token, by the number of the set.
    #[inline]
    pub(super) fn postings(&self, token: u32) -> &[Posting] {
        let begins = &self.begins[token as usize..];
        &self.postings[begins[0] as usize..begins[1] as usize]
    }

    fn bytes(&self) -> usize {
        self.numbers.capacity() * ENTRY_BYTES / 2
            + size_of_val(&self.begins[..])
            + size_of_val(&self.postings[..])
    }
}

/// Which sets a probe has met.
pub(super) struct Met {
    /// By set: the last probe.
    probes: Vec<u32>,
    probe: u32,
}

impl Met {
    /// Goes on to the next probe, which has met no set.
    pub(super) fn next_probe(&mut self) {
        if self.probe == u32::MAX {
            self.probes.fill(0);
            self.probe = 0;
        }
        self.probe += 1;
    }

    /// Whether the probe meets this set for the first time.
    #[inline]
    pub(super) fn meet(&mut self, set: u32) -> bool {
        std::mem::replace(&mut self.probes[set as usize], self.probe) != self.probe
    }
}

/// Sets of which similar ones can be found.
pub(super) struct Pane {
    pub(super) members: Arc<Members>,
    pub(super) index: PaneIndex,
    pub(super) met: Met,
    /// The cell of its sets.
    pub(super) cell: u64,
    /// When the newest of them came, and the oldest.
    pub(super) newest: u64,
    pub(super) oldest: u64,
}

impl Pane {
    /// Makes the index.
    pub(super) fn new(
        members: Arc<Members>,
        cell: u64,
        bounds: Bounds,
        mut budget: Budget,
    ) -> Result<Self, JoinError> {
        let sets = members.sets.len();
        budget.take("the index", sets * (size_of::<u64>() + size_of::<u32>()))?;
        let index = PaneIndex::new(&members, bounds, &mut budget)?;
        let met = Met { probes: vec![0; sets], probe: 0 };
        let newest = members.stamps.iter().copied().max().unwrap_or_default();
        let oldest = members.stamps.iter().copied().min().unwrap_or_default();
        Ok(Self { members, index, met, cell, newest, oldest })
    }

    pub(super) fn bytes(&self) -> usize {
        self.members.bytes() + self.index.bytes() + size_of_val(&self.met.probes[..])
    }

    /// Other sets in the numbering of this pane: behind the tokens that it knows come those that it
    /// does not, numbered from [`Self::unknown`] on.
    ///
    /// Sets for which `is_wanted` is false are unknown as a whole, and so are those of which so
    /// much is unknown that nothing here can be similar to them.
    pub(super) fn number(
        &self,
        others: &Members,
        bounds: Bounds,
        is_wanted: impl Fn(u32) -> bool,
    ) -> SetCollection {
        let unknown = self.unknown();
        let number = |token| self.index.numbers.get(token).copied().unwrap_or(unknown);
        let numbers: Vec<u32> = others.names.iter().map(number).collect();
        let mut numbered = SortedSets::with_capacity(others.sets.len(), others.sets.tokens());
        let mut tokens = Vec::new();
        for run in others.sets.sizes() {
            let required_min = (run.size + 1 - bounds.probe_prefix(run.size)) as usize;
            for set in run.begin..run.end {
                tokens.clear();
                if is_wanted(set) {
                    let known = others.sets.set(set).iter().map(|&token| numbers[token as usize]);
                    tokens.extend(known.filter(|&number| number != unknown));
                }
                if tokens.len() < required_min {
                    tokens.clear();
                }
                tokens.sort_unstable();
                tokens.extend((unknown..).take(run.size as usize - tokens.len()));
                numbered.push(Side::Right, others.sets.id(set), &tokens);
            }
        }
        others.sets.with_numbers(numbered)
    }

    /// Tokens from this number on are unknown.
    pub(super) fn unknown(&self) -> u32 {
        self.members.sets.distinct()
    }
}
