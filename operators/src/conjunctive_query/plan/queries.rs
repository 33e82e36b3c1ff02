//! Queries that are answered together.

use std::time::Instant;

use arrow_array::RecordBatch;

use crate::conjunctive_query::data::index::Terms;

/// The batch of the stream in which queries arrived.
#[derive(Debug, Clone)]
pub(crate) struct Origin {
    /// Number of the batch, from 0.
    pub(crate) number: u64,
    /// Position of the first query of the batch in the stream.
    pub(crate) first: u64,
    /// The time at which the batch arrived.
    pub(crate) entered: Instant,
    /// The carried columns.
    pub(crate) carried: RecordBatch,
}

/// Queries laid end to end, with the batches in which the queries arrived.
#[derive(Debug)]
pub(crate) struct QueryBlock {
    offsets: Vec<u32>,
    terms: Vec<u32>,
    /// Index of each query's origin, and the row in that origin.
    rows: Vec<(u32, u32)>,
    origins: Vec<Origin>,
    /// Sum of the lengths of the shortest lists of all queries.
    pub(crate) answers_max: u64,
    /// Length of the longest of these shortest lists.
    pub(crate) longest: u64,
    /// Modelled time of the answers.
    pub(crate) cost_ns: u64,
}

impl Default for QueryBlock {
    fn default() -> Self {
        Self {
            offsets: vec![0],
            terms: Vec::new(),
            rows: Vec::new(),
            origins: Vec::new(),
            answers_max: 0,
            longest: 0,
            cost_ns: 0,
        }
    }
}

impl QueryBlock {
    /// Adds the query in `row` of `origin`. `price` is the length of its shortest list and its
    /// modelled time.
    pub(crate) fn push(&mut self, origin: &Origin, row: usize, terms: &[u32], price: (u64, u64)) {
        if self.origins.last().is_none_or(|last| last.number != origin.number) {
            self.origins.push(origin.clone());
        }
        let narrow = |len: usize| u32::try_from(len).expect("a batch of queries is below 2^32");
        self.rows.push((narrow(self.origins.len() - 1), narrow(row)));
        self.terms.extend_from_slice(terms);
        self.offsets.push(narrow(self.terms.len()));
        self.answers_max = self.answers_max.saturating_add(price.0);
        self.longest = self.longest.max(price.0);
        self.cost_ns = self.cost_ns.saturating_add(price.1);
    }

    /// Moves the queries of `other` to the end.
    pub(crate) fn append(&mut self, other: &mut Self) {
        let narrow = |len: usize| u32::try_from(len).expect("a batch of queries is below 2^32");
        let (origins, terms) = (narrow(self.origins.len()), narrow(self.terms.len()));
        self.rows.extend(other.rows.iter().map(|&(origin, row)| (origins + origin, row)));
        self.offsets.extend(other.offsets[1..].iter().map(|offset| terms + offset));
        self.terms.append(&mut other.terms);
        self.origins.append(&mut other.origins);
        self.answers_max = self.answers_max.saturating_add(other.answers_max);
        self.longest = self.longest.max(other.longest);
        self.cost_ns = self.cost_ns.saturating_add(other.cost_ns);
        other.clear();
    }

    /// Removes all queries; memory is kept.
    pub(crate) fn clear(&mut self) {
        self.offsets.truncate(1);
        self.terms.clear();
        self.rows.clear();
        self.origins.clear();
        self.answers_max = 0;
        self.longest = 0;
        self.cost_ns = 0;
    }

    /// Removes the first `queries` queries. The sums of lists and costs stay as they are.
    pub(crate) fn remove_first(&mut self, queries: usize) {
        let begin = self.offsets[queries];
        self.offsets.drain(..queries);
        self.offsets.iter_mut().for_each(|offset| *offset -= begin);
        self.terms.drain(..begin as usize);
        self.rows.drain(..queries);
    }

    /// Number of queries.
    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    /// Number of terms.
    pub(crate) fn terms_len(&self) -> usize {
        self.terms.len()
    }

    /// Bytes of memory, without carried columns.
    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&self.terms[..]) + self.len() * (size_of::<u32>() + size_of::<(u32, u32)>())
    }

    pub(crate) fn terms(&self) -> Terms<'_> {
        Terms { offsets: &self.offsets, terms: &self.terms }
    }

    /// Index of each query's origin, and the row in that origin.
    pub(crate) fn rows(&self) -> &[(u32, u32)] {
        &self.rows
    }

    pub(crate) fn origins(&self) -> &[Origin] {
        &self.origins
    }

    /// The time at which the oldest query arrived.
    pub(crate) fn oldest(&self) -> Option<Instant> {
        self.origins.iter().map(|origin| origin.entered).min()
    }
}
