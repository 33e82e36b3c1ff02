//! Queries all of whose lists are bitmaps: the words of all of them at once.

use super::list::{List, decode_bits};
use super::query::Steps;
use crate::Isa;
use crate::simd::{Call, Popcount, RunOn, dispatch};

/// Words that stay in registers while the bitmaps of a query are combined: a kilobyte.
const STRIP: usize = 64;

/// The number of documents in all lists.
pub(super) fn count_common_bits(isa: Isa, steps: Steps<'_>) -> u32 {
    dispatch::<Popcount, _>(isa, CountCommon(steps))
}

/// Appends the documents in all lists.
pub(super) fn find_common_bits(isa: Isa, steps: Steps<'_>, found: &mut Vec<u32>) {
    dispatch::<Popcount, _>(isa, FindCommon(steps, found));
}

struct CountCommon<'a>(Steps<'a>);

impl Call for CountCommon<'_> {
    type Output = u32;
}

impl<L> RunOn<L> for CountCommon<'_> {
    #[inline(always)]
    fn run_on(self, _: L) -> u32 {
        let mut count = 0;
        each_strip(self.0, |_, strip| {
            count += strip.iter().map(|word| word.count_ones()).sum::<u32>();
        });
        count
    }
}

struct FindCommon<'a>(Steps<'a>, &'a mut Vec<u32>);

impl Call for FindCommon<'_> {
    type Output = ();
}

impl<L> RunOn<L> for FindCommon<'_> {
    #[inline(always)]
    fn run_on(self, _: L) {
        let Self(steps, found) = self;
        each_strip(steps, |base, strip| {
            for (base, &word) in (base..=u32::MAX).step_by(32).zip(strip) {
                decode_bits(base, word, found);
            }
        });
    }
}

/// Calls `visit` with the first id and the common words of each strip.
///
/// The loops have fixed lengths, so that the compiler makes registers of the level of them.
#[inline(always)]
fn each_strip(steps: Steps<'_>, mut visit: impl FnMut(u32, &[u32; STRIP])) {
    let Some((first, others)) = steps.split() else { return };
    let words = bits(first).len();
    for begin in (0..words).step_by(STRIP) {
        let mut strip = [0; STRIP];
        let own = &bits(first)[begin..words.min(begin + STRIP)];
        strip[..own.len()].copy_from_slice(own);
        for &key in others {
            and(&mut strip, &bits(steps.list(key))[begin..]);
        }
        let base = u32::try_from(begin * 32).expect("a bit of a document");
        visit(base, &strip);
    }
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
