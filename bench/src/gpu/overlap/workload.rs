//! Workload of sets in families, and candidate pairs as a filter would find them: some within a
//! family, which are similar, and some between families, which are not.

use std::fmt;
use std::time::Duration;

use trommel_kernels::Isa;
use trommel_kernels::overlap::{self, Chunk, Entry, Pairs};
use trommel_kernels::sets::SetStore;

use crate::runner::numbers::Numbers;

/// Sets of a family.
const FAMILY: usize = 8;
/// Required Jaccard similarity of 4/5: an overlap of 4/9 of both sizes.
const REQUIRED: [usize; 2] = [4, 9];

/// Sets and pairs with their correct answers.
pub(crate) struct Workload {
    sets: SetStore,
    entries: Vec<Entry>,
    candidates: Vec<u32>,
    required: Vec<u32>,
    overlaps: Vec<u32>,
    count: u64,
    bytes: usize,
}

/// A set of the tokens.
fn sorted(mut tokens: Vec<usize>) -> Vec<usize> {
    tokens.sort_unstable();
    tokens.dedup();
    tokens
}

fn narrow(number: usize) -> u32 {
    u32::try_from(number).expect("workloads are far below 2^32")
}

/// Families of sets that share most tokens of a base set; some tokens of each set are changed.
fn family(size: usize, numbers: &mut Numbers, mut take: impl FnMut(Vec<usize>)) {
    let alphabet = (40 * size).max(1);
    let len = size / 2 + numbers.below(size + 1);
    let base = sorted((0..len).map(|_| numbers.below(alphabet)).collect());
    for _ in 0..FAMILY {
        let changed = numbers.below(30);
        let tokens = base.iter().map(|token| {
            let is_changed = numbers.below(100) < changed;
            if is_changed { numbers.below(alphabet) } else { *token }
        });
        take(sorted(tokens.collect()));
    }
}

impl Workload {
    /// A workload of about `pairs` pairs of sets of mean size `size`, with `candidates`
    /// candidates per probe.
    pub(crate) fn new(size: usize, pairs: usize, candidates: usize) -> Self {
        let mut numbers = Numbers::default();
        let sets = (pairs / candidates.max(1)).max(FAMILY).next_multiple_of(FAMILY);
        let (mut offsets, mut tokens) = (vec![0], Vec::new());
        for _ in 0..sets / FAMILY {
            family(size, &mut numbers, |set| {
                tokens.extend(set.into_iter().map(narrow));
                offsets.push(narrow(tokens.len()));
            });
        }
        let mut workload = Self {
            sets: SetStore::new(offsets, tokens),
            entries: Vec::new(),
            candidates: Vec::new(),
            required: Vec::new(),
            overlaps: Vec::new(),
            count: 0,
            bytes: 0,
        };
        for probe in 0..sets {
            workload.entry(probe, candidates, sets, &mut numbers);
        }
        workload.overlaps = vec![0; workload.candidates.len()];
        let mut overlaps = std::mem::take(&mut workload.overlaps);
        overlap::verify(Isa::Scalar, workload.pairs(), &mut overlaps);
        workload.overlaps = overlaps;
        workload.count = overlap::count(Isa::Scalar, workload.pairs());
        workload
    }

    /// Half of the candidates are of the family of the probe, as far as it goes.
    fn entry(&mut self, probe: usize, candidates: usize, sets: usize, numbers: &mut Numbers) {
        let begin = narrow(self.candidates.len());
        for nth in 0..candidates {
            let is_kin = nth % 2 == 0;
            let family = probe / FAMILY * FAMILY;
            let candidate =
                if is_kin { family + numbers.below(FAMILY) } else { numbers.below(sets) };
            let sizes = self.size_of(probe) + self.size_of(candidate);
            self.candidates.push(narrow(candidate));
            self.required.push(narrow((sizes * REQUIRED[0]).div_ceil(REQUIRED[1])));
            self.bytes += sizes * 4;
        }
        let end = narrow(self.candidates.len());
        self.entries.push(Entry { probe: narrow(probe), begin, end });
    }

    fn size_of(&self, set: usize) -> usize {
        self.sets.as_sets().set(set).len()
    }

    pub(crate) fn sets(&self) -> &SetStore {
        &self.sets
    }

    pub(crate) fn chunk(&self) -> Chunk<'_> {
        Chunk {
            entries: &self.entries,
            candidates: &self.candidates,
            required: &self.required,
            starts: &[],
        }
    }

    pub(crate) fn pairs(&self) -> Pairs<'_> {
        let sets = self.sets.as_sets();
        Pairs { probes: sets, candidates: sets, chunk: self.chunk() }
    }

    /// Number of pairs.
    pub(crate) fn len(&self) -> usize {
        self.candidates.len()
    }

    /// Entries of the pairs from `begin` to `end`, numbered from there.
    pub(crate) fn entries(&self, begin: usize, end: usize) -> Vec<Entry> {
        let (begin, end) = (narrow(begin), narrow(end));
        let inside = self.entries.iter().filter(|entry| entry.end > begin && entry.begin < end);
        inside
            .map(|entry| Entry {
                probe: entry.probe,
                begin: entry.begin.max(begin) - begin,
                end: entry.end.min(end) - begin,
            })
            .collect()
    }

    pub(crate) fn check(&self, overlaps: &[u32]) {
        assert!(self.overlaps == overlaps, "a wrong overlap");
    }

    /// Checks the overlaps of the pairs from `begin` on.
    pub(crate) fn check_part(&self, begin: usize, overlaps: &[u32]) {
        assert!(self.overlaps[begin..begin + overlaps.len()] == *overlaps, "a wrong overlap");
    }

    pub(crate) fn check_count(&self, count: u64) {
        assert_eq!(count, self.count, "a wrong count");
    }

    /// Millions of pairs per second.
    pub(crate) fn rate(&self, time: Duration) -> f64 {
        self.len() as f64 / time.as_secs_f64() / 1e6
    }

    /// Gigabytes per second if each pair reads both of its sets completely.
    pub(crate) fn gigabytes(&self, time: Duration) -> f64 {
        self.bytes as f64 / time.as_secs_f64() / 1e9
    }
}

/// A chunk of the pairs.
pub(crate) struct Part {
    pub(crate) begin: usize,
    pub(crate) end: usize,
    pub(crate) entries: Vec<Entry>,
}

/// Divides the pairs into chunks of a size.
pub(crate) fn parts(workload: &Workload, size: usize) -> Vec<Part> {
    let begins = (0..workload.len()).step_by(size);
    begins
        .map(|begin| {
            let end = (begin + size).min(workload.len());
            Part { begin, end, entries: workload.entries(begin, end) }
        })
        .collect()
}

impl fmt::Display for Workload {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let suffice = 100.0 * self.count as f64 / self.len() as f64;
        let sets = self.sets.as_sets();
        write!(
            formatter,
            "{} pairs of {} sets, mean size {}, {suffice:.0}% suffice (Jaccard 4/5)",
            self.len(),
            sets.len(),
            sets.tokens().len() / sets.len(),
        )
    }
}
