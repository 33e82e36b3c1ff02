//! Answers of chunks: pairs, their number, partners, or rows with an earlier partner.

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use trommel_kernels::vectors::{FoundPairs, Pair, PairCount, Partners, Side, Sink};

use crate::epsilon_join::parameters::options::EpsilonOutput;

/// Partners of all vectors; each kernel has counts of its own.
///
/// A kernel locks its counts while it searches a part of a chunk; no other thread needs these
/// counts before the join has ended.
#[derive(Debug, Clone)]
pub(crate) struct PartnerCounts {
    kernels: Arc<[Mutex<Option<Partners>>]>,
    /// Counts without partners.
    empty: Partners,
}

impl PartnerCounts {
    /// Counts of `kernels` kernels. A kernel allocates its counts when it first counts.
    pub(crate) fn new(kernels: usize, empty: Partners) -> Self {
        Self { kernels: (0..kernels).map(|_| Mutex::new(None)).collect(), empty }
    }

    fn slot(&self, kernel: usize) -> MutexGuard<'_, Option<Partners>> {
        self.kernels[kernel].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets `count` add to the counts of a kernel.
    pub(crate) fn add<T>(&self, kernel: usize, count: impl FnOnce(&mut Partners) -> T) -> T {
        count(self.slot(kernel).get_or_insert_with(|| self.empty.clone()))
    }

    /// The counts of all kernels together.
    pub(crate) fn total(&self) -> Partners {
        let mut total = self.empty.clone();
        for kernel in 0..self.kernels.len() {
            if let Some(partners) = &*self.slot(kernel) {
                total.merge(partners);
            }
        }
        total
    }
}

/// Answer of a chunk.
#[derive(Debug)]
pub(crate) enum Answer {
    Pairs(FoundPairs),
    Count(PairCount),
    /// Partners are counted in [`PartnerCounts`], not in the chunk.
    Partners,
    Later(LaterRows),
}

impl Answer {
    /// An empty answer for `output`, of at most `pairs` pairs.
    pub(crate) fn new(output: EpsilonOutput, pairs: usize) -> Self {
        match output {
            EpsilonOutput::Pairs => Self::Pairs(FoundPairs::new(pairs)),
            EpsilonOutput::Count => Self::Count(PairCount::default()),
            EpsilonOutput::Partners => Self::Partners,
            EpsilonOutput::First => Self::Later(LaterRows::default()),
        }
    }

    pub(crate) fn clear(&mut self) {
        match self {
            Self::Pairs(found) => found.clear(),
            Self::Count(count) => count.0 = 0,
            Self::Partners => {}
            Self::Later(rows) => rows.clear(),
        }
    }
}

/// The right rows of pairs, as bits: each such row has an earlier partner.
#[derive(Debug, Default)]
pub(crate) struct LaterRows(Vec<u64>);

impl LaterRows {
    /// Whether `row` has an earlier partner.
    pub(crate) fn contains(&self, row: usize) -> bool {
        self.0.get(row / 64).is_some_and(|word| word >> (row % 64) & 1 > 0)
    }

    /// Adds all rows of `other`.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.0.resize(self.0.len().max(other.0.len()), 0);
        self.0.iter_mut().zip(&other.0).for_each(|(word, more)| *word |= more);
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}

impl Sink for LaterRows {
    const TAKES_ALL: bool = false;
    const STOPS: bool = true;

    #[inline(always)]
    fn has_enough(&self, row: u32) -> bool {
        self.contains(row as usize)
    }

    #[inline(always)]
    fn take(&mut self, pair: Pair) {
        let word = pair.right as usize / 64;
        if self.0.len() <= word {
            self.0.resize(word + 1, 0);
        }
        self.0[word] |= 1 << (pair.right % 64);
    }

    fn take_all(&mut self, _: u32, _: Side, _: Range<u32>, _: u32) {
        unreachable!("pairs are taken one by one");
    }
}
