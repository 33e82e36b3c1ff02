//! A model of the time that a query takes.
//!
//! Measured on one core of an AMD EPYC (Zen 5), AVX-512, an index of 135 MB.

use super::answers::{LISTS, MERGE_RATIO};
use super::segment::{Form, GROUP_SHIFT, Segment, View, summary_lines};

/// Picoseconds of a query: its plan, and the entry to the level.
const QUERY_PS: u64 = 100_000;
/// Picoseconds of a list: its row and its beginning, which are often not in a cache.
const LIST_PS: u64 = 250_000;
/// Picoseconds of the search of an id in buckets or in bits.
const PROBE_PS: u64 = 3_000;
/// Picoseconds of an id of either list of a merge, with the decoding of halves.
const MERGE_PS: u64 = 300;
/// Picoseconds of a word of a bitmap that is combined with others.
const WORD_PS: u64 = 100;
/// Picoseconds of a line of a list by groups, of its summary or of its documents.
const LINE_PS: u64 = 300;
/// Ids of the shortest list for each line of documents that the summaries leave, measured over
/// text.
const LINE_IDS: u64 = 8;

impl<B: AsRef<[u8]>> Segment<B> {
    /// The estimated time of counting the documents of a query, in nanoseconds, with AVX-512: for
    /// plans of batches, not for clocks.
    ///
    /// The first step is the cheapest search of the ids of the shortest list in another list; each
    /// later step counts as half its cost, since it has fewer ids. Where all lists have groups,
    /// their lines are counted.
    ///
    /// # Cost
    ///
    /// Reads the row of each term three times.
    ///
    /// # Examples
    ///
    /// ```
    /// use trommel_kernels::inverted::{Segment, SegmentBuilder};
    ///
    /// let mut builder = SegmentBuilder::new();
    /// (0..10_000).for_each(|_| drop(builder.push(&[0, 1])));
    /// let segment = Segment::new(builder.finish(3))?;
    /// assert!(segment.cost_ns(&[0, 1]) > segment.cost_ns(&[0, 2]));
    /// # Ok::<(), trommel_kernels::inverted::SegmentError>(())
    /// ```
    #[must_use]
    pub fn cost_ns(&self, terms: &[u32]) -> u64 {
        let view = self.view();
        let lists = LIST_PS * terms.len() as u64;
        if self.shortest(terms) == 0 {
            return (QUERY_PS + lists) / 1_000;
        }
        if is_grouped(view, terms) {
            let left = u64::from(self.shortest(terms)) / LINE_IDS;
            let lines = u64::from(view.documents() >> GROUP_SHIFT).div_ceil(8);
            let read = (summary_lines(view.documents()) + left.min(lines)) * terms.len() as u64;
            return (QUERY_PS + lists + LINE_PS * read) / 1_000;
        }
        let lens = terms.iter().filter(|&&term| view.form(term) != Form::Bits);
        let Some((ids, source)) = lens.map(|&term| (view.len(term), term)).min() else {
            let words = u64::from(view.documents()).div_ceil(32) * terms.len() as u64;
            return (QUERY_PS + lists + WORD_PS * words) / 1_000;
        };
        let others = terms.iter().filter(|&&term| term != source);
        let steps = others.map(|&term| step_ps(ids.into(), view.len(term).into(), view.form(term)));
        let (sum, least) =
            steps.fold((0, u64::MAX), |(sum, least), step| (sum + step, least.min(step)));
        let steps = if sum == 0 { 0 } else { least + (sum - least) / 2 };
        (QUERY_PS + lists + steps) / 1_000
    }
}

/// Whether a query of these terms, all known, is answered by groups.
fn is_grouped(view: View<'_>, terms: &[u32]) -> bool {
    let mut has_summary = false;
    let mut has_groups = |&term: &u32| {
        let groups = view.groups(term);
        has_summary |= groups.is_some_and(|groups| !groups.summary.is_empty());
        groups.is_some()
    };
    terms.len() <= LISTS && terms.iter().all(&mut has_groups) && has_summary
}

/// The picoseconds of the search of `ids` ids in a list.
fn step_ps(ids: u64, len: u64, form: Form) -> u64 {
    let is_short = len / (MERGE_RATIO as u64) < ids;
    if is_short && form != Form::Bits { MERGE_PS * (ids + len) } else { PROBE_PS * ids }
}
