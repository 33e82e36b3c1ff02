//! Queries all of whose lists are bitmaps: the words of all of them at once.

use super::blocks::Blocks;
use super::list::List;
use super::plan::Steps;
use crate::Isa;
use crate::simd::{Call, Popcount, RunOn, dispatch};

/// Words that stay in registers while the bitmaps of a query are combined: a kilobyte.
const STRIP: usize = 64;

/// The number of documents in all lists.
pub(super) fn count_common_bits(isa: Isa, steps: Steps<'_>) -> u32 {
    dispatch::<Popcount, _>(isa, CountCommon(steps))
}

/// Appends the documents in all lists.
#[inline(always)]
pub(super) fn find_common_bits<L: Blocks>(level: L, steps: Steps<'_>, found: &mut Vec<u32>) {
    // On the stack, so that nothing is cleared in `found` that is then overwritten.
    let mut ids = [0; STRIP * 32 + 32];
    let words = words_of(steps);
    let mut begin = 0;
    while begin < words {
        let strip = strip_at(steps, begin);
        let (mut len, mut base) = (0, u32::try_from(begin * 32).expect("a bit of a document"));
        for word in strip {
            let free = ids[len..].first_chunk_mut().expect("there is room for a word");
            level.ids_of(base, word, free);
            len += word.count_ones() as usize;
            base = base.wrapping_add(32);
        }
        found.extend_from_slice(&ids[..len]);
        begin += STRIP;
    }
}

struct CountCommon<'a>(Steps<'a>);

impl Call for CountCommon<'_> {
    type Output = u32;
}

impl<L> RunOn<L> for CountCommon<'_> {
    #[inline(always)]
    fn run_on(self, _: L) -> u32 {
        let words = words_of(self.0);
        let (mut count, mut begin) = (0, 0);
        while begin < words {
            count += strip_at(self.0, begin).iter().map(|word| word.count_ones()).sum::<u32>();
            begin += STRIP;
        }
        count
    }
}

/// The words of each bitmap.
#[inline(always)]
fn words_of(steps: Steps<'_>) -> usize {
    steps.split().map_or(0, |(first, _)| bits(first).len())
}

/// The common words from `begin` on; zeros past the end.
///
/// The loops have fixed lengths, so that the compiler makes registers of the level of them.
#[inline(always)]
fn strip_at(steps: Steps<'_>, begin: usize) -> [u32; STRIP] {
    let mut strip = [0; STRIP];
    if let Some((first, others)) = steps.split() {
        let own = &bits(first)[begin..];
        let own = &own[..own.len().min(STRIP)];
        strip[..own.len()].copy_from_slice(own);
        for &key in others {
            and(&mut strip, &bits(steps.list(key))[begin..]);
        }
    }
    strip
}

/// The words of a bitmap.
#[inline(always)]
fn bits(list: List<'_>) -> &[u32] {
    match list {
        List::Bits(words) => words,
        List::Plain(_) | List::Buckets(_) => unreachable!("such lists come first"),
    }
}

#[inline(always)]
fn and(strip: &mut [u32; STRIP], words: &[u32]) {
    match words.first_chunk::<STRIP>() {
        Some(words) => strip.iter_mut().zip(words).for_each(|(word, other)| *word &= other),
        None => strip.iter_mut().zip(words).for_each(|(word, other)| *word &= other),
    }
}
