//! Joins of streams: the operator with a window next to a plain join of the same stream and,
//! where the window holds all sets, next to the join of all sets at once.
//!
//! Sets come in a random order that is the same in each run. The clock of the operator covers all
//! of its work, from the first batch in memory to the last count, on one thread. The plain join
//! is that of textbooks: an index from tokens to sets, the bounds on sizes and positions of
//! PPJoin, and a merge of two sorted lists. It gets sets one by one, with tokens numbered by
//! their frequency in the whole stream, which a stream cannot know and which is not in its clock.
//! The join at once numbers its tokens within its clock.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use rapidhash::RapidHashMap;
use trommel::Device;
use trommel::metrics::Metrics;
use trommel::placement::available_cores;
use trommel::set_similarity_join::{
    JoinAlgorithm, JoinCounters, JoinWindow, SetJoin, Similarity, Threshold,
};
use trommel::{Collect, Discard, Graph, Isa, JoinOutput, Memory, RunOptions, SetSimilarityJoin};

use super::data::{Input, MEMORY_MAX};
use super::median;

/// Join of a stream.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stream {
    /// Sets in the window.
    pub(super) window: usize,
    /// Minimum Jaccard similarity, in percent.
    pub(super) percent: u32,
    /// True to drop sets that have an earlier similar one; false to count pairs.
    pub(super) deduplicates: bool,
}

/// Results and costs of a join.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Found {
    time: Duration,
    /// Number of pairs, or of dropped sets.
    results: u64,
    candidates: u64,
    bytes: u64,
}

/// Sets of an input as a stream.
pub(super) struct Streamed {
    shuffled: Input,
    batches: Vec<RecordBatch>,
    numbered: Vec<Vec<u32>>,
}

impl Streamed {
    pub(super) fn new(input: &Input, batch_sets: usize) -> Self {
        let shuffled = input.shuffled();
        let batches = shuffled.stream(batch_sets);
        let numbered = shuffled.numbered_by_frequency();
        Self { shuffled, batches, numbered }
    }

    /// Runs all joins in turn, checks that their results are equal, and prints a line for each.
    pub(super) fn measure(&self, stream: Stream, isa: Isa, rounds: usize) {
        let sets = self.numbered.len();
        let has_at_once = stream.window >= sets && !stream.deduplicates;
        let mut found: [Vec<Found>; 3] = Default::default();
        for _ in 0..rounds.max(1) {
            found[0].push(stream.by_operator(&self.batches));
            found[1].push(Plain::new(stream, sets).join(&self.numbered));
            if has_at_once {
                found[2].push(stream.at_once(&self.shuffled, isa));
            }
        }
        let answer = found[0][0].results;
        let names = ["operator", "plain", "at once"];
        for (name, found) in names.into_iter().zip(&mut found).filter(|(_, f)| !f.is_empty()) {
            for found in found.iter() {
                assert_eq!(found.results, answer, "{name}, {stream:?}: a wrong count");
            }
            median(found).line(stream, name, sets);
        }
    }
}

impl Found {
    fn line(self, stream: Stream, name: &str, sets: usize) {
        let Self { time, results, candidates, bytes } = self;
        let Stream { window, percent, .. } = stream;
        #[expect(clippy::cast_precision_loss, reason = "a rate is not exact")]
        let rate = sets as f64 / time.as_secs_f64();
        println!(
            "| {window:>8} | {percent:>9} | {name:<8} | {results:>8} | {candidates:>10} | {:>8.1} | {:>7.3} | {rate:>9.0} |",
            bytes as f64 / 1e6,
            time.as_secs_f64(),
        );
    }
}

/// Prints the head of the table.
pub(super) fn head() {
    println!(
        "| window   | threshold | join     | results  | candidates | state MB | seconds | sets/s    |"
    );
    println!(
        "|---------:|----------:|----------|---------:|-----------:|---------:|--------:|----------:|"
    );
}

impl Stream {
    fn threshold(self) -> Threshold {
        Threshold::new(self.percent, 100).expect("a positive threshold")
    }

    /// Minimum overlap of two similar sets of these sizes.
    fn required(self, a: usize, b: usize) -> usize {
        let percent = self.percent as usize;
        (percent * (a + b)).div_ceil(100 + percent)
    }

    /// Runs the operator in a pipeline of one thread.
    fn by_operator(self, batches: &[RecordBatch]) -> Found {
        let mut join = SetSimilarityJoin::new(self.threshold())
            .window(JoinWindow::sets(self.window as u64))
            .device(Device::Cpu)
            .memory_max(MEMORY_MAX);
        join = if self.deduplicates { join.deduplicate() } else { join.output(JoinOutput::Count) };
        let mut graph = Graph::new();
        let sets = graph.add("sets", Memory::new(batches[0].schema(), batches.to_vec()));
        let join = graph.add_after(sets, "join", join);
        let (counted, rows) = Collect::new();
        let sink = if self.deduplicates {
            graph.add_after(join, "rows", Discard::new())
        } else {
            graph.add_after(join, "rows", counted)
        };
        for stage in [sets, join, sink] {
            graph.cores(stage, &available_cores()[..1]);
        }
        let topology = graph.build().expect("the graph is whole");
        let begin = Instant::now();
        let metrics = topology.run(RunOptions::new()).expect("enough memory");
        let time = begin.elapsed();
        let results = match rows.take().first() {
            Some(counted) => counted.column(0).as_primitive::<UInt64Type>().value(0),
            None => counter(&metrics, "duplicates"),
        };
        let (candidates, bytes) =
            (counter(&metrics, "candidates"), counter(&metrics, "state_bytes"));
        Found { time, results, candidates, bytes }
    }

    /// Joins all sets at once, including numbering.
    fn at_once(self, input: &Input, isa: Isa) -> Found {
        let begin = Instant::now();
        let sets = Arc::new(input.collect(false));
        let bytes = 4 * (sets.tokens() + sets.len()) as u64;
        let similarity = Similarity::Jaccard;
        let join = SetJoin::new(&sets, similarity, self.threshold(), JoinAlgorithm::Auto, isa);
        let counters = join.expect("a threshold within reach, and enough memory").count();
        let JoinCounters { results, candidates, .. } = counters;
        Found { time: begin.elapsed(), results, candidates, bytes }
    }
}

fn counter(metrics: &Metrics, name: &str) -> u64 {
    let stage = metrics.stage("join").expect("it has run");
    let mut counters = stage.parts.iter().flat_map(|part| &part.counters);
    counters.find(|(other, _)| *other == name).expect("the operator counts it").1
}

/// Posting: a set with a token in its prefix.
struct Posting {
    /// Position of the set in the stream.
    set: usize,
    position: u32,
}

/// Plain join.
struct Plain {
    stream: Stream,
    postings: RapidHashMap<u32, VecDeque<Posting>>,
    /// Latest probe that met each set, by position in the stream.
    met: Vec<usize>,
}

impl Plain {
    fn new(stream: Stream, sets: usize) -> Self {
        Self { stream, postings: RapidHashMap::default(), met: vec![usize::MAX; sets] }
    }

    /// Joins each set to those before it in the window.
    fn join(mut self, sets: &[Vec<u32>]) -> Found {
        let begin = Instant::now();
        let (mut results, mut candidates) = (0, 0);
        for (newer, set) in sets.iter().enumerate() {
            let size_min = (self.stream.percent as usize * set.len()).div_ceil(100);
            // An empty set is similar to none.
            let prefix = (set.len() + 1).saturating_sub(self.stream.required(set.len(), size_min));
            'probe: for (at, token) in set[..prefix].iter().enumerate() {
                let Some(list) = self.postings.get_mut(token) else { continue };
                while list.front().is_some_and(|old| newer - old.set >= self.stream.window) {
                    list.pop_front();
                }
                for older in &*list {
                    let (other, other_at) = (&sets[older.set], older.position as usize);
                    let is_size = other.len() >= size_min
                        && 100 * set.len() >= self.stream.percent as usize * other.len();
                    if !is_size || self.met[older.set] == newer {
                        continue;
                    }
                    let required = self.stream.required(set.len(), other.len());
                    if required > (set.len() - at).min(other.len() - other_at) {
                        continue;
                    }
                    self.met[older.set] = newer;
                    candidates += 1;
                    if is_similar(&set[at..], &other[other_at..], required) {
                        results += 1;
                        if self.stream.deduplicates {
                            break 'probe;
                        }
                    }
                }
            }
            for (position, &token) in (0..).zip(&set[..prefix]) {
                self.postings.entry(token).or_default().push_back(Posting { set: newer, position });
            }
        }
        let time = begin.elapsed();
        Found { time, results, candidates, bytes: self.bytes(sets) }
    }

    /// Bytes of the index and of the sets in the window.
    fn bytes(&self, sets: &[Vec<u32>]) -> u64 {
        let lists = self.postings.values();
        let postings: usize = lists.map(|list| list.capacity() * size_of::<Posting>()).sum();
        let entry = size_of::<(u32, VecDeque<Posting>)>() + 1;
        let window = sets.iter().rev().take(self.stream.window);
        let tokens: usize = window.map(|set| size_of_val(set) + size_of_val(&set[..])).sum();
        (postings + self.postings.capacity() * entry + tokens) as u64
    }
}

/// True if two ascending lists have at least `required` numbers in common.
fn is_similar(mut left: &[u32], mut right: &[u32], required: usize) -> bool {
    let mut common = 0;
    while common < required {
        let (Some(&a), Some(&b)) = (left.first(), right.first()) else { return false };
        if common + left.len().min(right.len()) < required {
            return false;
        }
        common += usize::from(a == b);
        left = &left[usize::from(a <= b)..];
        right = &right[usize::from(b <= a)..];
    }
    true
}
