//! Queries whose lists have groups: the lines of documents in which all lists share a group.
//!
//! The summaries of all lists are combined first, and only the remaining lines are read.

use super::line_sink::{LineCount, LineIds, LineSink};
use crate::Isa;
use crate::inverted::levels::{Blocks, Lines};
use crate::inverted::plan::Steps;
use crate::inverted::segment::Groups;
use crate::simd::{Popcount, RunOn, dispatch};

/// Maximum number of lists that are combined by groups.
pub(in crate::inverted) const LISTS: usize = 8;

/// The groups of all lists of a query.
#[derive(Clone, Copy)]
pub(super) struct Grouped<'a> {
    /// The lists; the first list has a summary.
    lists: [Groups<'a>; LISTS],
    len: usize,
}

impl<'a> Grouped<'a> {
    /// Returns `None` if a list is neither a bitmap nor has groups, if no list has groups, or if
    /// there are too many lists.
    #[inline(always)]
    pub(in crate::inverted) fn new(steps: Steps<'a>) -> Option<Self> {
        let (&first, others) = steps.keys.split_first()?;
        // Most queries without groups end here: ids come from the shortest list.
        let first = steps.groups(first)?;
        let mut grouped = Self { lists: [first; LISTS], len: steps.keys.len() };
        let (mut front, mut has_summary) = (0, !first.summary.is_empty());
        for (at, &key) in (1..).zip(others) {
            let groups = steps.groups(key)?;
            if !has_summary && !groups.summary.is_empty() {
                (front, has_summary) = (at, true);
            }
            *grouped.lists.get_mut(at)? = groups;
        }
        grouped.lists.swap(0, front);
        has_summary.then_some(grouped)
    }

    /// Gives each line in which all lists share a group.
    #[inline(always)]
    fn give_lines<L: Lines>(&self, level: L, sink: &mut impl LineSink<L>) {
        let [first, others @ ..] = &self.lists;
        let others = &others[..self.len.saturating_sub(1)];
        for (at, summary) in first.summary.iter().enumerate() {
            let mut common = level.line(summary);
            for list in others {
                if let Some(summary) = list.summary.get(at) {
                    common = level.and(common, level.line(summary));
                }
            }
            let mut lines = level.bytes(common);
            while lines != 0 {
                let byte = lines.trailing_zeros() as usize;
                lines &= lines - 1;
                let mut line = first.line(level, at, byte);
                for list in others {
                    line = level.and(line, list.line(level, at, byte));
                }
                sink.take(level, at * 64 + byte, line);
            }
        }
    }
}

/// The number of documents in all lists.
pub(super) fn count_common_groups(isa: Isa, lists: &Grouped<'_>) -> u32 {
    dispatch::<Popcount, _>(isa, CountCommon(lists))
}

struct CountCommon<'a>(&'a Grouped<'a>);

impl<L: Lines> RunOn<L, u32> for CountCommon<'_> {
    #[inline(always)]
    fn run_on(self, level: L) -> u32 {
        let mut counted = LineCount::new(level);
        self.0.give_lines(level, &mut counted);
        counted.total(level)
    }
}

/// Appends the documents in all lists.
#[inline(always)]
pub(super) fn find_common_groups<L: Blocks>(level: L, lists: &Grouped<'_>, found: &mut Vec<u32>) {
    let mut ids = LineIds::new(found);
    lists.give_lines(level, &mut ids);
    ids.append();
}
