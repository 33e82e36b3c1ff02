//! Queries all of whose lists are bitmaps: the words of all of them at once.

use super::blocks::Blocks;
use super::lines::{LINE, Lines};
use super::list::List;
use super::plan::Steps;
use crate::Isa;
use crate::simd::{Call, Popcount, RunOn, dispatch};

/// Lines that stay in registers while the bitmaps of a query are combined.
const LINES: usize = 4;

/// Words of these lines.
const STRIP: usize = LINES * LINE;

/// Bitmaps that are looked up once a query; further ones are looked up once a strip.
const HELD: usize = 8;

/// The number of documents in all lists.
pub(super) fn count_common_bits(isa: Isa, steps: Steps<'_>) -> u32 {
    dispatch::<Popcount, _>(isa, CountCommon(steps))
}

/// Appends the documents in all lists.
#[inline(always)]
pub(super) fn find_common_bits<L: Blocks>(level: L, steps: Steps<'_>, found: &mut Vec<u32>) {
    // On the stack, so that nothing is cleared in `found` that is then overwritten.
    let mut ids = [0; STRIP * 32 + 32];
    let mut base = 0_u32;
    Bitmaps::new(steps).for_each_strip(level, |strip| {
        let mut len = 0;
        for line in strip {
            for word in level.words(line) {
                let free = ids[len..].first_chunk_mut().expect("there is room for a word");
                level.ids_of(base, word, free);
                len += word.count_ones() as usize;
                base = base.wrapping_add(32);
            }
        }
        found.extend_from_slice(&ids[..len]);
    });
}

struct CountCommon<'a>(Steps<'a>);

impl Call for CountCommon<'_> {
    type Output = u32;
}

impl<L: Lines> RunOn<L> for CountCommon<'_> {
    #[inline(always)]
    fn run_on(self, level: L) -> u32 {
        let mut sums = level.line(&[0; LINE]);
        Bitmaps::new(self.0).for_each_strip(level, |[first, second, third, fourth]| {
            sums = level.add_bits(sums, first);
            sums = level.add_bits(sums, second);
            sums = level.add_bits(sums, third);
            sums = level.add_bits(sums, fourth);
        });
        level.total(sums)
    }
}

/// Words that the bitmaps of a query have in common, strip by strip.
struct Bitmaps<'a> {
    steps: Steps<'a>,
    /// The first bitmaps.
    held: [&'a [u32]; HELD],
    held_len: usize,
    /// The keys of the others.
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

    /// Gives the common words from the first to the last strip, of which the last one ends with
    /// zeros.
    #[inline(always)]
    fn for_each_strip<L: Lines>(&self, level: L, mut take: impl FnMut([L::Line; LINES])) {
        let [first, held @ ..] = &self.held;
        let held = &held[..self.held_len.saturating_sub(1)];
        let (strips, rest) = first.as_chunks::<STRIP>();
        for (at, own) in strips.iter().enumerate() {
            let mut strip = load(level, own);
            for words in held {
                strip = and(level, strip, words, at * STRIP);
            }
            for &key in self.others {
                strip = and(level, strip, bits(self.steps.list(key)), at * STRIP);
            }
            take(strip);
        }
        if !rest.is_empty() {
            let mut last = [0; STRIP];
            last[..rest.len()].copy_from_slice(rest);
            let begin = strips.len() * STRIP;
            let others = self.others.iter().map(|&key| bits(self.steps.list(key)));
            for words in held.iter().copied().chain(others) {
                let words = words.get(begin..).unwrap_or(&[]);
                last.iter_mut().zip(words).for_each(|(word, other)| *word &= other);
            }
            take(load(level, &last));
        }
    }
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
