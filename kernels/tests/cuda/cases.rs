//! Chunks of candidate pairs for the overlap kernels.

use trommel_kernels::Isa;
use trommel_kernels::overlap::{self, Chunk, Entry, Pairs, Start};
use trommel_kernels::sets::{SetStore, Sets, sign};

/// Sets, and a chunk of pairs among them.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) sets: SetStore,
    pub(crate) entries: Vec<Entry>,
    pub(crate) candidates: Vec<u32>,
    pub(crate) required: Vec<u32>,
    pub(crate) starts: Vec<Start>,
}

/// A repeatable stream of numbers.
pub(crate) struct Numbers(u64);

impl Numbers {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// A number below `end`.
    pub(crate) fn below(&mut self, end: u32) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        u32::try_from((self.0 >> 33) % u64::from(end.max(1))).unwrap()
    }
}

pub(crate) fn narrow(number: usize) -> u32 {
    u32::try_from(number).unwrap()
}

impl Case {
    /// A set of each size, with tokens dense enough that sets share many.
    pub(crate) fn of_sizes(name: &str, sizes: &[usize], seed: u64) -> Self {
        let mut numbers = Numbers::new(seed);
        let (mut offsets, mut tokens) = (vec![0], Vec::new());
        for size in sizes {
            let mut token = 0;
            for _ in 0..*size {
                token += 1 + numbers.below(3);
                tokens.push(token);
            }
            offsets.push(narrow(tokens.len()));
        }
        Self {
            name: name.to_owned(),
            sets: SetStore::new(offsets, tokens),
            entries: Vec::new(),
            candidates: Vec::new(),
            required: Vec::new(),
            starts: Vec::new(),
        }
    }

    /// An entry of each probe with every set `step` apart, requiring about the true overlap.
    pub(crate) fn with_pairs(mut self, probes: &[usize], step: usize, seed: u64) -> Self {
        let mut numbers = Numbers::new(seed);
        for probe in probes {
            let begin = narrow(self.candidates.len());
            for candidate in (0..self.sets().len()).step_by(step) {
                self.push(*probe, candidate, &mut numbers);
            }
            let end = narrow(self.candidates.len());
            self.entries.push(Entry { probe: narrow(*probe), begin, end });
        }
        self
    }

    fn push(&mut self, probe: usize, candidate: usize, numbers: &mut Numbers) {
        let (left, right) = (self.sets().set(probe), self.sets().set(candidate));
        let truth = narrow(left.iter().filter(|token| right.contains(token)).count());
        let from = numbers.below(2) * numbers.below(left.last().copied().unwrap_or(0) + 2);
        let settled = |set: &[u32]| narrow(set.iter().filter(|token| **token < from).count());
        let both = left.iter().filter(|token| **token < from && right.contains(token));
        let start = Start {
            probe: settled(left),
            candidate: settled(right),
            overlap: narrow(both.count()),
        };
        let required = match numbers.below(6) {
            0 => 0,
            1 => u32::MAX,
            2 => truth + 1,
            3 => truth.saturating_sub(numbers.below(4)),
            _ => truth,
        };
        self.starts.push(start);
        self.candidates.push(narrow(candidate));
        self.required.push(required);
    }

    /// The same pairs, each verified from its first tokens.
    pub(crate) fn without_starts(mut self) -> Self {
        self.starts.clear();
        self.name += ", from the first tokens";
        self
    }

    pub(crate) fn sets(&self) -> Sets<'_> {
        self.sets.as_sets()
    }

    pub(crate) fn chunk(&self) -> Chunk<'_> {
        Chunk {
            entries: &self.entries,
            candidates: &self.candidates,
            required: &self.required,
            starts: &self.starts,
        }
    }

    fn pairs(&self) -> Pairs<'_> {
        Pairs { probes: self.sets(), candidates: self.sets(), chunk: self.chunk() }
    }

    /// The pairs from `begin` to `end`, as a chunk of their own.
    pub(crate) fn part(&self, begin: usize, end: usize) -> Self {
        let (first, last) = (narrow(begin), narrow(end));
        let entries = self.entries.iter().filter(|entry| entry.end > first && entry.begin < last);
        let entries = entries.map(|entry| Entry {
            probe: entry.probe,
            begin: entry.begin.max(first) - first,
            end: entry.end.min(last) - first,
        });
        let starts = if self.starts.is_empty() { &[][..] } else { &self.starts[begin..end] };
        Self {
            name: self.name.clone(),
            sets: self.sets.clone(),
            entries: entries.collect(),
            candidates: self.candidates[begin..end].to_vec(),
            required: self.required[begin..end].to_vec(),
            starts: starts.to_vec(),
        }
    }

    /// The number of pairs that signatures of `words` words let pass.
    pub(crate) fn survivors(&self, words: usize) -> u64 {
        let sets = self.sets();
        let signature = |set: u32| {
            let mut signature = vec![0; words];
            sign(sets.set(set as usize), &mut signature);
            signature
        };
        let mut survivors = 0;
        for entry in &self.entries {
            let probe = signature(entry.probe);
            for index in entry.begin as usize..entry.end as usize {
                let candidate = self.candidates[index];
                let words = probe.iter().zip(signature(candidate));
                let differ: u32 = words.map(|(left, right)| (left ^ right).count_ones()).sum();
                let sizes = [entry.probe, candidate].map(|set| sets.set(set as usize).len() as u64);
                let needed = 2 * u64::from(self.required[index]) + u64::from(differ);
                survivors += u64::from(needed <= sizes[0] + sizes[1]);
            }
        }
        survivors
    }

    /// The reference's answers: overlaps, and the number of pairs that suffice.
    pub(crate) fn expected(&self) -> (Vec<u32>, u64) {
        let mut overlaps = vec![0; self.candidates.len()];
        overlap::verify(Isa::Scalar, self.pairs(), &mut overlaps);
        (overlaps, overlap::count(Isa::Scalar, self.pairs()))
    }
}

/// Sizes around the sizes of lanes, warps and tiles.
const SIZES: [usize; 21] =
    [0, 1, 2, 7, 8, 9, 15, 16, 17, 24, 31, 32, 33, 47, 63, 64, 65, 96, 127, 128, 129];

/// Numbers of pairs around warps and blocks.
const PAIRS: [usize; 12] = [0, 1, 31, 32, 33, 63, 64, 65, 127, 129, 255, 257];

/// All cases.
pub(crate) fn all() -> Vec<Case> {
    let probes: Vec<usize> = (0..SIZES.len()).collect();
    let sizes = Case::of_sizes("all sizes with all", &SIZES, 1).with_pairs(&probes, 1, 2);
    let mut cases = vec![sizes.clone().without_starts()];
    for pairs in PAIRS {
        let mut part = sizes.part(0, pairs);
        part.name = format!("{pairs} pairs");
        cases.push(part);
    }
    cases.push(sizes);
    let skewed = [3, 5000, 1, 2049, 40, 0, 700];
    let skewed = Case::of_sizes("skewed sizes", &skewed, 3).with_pairs(&[1, 0, 3, 6], 1, 4);
    cases.push(skewed.clone().without_starts());
    cases.push(skewed);
    cases.push(Case::of_sizes("an entry a pair", &[20; 40], 5).with_pairs(&[7; 70], 39, 6));
    cases.push(Case::of_sizes("one long entry", &[12; 300], 7).with_pairs(&[299], 1, 8));
    cases.push(Case::of_sizes("entries without pairs", &[], 9));
    let mut gaps = Case::of_sizes("some entries without pairs", &[9; 33], 10);
    for _ in 0..3 {
        let at = narrow(gaps.candidates.len());
        gaps.entries.push(Entry { probe: 1, begin: at, end: at });
        gaps = gaps.with_pairs(&[2, 5], 3, 11);
    }
    cases.push(gaps);
    cases
}
