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
use rapidhash::RapidHashMap;
use trommel::placement::available_cores;
use trommel::set_similarity_join::{
    JoinAlgorithm, JoinCounters, JoinWindow, SetJoin, Similarity, Threshold,
};
use trommel::{Collect, Device, Discard, Graph, JoinOutput, SetSimilarityJoin};

use super::data::{BATCH_SETS, Input, MEMORY_MAX};
use crate::runner::pipelines::{count, counter, memory, run};
use crate::runner::report::Table;
use crate::runner::turns::{Run, Turns, timed};
use crate::runner::{Runs, isa};

/// Join of a stream.
#[derive(Debug, Clone, Copy)]
struct Stream {
    /// Sets in the window.
    window: usize,
    /// Minimum Jaccard similarity, in percent.
    percent: u32,
    /// True to drop sets that have an earlier similar one; false to count pairs.
    deduplicates: bool,
}

/// Time; number of pairs, or of dropped sets, as the answer and to be shown; candidates, and bytes
/// of the state.
type Found = Run<u64, (u64, u64, u64)>;

/// Measures an input as a stream, in each window at each threshold.
pub(super) fn measure(
    input: &Input,
    windows: &[usize],
    thresholds: &[u32],
    deduplicates: bool,
    runs: Runs,
) {
    let shuffled = input.shuffled();
    let (batches, numbered) = (shuffled.stream(BATCH_SETS), shuffled.numbered_by_frequency());
    let sets = numbered.len();
    println!("{}, {}, batches of {BATCH_SETS} sets\n", input.name, isa());
    let mut table = Table::new(
        "window:   | threshold: | join     | results:  | candidates: | state MB: | seconds: | sets/s:",
    );
    for &window in windows {
        for &percent in thresholds {
            let stream = Stream { window, percent, deduplicates };
            let mut turns = Turns::new(runs).cold();
            turns.add("operator", || stream.by_operator(&batches));
            turns.add("plain", || Plain::new(stream, sets).join(&numbered));
            if window >= sets && !deduplicates {
                turns.add("at once", || stream.at_once(&shuffled));
            }
            for engine in turns.run() {
                let (results, candidates, bytes) = *engine.rest();
                let (seconds, megabytes) = (engine.seconds(), bytes as f64 / 1e6);
                table.row(format!(
                    "{window} | {percent} | {} | {results} | {candidates} | {megabytes:.1} | \
                     {seconds:.3} | {:.0}",
                    engine.name,
                    sets as f64 / seconds
                ));
            }
        }
    }
}

fn found(time: Duration, results: u64, (candidates, bytes): (u64, u64)) -> Found {
    Run { time, answer: results, rest: (results, candidates, bytes) }
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
        let join = SetSimilarityJoin::new(self.threshold())
            .window(JoinWindow::sets(self.window as u64))
            .device(Device::Cpu)
            .memory_max(MEMORY_MAX);
        let mut graph = Graph::new();
        let sets = graph.add("sets", memory(batches.to_vec()));
        let (counted, rows) = Collect::new();
        let (join, sink) = if self.deduplicates {
            let join = graph.add_after(sets, "join", join.deduplicate());
            (join, graph.add_after(join, "rows", Discard::new()))
        } else {
            let join = graph.add_after(sets, "join", join.output(JoinOutput::Count));
            (join, graph.add_after(join, "rows", counted))
        };
        for stage in [sets, join, sink] {
            graph.cores(stage, &available_cores()[..1]);
        }
        let (time, metrics) = run(graph);
        let counter = |name| counter(&metrics, "join", name);
        let results = if self.deduplicates { counter("duplicates") } else { count(&rows) };
        found(time, results, (counter("candidates"), counter("state_bytes")))
    }

    /// Joins all sets at once, including numbering.
    fn at_once(self, input: &Input) -> Found {
        let (time, (counters, bytes)) = timed(|| {
            let sets = Arc::new(input.collect(false));
            let bytes = 4 * (sets.tokens() + sets.len()) as u64;
            let (similarity, auto) = (Similarity::Jaccard, JoinAlgorithm::Auto);
            let join = SetJoin::new(&sets, similarity, self.threshold(), auto, isa());
            (join.expect("a threshold within reach, and enough memory").count(), bytes)
        });
        let JoinCounters { results, candidates, .. } = counters;
        found(time, results, (candidates, bytes))
    }
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
        found(begin.elapsed(), results, (candidates, self.bytes(sets)))
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
