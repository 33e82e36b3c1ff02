//! Queries all of whose lists are bitmaps: the words of all bitmaps at once.

use std::ops::Range;

use super::line_sink::{LineCount, LineIds, LineSink};
use crate::Isa;
use crate::inverted::document_set::DocumentSet;
use crate::inverted::levels::{Blocks, LINE, Lines};
use crate::inverted::plan::Steps;
use crate::inverted::segment::{List, View};
use crate::simd::{Popcount, RunOn, dispatch};

/// Lines that stay in registers while the bitmaps of a query are combined.
const LINES: usize = 4;

/// Words of these lines.
const STRIP: usize = LINES * LINE;

/// Bitmaps that are looked up once in a query; further bitmaps are looked up in each strip.
const HELD: usize = 8;

/// Strips of a part: all queries of a batch are counted in a part before the next part. A part is 8
/// KiB of each bitmap, so the parts of a hundred bitmaps stay in the second-level cache.
const BATCH_STRIPS: usize = 32;

/// The number of documents in all lists.
pub(super) fn count_common_bits(isa: Isa, steps: Steps<'_>) -> u32 {
    dispatch::<Popcount, _>(isa, CountCommon(steps))
}

/// Appends the documents in all lists.
#[inline(always)]
pub(super) fn find_common_bits<L: Blocks>(level: L, steps: Steps<'_>, found: &mut Vec<u32>) {
    let bitmaps = Bitmaps::new(steps);
    let mut ids = LineIds::new(found);
    bitmaps.give_lines(level, 0..bitmaps.strips(), &mut ids);
    ids.append();
}

struct CountCommon<'a>(Steps<'a>);

impl<L: Lines> RunOn<L, u32> for CountCommon<'_> {
    #[inline(always)]
    fn run_on(self, level: L) -> u32 {
        let bitmaps = Bitmaps::new(self.0);
        bitmaps.count(level, 0..bitmaps.strips())
    }
}

/// Queries of a batch all of whose lists are bitmaps. These queries are counted together: the first
/// documents of all queries, then the next documents, so that a bitmap is in the cache for all
/// queries of its list.
#[derive(Debug, Default)]
pub(in crate::inverted) struct DenseQueries {
    queries: Vec<u32>,
    /// Where the keys of each query end.
    ends: Vec<usize>,
    keys: Vec<u64>,
}

impl DenseQueries {
    /// Removes all queries.
    pub(in crate::inverted) fn clear(&mut self) {
        self.queries.clear();
        self.ends.clear();
        self.keys.clear();
    }

    /// Adds a query of at least two lists.
    #[inline(always)]
    pub(in crate::inverted) fn push(&mut self, query: u32, keys: &[u64]) {
        self.queries.push(query);
        self.keys.extend_from_slice(keys);
        self.ends.push(self.keys.len());
    }

    /// Adds the documents of each query to its place in `counts`.
    pub(in crate::inverted) fn count(
        &self,
        isa: Isa,
        view: View<'_>,
        within: Option<DocumentSet<'_>>,
        counts: &mut [u32],
    ) {
        if !self.queries.is_empty() {
            dispatch::<Popcount, _>(isa, CountDense { queries: self, view, within, counts });
        }
    }
}

struct CountDense<'a> {
    queries: &'a DenseQueries,
    view: View<'a>,
    within: Option<DocumentSet<'a>>,
    counts: &'a mut [u32],
}

impl<L: Lines> RunOn<L> for CountDense<'_> {
    #[inline(always)]
    fn run_on(self, level: L) {
        let Self { queries: DenseQueries { queries, ends, keys }, view, within, counts } = self;
        let strips = (view.documents().div_ceil(32) as usize).div_ceil(STRIP);
        for first in (0..strips).step_by(BATCH_STRIPS) {
            let part = first..strips.min(first + BATCH_STRIPS);
            let mut begin = 0;
            for (&query, &end) in queries.iter().zip(ends) {
                let bitmaps = Bitmaps::new(Steps { view, within, keys: &keys[begin..end] });
                counts[query as usize] += bitmaps.count(level, part.clone());
                begin = end;
            }
        }
    }
}

/// Words that the bitmaps of a query have in common, strip by strip.
struct Bitmaps<'a> {
    steps: Steps<'a>,
    /// The first bitmaps.
    held: [&'a [u32]; HELD],
    held_len: usize,
    /// The keys of the other bitmaps.
    others: &'a [u64],
}

impl<'a> Bitmaps<'a> {
    #[inline(always)]
    fn new(steps: Steps<'a>) -> Self {
        let held_len = steps.keys.len().min(HELD);
        let (keys, others) = steps.keys.split_at(held_len);
        let mut held = [&[][..]; HELD];
        for (words, &key) in held.iter_mut().zip(keys) {
            *words = bits(steps.list(key));
        }
        Self { steps, held, held_len, others }
    }

    /// The number of strips.
    #[inline(always)]
    fn strips(&self) -> usize {
        self.held[0].len().div_ceil(STRIP)
    }

    /// The number of common documents in a range of strips.
    #[inline(always)]
    fn count<L: Lines>(&self, level: L, strips: Range<usize>) -> u32 {
        let mut counted = LineCount::new(level);
        self.give_lines(level, strips, &mut counted);
        counted.total(level)
    }

    /// Gives the common lines of a range of strips in turn. The last strip of a bitmap ends with
    /// zeros.
    #[inline(always)]
    fn give_lines<L: Lines>(&self, level: L, part: Range<usize>, sink: &mut impl LineSink<L>) {
        let [first, held @ ..] = &self.held;
        let held = &held[..self.held_len.saturating_sub(1)];
        let (strips, rest) = first.as_chunks::<STRIP>();
        let whole = part.start..part.end.min(strips.len());
        for (at, own) in whole.clone().zip(&strips[whole]) {
            let mut strip = load(level, own);
            for words in held {
                strip = and(level, strip, words, at * STRIP);
            }
            for &key in self.others {
                strip = and(level, strip, bits(self.steps.list(key)), at * STRIP);
            }
            give(level, at, strip, sink);
        }
        if part.end > strips.len() && !rest.is_empty() {
            let mut last = [0; STRIP];
            last[..rest.len()].copy_from_slice(rest);
            let begin = strips.len() * STRIP;
            let others = self.others.iter().map(|&key| bits(self.steps.list(key)));
            for words in held.iter().copied().chain(others) {
                let words = words.get(begin..).unwrap_or(&[]);
                last.iter_mut().zip(words).for_each(|(word, other)| *word &= other);
            }
            give(level, strips.len(), load(level, &last), sink);
        }
    }
}

/// Gives the lines of a strip.
#[inline(always)]
fn give<L: Lines>(
    level: L,
    strip: usize,
    [first, second, third, fourth]: [L::Line; LINES],
    sink: &mut impl LineSink<L>,
) {
    let number = strip * LINES;
    sink.take(level, number, first);
    sink.take(level, number + 1, second);
    sink.take(level, number + 2, third);
    sink.take(level, number + 3, fourth);
}

/// The lines of a strip.
#[inline(always)]
fn load<L: Lines>(level: L, words: &[u32; STRIP]) -> [L::Line; LINES] {
    let (lines, _) = words.as_chunks();
    [level.line(&lines[0]), level.line(&lines[1]), level.line(&lines[2]), level.line(&lines[3])]
}

/// The bits of a strip that are in the words from `begin` on.
#[inline(always)]
fn and<L: Lines>(
    level: L,
    [first, second, third, fourth]: [L::Line; LINES],
    words: &[u32],
    begin: usize,
) -> [L::Line; LINES] {
    let words = words.get(begin..).and_then(<[u32]>::first_chunk);
    let others = load(level, words.expect("bitmaps have equal lengths"));
    [
        level.and(first, others[0]),
        level.and(second, others[1]),
        level.and(third, others[2]),
        level.and(fourth, others[3]),
    ]
}

/// The words of a bitmap.
#[inline(always)]
fn bits(list: List<'_>) -> &[u32] {
    match list {
        List::Bits(words) => words,
        List::Plain(_) | List::Buckets(_) => unreachable!("such lists come first"),
    }
}
