//! Sets in the order of arrival.

use std::ops::Range;

use crate::shared::sets::input::column::SetBatch;
use crate::shared::sets::side::Side;

/// Counts of rows, for the report.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct RowCounts {
    /// Rows without a null.
    pub(crate) sets: u64,
    pub(crate) empty_sets: u64,
    pub(crate) nulls: u64,
}

impl RowCounts {
    /// Adds the counts of other rows.
    pub(crate) fn add(&mut self, other: Self) {
        let Self { sets, empty_sets, nulls } = self;
        *sets += other.sets;
        *empty_sets += other.empty_sets;
        *nulls += other.nulls;
    }
}

/// Extent of some sets.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Extent {
    pub(crate) sets: usize,
    /// Number of tokens of the longest set.
    pub(crate) longest: usize,
    /// Largest token.
    pub(crate) token_max: u32,
}

/// Sets of one side in the order of arrival.
#[derive(Debug, Default)]
pub(crate) struct ArrivedBlock {
    pub(crate) side: Side,
    pub(crate) ids: Vec<u32>,
    /// Start of each set among the tokens, and the end of the last set.
    pub(crate) offsets: Vec<u32>,
    pub(crate) tokens: Vec<u32>,
}

impl ArrivedBlock {
    /// A block without sets, with memory for the expected tokens.
    pub(crate) fn with_capacity(side: Side, tokens: usize) -> Self {
        Self { side, offsets: vec![0], tokens: Vec::with_capacity(tokens), ..Self::default() }
    }

    pub(crate) fn push(&mut self, id: u32, tokens: &[u32]) {
        self.ids.push(id);
        self.tokens.extend_from_slice(tokens);
        self.offsets.push(u32::try_from(self.tokens.len()).expect("at most 2^31 tokens"));
    }

    /// Appends the sets of `rows` that have at least `size_min` tokens. Tokens ascend. If
    /// `first_row` is given, the numbers of the rows, counted from `first_row` on, replace the ids.
    pub(crate) fn push_rows(
        &mut self,
        rows: &SetBatch,
        first_row: Option<u32>,
        size_min: usize,
    ) -> RowCounts {
        let numbers = first_row.unwrap_or(0)..=u32::MAX;
        let mut counts = RowCounts::default();
        if let Some((ids, offsets, tokens)) = rows.whole(size_min) {
            let begin = self.ids.len();
            self.extend(ids, offsets, tokens);
            if let Some(first) = first_row {
                self.number(begin, first);
            }
            counts.sets = ids.len() as u64;
            return counts;
        }
        for (row, number) in (0..rows.len()).zip(numbers) {
            let Some((id, tokens)) = rows.get(row) else {
                counts.nulls += 1;
                continue;
            };
            counts.sets += 1;
            counts.empty_sets += u64::from(tokens.is_empty());
            if tokens.len() >= size_min {
                self.push(if first_row.is_some() { number } else { id }, tokens);
            }
        }
        counts
    }

    /// Replaces the ids of the sets from `begin` on by the numbers from `first` on.
    pub(crate) fn number(&mut self, begin: usize, first: u32) {
        self.ids[begin..].iter_mut().zip(first..=u32::MAX).for_each(|(id, number)| *id = number);
    }

    /// Appends sets that lie one after the other. Their tokens ascend, and no set is empty.
    pub(crate) fn extend(&mut self, ids: &[u32], offsets: &[i32], tokens: &[u32]) {
        let place = |offset: i32| usize::try_from(offset).expect("offsets are not negative");
        let (Some(&first), Some(&last)) = (offsets.first(), offsets.last()) else { return };
        let before = u32::try_from(self.tokens.len()).expect("at most 2^31 tokens");
        self.ids.extend_from_slice(ids);
        self.tokens.extend_from_slice(&tokens[place(first)..place(last)]);
        let ends = offsets[1..].iter().map(|&end| before + (end - first).unsigned_abs());
        self.offsets.extend(ends);
    }

    /// Number of sets, longest size and largest token of the sets from `first` on.
    pub(crate) fn extent(&self, first: usize) -> Extent {
        let ends = &self.offsets[first..];
        let longest = ends.windows(2).map(|ends| ends[1] - ends[0]).max().unwrap_or(0) as usize;
        // Tokens ascend, and no set is empty, so the last token of a set is its largest.
        let largest = ends[1..].iter().map(|&end| self.tokens[end as usize - 1]);
        let token_max = largest.max().unwrap_or(0);
        Extent { sets: ends.len() - 1, longest, token_max }
    }

    pub(crate) fn set(&self, index: usize) -> &[u32] {
        &self.tokens[self.range(index)]
    }

    /// Places of a set among the tokens.
    pub(crate) fn range(&self, index: usize) -> Range<usize> {
        self.offsets[index] as usize..self.offsets[index + 1] as usize
    }
}
