//! The steps of a query on the levels with registers: the ids of one list are searched in another
//! list, and the common ids in the next list.

use super::Answer;
use super::common_groups::{Grouped, count_common_groups, find_common_groups};
use super::dense::{count_common_bits, find_common_bits};
use super::merge_lists::merge;
use super::probe::probe;
use super::sink::{Counted, Kept, Sink};
use crate::inverted::levels::Blocks;
use crate::inverted::plan::{Steps, len_of};
use crate::inverted::scratch::Buffers;
use crate::inverted::segment::{Buckets, List};

/// Length of a list, as a multiple of the number of ids, up to which the list is merged rather than
/// probed. A merge decodes a list in halves.
pub(in crate::inverted) const MERGE_RATIO: usize = 4;

impl<L: Blocks> Answer for L {
    #[inline(always)]
    fn is_dense(self, steps: Steps<'_>) -> bool {
        // The first list is a bitmap only if all lists are bitmaps.
        let is_bits = |(first, others): (List<'_>, &[u64])| {
            matches!(first, List::Bits(_)) && !others.is_empty()
        };
        steps.split().is_some_and(is_bits) && Grouped::new(steps).is_none()
    }

    #[inline(always)]
    fn count(self, steps: Steps<'_>, buffers: &mut Buffers) -> u32 {
        let Some((first, others)) = steps.split() else { return 0 };
        let Some((&last, middle)) = others.split_last() else { return len_of(steps.keys[0]) };
        if let Some(groups) = Grouped::new(steps) {
            return count_common_groups(L::ISA, &groups);
        }
        if matches!(first, List::Bits(_)) {
            return count_common_bits(L::ISA, steps);
        }
        let source = Source::new(self, first, &mut buffers.ids);
        let source = filter(self, Steps { keys: middle, ..steps }, source, buffers);
        let Buffers { ids, list, .. } = buffers;
        let mut counted = Counted::default();
        step(self, source.ids(ids), steps.list(last), len_of(last), list, &mut counted);
        counted.0
    }

    #[inline(always)]
    fn find(self, steps: Steps<'_>, buffers: &mut Buffers, found: &mut Vec<u32>) {
        let Some((first, others)) = steps.split() else { return };
        // A query of one list has no groups to combine: its ids are copied.
        if let Some(groups) = Grouped::new(steps).filter(|_| !others.is_empty()) {
            return find_common_groups(self, &groups, found);
        }
        if matches!(first, List::Bits(_)) {
            return find_common_bits(self, steps, found);
        }
        let source = Source::new(self, first, &mut buffers.ids);
        let source = filter(self, Steps { keys: others, ..steps }, source, buffers);
        found.extend_from_slice(source.ids(&buffers.ids));
    }
}

/// The ids of a step: a list in the segment, or the first ids of a buffer.
#[derive(Clone, Copy)]
enum Source<'a> {
    List(&'a [u32]),
    Buffer(usize),
}

impl<'a> Source<'a> {
    /// The ids of a list; the ids are written to `buffer` if the list is not plain.
    #[inline(always)]
    fn new<L: Blocks>(level: L, list: List<'a>, buffer: &mut Vec<u32>) -> Self {
        match list {
            List::Plain(ids) => Self::List(ids),
            List::Buckets(list) => Self::Buffer(list.write(level, 0, u16::MAX, buffer)),
            List::Bits(_) => unreachable!("lists that are all bitmaps are combined"),
        }
    }

    #[inline(always)]
    fn ids<'b>(self, buffer: &'b [u32]) -> &'b [u32]
    where
        'a: 'b,
    {
        match self {
            Self::List(ids) => ids,
            Self::Buffer(len) => &buffer[..len],
        }
    }
}

/// The ids of `source` that are in all lists.
#[inline(always)]
fn filter<'a, L: Blocks>(
    level: L,
    steps: Steps<'_>,
    mut source: Source<'a>,
    buffers: &mut Buffers,
) -> Source<'a> {
    let Buffers { ids, next, list, .. } = buffers;
    for &key in steps.keys {
        let from = source.ids(ids);
        if from.is_empty() {
            break;
        }
        let mut kept = Kept::new(next, from.len());
        step(level, from, steps.list(key), len_of(key), list, &mut kept);
        // The kept ids, in `next`, are the source of the next step.
        source = Source::Buffer(kept.len());
        std::mem::swap(ids, next);
    }
    source
}

/// Gives the ids that are in `list`, which has `len` ids, to `sink`.
#[inline(always)]
fn step<L: Blocks>(
    level: L,
    ids: &[u32],
    list: List<'_>,
    len: u32,
    decoded: &mut Vec<u32>,
    sink: &mut impl Sink,
) {
    let is_short = len as usize / MERGE_RATIO < ids.len();
    match list {
        List::Plain(list) if is_short => merge(level, ids, list, sink),
        List::Buckets(list) if is_short => {
            let len = write_around(level, ids, list, decoded);
            merge(level, ids, &decoded[..len], sink);
        }
        list => probe(level, ids, list, sink),
    }
}

/// Writes the part of a list whose upper halves lie between the first and the last of `ids`, and
/// returns its length.
#[inline(always)]
fn write_around<L: Blocks>(
    level: L,
    ids: &[u32],
    list: Buckets<'_>,
    memory: &mut Vec<u32>,
) -> usize {
    match ids {
        [first, .., last] => list.write(level, upper(*first), upper(*last), memory),
        [only] => list.write(level, upper(*only), upper(*only), memory),
        [] => 0,
    }
}

#[inline(always)]
fn upper(id: u32) -> u16 {
    (id >> 16) as u16
}
