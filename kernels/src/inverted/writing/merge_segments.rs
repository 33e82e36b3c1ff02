//! The merge of segments whose documents follow each other, in tasks that threads do side by side.
//!
//! ```text
//! ranges of numbers ──┬► terms 0 ─┐ numbers and sizes        ┌► lists 0 ─┐ memory of their own
//!                     ├► terms 1 ─┼────────────► places ─────┼► lists 1 ─┼──────────► segment
//!                     └► terms 2 ─┘                          └► lists 2 ─┘
//! ```

use std::ops::Range;

use super::encode::{Encoding, ListRun, SegmentBytes};
use crate::inverted::segment::{ListSize, Segment};

/// Postings that take the time of what a merge does for each term of a part.
const TERM_POSTINGS: u64 = 4;

/// A segment to be merged, and the numbers of its terms among the terms of all parts.
#[derive(Debug)]
pub struct MergePart<'a, B> {
    /// The segment.
    pub segment: &'a Segment<B>,
    /// The number of each term of the segment, ascending; `None` if term `i` has the number `i`.
    pub numbers: Option<&'a [u32]>,
}

impl<B: AsRef<[u8]>> MergePart<'_, B> {
    /// The terms whose numbers are in `range`.
    fn terms(&self, range: &Range<u32>) -> Range<u32> {
        let terms = self.segment.terms();
        let place = |number: u32| match self.numbers {
            None => number.min(terms),
            Some(numbers) => {
                let before = numbers.partition_point(|&other| other < number);
                u32::try_from(before).expect("as many as terms")
            }
        };
        place(range.start)..place(range.end)
    }

    /// The number of a term.
    fn number(&self, term: u32) -> u32 {
        self.numbers.map_or(term, |numbers| numbers[term as usize])
    }
}

/// Ranges of numbers, at most `count`, whose lists take about the same time to merge. Together the
/// ranges have all numbers below `u32::MAX`.
///
/// The terms of the largest part stand for those of all parts.
///
/// # Panics
///
/// If a part has not a number for each of its terms, or the numbers of a part do not ascend.
#[must_use]
pub fn merge_ranges<B: AsRef<[u8]>>(parts: &[MergePart<'_, B>], count: usize) -> Vec<Range<u32>> {
    for part in parts {
        let (numbers, terms) = (part.numbers, part.segment.terms() as usize);
        let len = numbers.map_or(terms, <[u32]>::len);
        assert!(len == terms, "{len} numbers for {terms} terms");
        let ascend = numbers.is_none_or(|all| all.is_sorted_by(|one, other| one < other));
        assert!(ascend, "the numbers of a part ascend");
    }
    let mut begins = vec![0];
    if count > 1
        && let Some(largest) = parts.iter().max_by_key(|part| part.segment.postings())
    {
        let weight = |term| TERM_POSTINGS + u64::from(largest.segment.list_len(term));
        let terms = largest.segment.terms();
        let all = largest.segment.postings() + u64::from(terms) * TERM_POSTINGS;
        let least = all.div_ceil(count as u64);
        let mut sum = 0;
        for term in 0..terms {
            if sum >= least {
                begins.push(largest.number(term));
                sum = 0;
            }
            sum += weight(term);
        }
    }
    let ends = begins[1..].iter().copied().chain([u32::MAX]);
    begins.iter().zip(ends).map(|(&begin, end)| begin..end).collect()
}

/// Merged terms of a range of numbers: their numbers and the sizes of their lists.
#[derive(Debug, Default)]
pub struct MergedTerms {
    numbers: Vec<u32>,
    sizes: Vec<ListSize>,
}

impl MergedTerms {
    /// The terms of `parts` whose numbers are in `range`.
    ///
    /// # Cost
    ///
    /// Lists that are long enough for groups are decoded, to count their groups.
    ///
    /// # Panics
    ///
    /// If the parts have more than `u32::MAX` documents.
    #[must_use]
    pub fn new<B: AsRef<[u8]>>(parts: &[MergePart<'_, B>], range: &Range<u32>) -> Self {
        let documents = documents(parts);
        let mut numbers: Vec<u32> = Vec::new();
        for part in parts {
            numbers.extend(part.terms(range).map(|term| part.number(term)));
        }
        // The sort is one that finds the ascending runs.
        numbers.sort();
        numbers.dedup();
        let (mut lists, mut ids) = (Lists::new(parts, range), Vec::new());
        let mut size_of = |&number: &u32| {
            let size = ListSize { len: lists.find(number), groups: 0 };
            if !size.may_have_groups(documents) {
                return size;
            }
            lists.decode(&mut ids);
            ListSize::of(&ids, documents)
        };
        let sizes = numbers.iter().map(&mut size_of).collect();
        Self { numbers, sizes }
    }
}

/// The lists of a merge: their sizes are known, and runs of lists are written side by side.
#[derive(Debug)]
pub struct MergedLists {
    encoding: Encoding,
    numbers: Vec<u32>,
    sizes: Vec<ListSize>,
}

impl MergedLists {
    /// The merge of `parts`, whose terms are `terms`, those of all ranges in their order; and its
    /// lists in at most about `runs` runs, which [`write`](Self::write) writes.
    ///
    /// # Panics
    ///
    /// If there are more than `u32::MAX` documents, or the segment exceeds the address space.
    #[must_use]
    pub fn new<B: AsRef<[u8]>>(
        parts: &[MergePart<'_, B>],
        terms: Vec<MergedTerms>,
        runs: usize,
    ) -> (Self, Vec<ListRun>) {
        let (mut numbers, mut sizes) = (Vec::new(), Vec::new());
        for mut of_range in terms {
            numbers.append(&mut of_range.numbers);
            sizes.append(&mut of_range.sizes);
        }
        let (encoding, runs) = Encoding::new(documents(parts), &sizes, runs);
        (Self { encoding, numbers, sizes }, runs)
    }

    /// Writes the lists of a run. `parts` are the parts of [`new`](Self::new).
    ///
    /// # Panics
    ///
    /// If the parts, or their numbers, are others.
    pub fn write<B: AsRef<[u8]>>(&self, parts: &[MergePart<'_, B>], run: &mut ListRun) {
        let terms = run.terms();
        let Some(&first) = self.numbers[terms.clone()].first() else { return };
        let (mut lists, mut ids) = (Lists::new(parts, &(first..u32::MAX)), Vec::new());
        for term in terms {
            lists.find(self.numbers[term]);
            lists.decode(&mut ids);
            run.push(self.sizes[term], &ids);
        }
    }

    /// The numbers of all terms, ascending, and the segment, in which term `i` has the `i`-th
    /// number. The segment has the bytes that a builder makes from all documents.
    ///
    /// # Panics
    ///
    /// If a run is missing or is not written.
    #[must_use]
    pub fn finish(self, runs: Vec<ListRun>) -> (Vec<u32>, Segment<SegmentBytes>) {
        (self.numbers, self.encoding.finish(runs))
    }
}

/// Merges segments to one segment, on this thread. The documents of a segment follow the documents
/// of all earlier segments. Returns the numbers of all terms, ascending, and the segment.
///
/// # Cost
///
/// Reads each short list once and each long list twice, and writes each list once; no list is
/// sorted. Memory: the result, twelve bytes for each of its terms, and four bytes for each id of
/// the longest list.
///
/// # Panics
///
/// If a part has not a number for each of its terms, the numbers of a part do not ascend, or there
/// are more than `u32::MAX` documents.
///
/// # Examples
///
/// ```
/// use trommel_kernels::inverted::{MergePart, Segment, SegmentBuilder, merge};
///
/// let mut builder = SegmentBuilder::new();
/// builder.push(&[0]);
/// let first = Segment::new(builder.finish(1))?;
/// let mut builder = SegmentBuilder::new();
/// builder.push(&[0, 1]);
/// let second = Segment::new(builder.finish(2))?;
/// let parts = [
///     MergePart { segment: &first, numbers: Some(&[4]) },
///     MergePart { segment: &second, numbers: Some(&[4, 9]) },
/// ];
/// let (numbers, merged) = merge(&parts);
/// assert_eq!(numbers, [4, 9]);
/// assert_eq!((merged.documents(), merged.list_len(0), merged.list_len(1)), (2, 2, 1));
/// # Ok::<(), trommel_kernels::inverted::SegmentError>(())
/// ```
#[must_use]
pub fn merge<B: AsRef<[u8]>>(parts: &[MergePart<'_, B>]) -> (Vec<u32>, Segment<SegmentBytes>) {
    let terms = merge_ranges(parts, 1).into_iter().map(|range| MergedTerms::new(parts, &range));
    let (lists, mut runs) = MergedLists::new(parts, terms.collect(), 1);
    runs.iter_mut().for_each(|run| lists.write(parts, run));
    lists.finish(runs)
}

fn documents<B: AsRef<[u8]>>(parts: &[MergePart<'_, B>]) -> u32 {
    let documents: u64 = parts.iter().map(|part| u64::from(part.segment.documents())).sum();
    u32::try_from(documents).expect("at most u32::MAX documents")
}

/// The lists of the parts, asked for by ascending numbers.
struct Lists<'a, B>(Vec<Cursor<'a, B>>);

/// The terms of a part that are left.
struct Cursor<'a, B> {
    part: &'a MergePart<'a, B>,
    terms: Range<u32>,
    /// The term with the number that was asked for last, if the part has it.
    found: Option<u32>,
    /// Number of documents of the parts before.
    before: u32,
}

impl<'a, B: AsRef<[u8]>> Lists<'a, B> {
    /// The lists of the numbers of `range`.
    fn new(parts: &'a [MergePart<'a, B>], range: &Range<u32>) -> Self {
        let mut before = 0;
        let cursor = |part: &'a MergePart<'a, B>| {
            let cursor = Cursor { part, terms: part.terms(range), found: None, before };
            before += part.segment.documents();
            cursor
        };
        Self(parts.iter().map(cursor).collect())
    }

    /// Finds the lists of `number`, which is not below the numbers of earlier calls and not above
    /// the next number of any part. Returns the number of their ids.
    fn find(&mut self, number: u32) -> u32 {
        let mut ids = 0;
        for Cursor { part, terms, found, .. } in &mut self.0 {
            let term = terms.start;
            let is_there = term < terms.end && part.number(term) == number;
            *found = is_there.then_some(term);
            if is_there {
                terms.start += 1;
                // The sum is at most the number of documents of all parts.
                ids += part.segment.list_len(term);
            }
        }
        ids
    }

    /// Sets `ids` to the ids of the lists that were found.
    fn decode(&self, ids: &mut Vec<u32>) {
        ids.clear();
        for Cursor { part, found, before, .. } in &self.0 {
            let Some(term) = *found else { continue };
            let begin = ids.len();
            part.segment.view().list(term).decode(ids);
            ids[begin..].iter_mut().for_each(|id| *id += before);
        }
    }
}
