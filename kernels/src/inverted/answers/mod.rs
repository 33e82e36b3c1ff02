//! The answer to one query, as a trait that each level implements.

pub(super) mod common_groups;
pub(super) mod dense;
mod line_sink;
mod merge_lists;
pub(super) mod probe;
mod scalar;
mod sink;
pub(super) mod steps;

use super::plan::Steps;
use super::scratch::Buffers;

/// Answers queries.
pub(super) trait Answer: Copy {
    /// Whether a query is counted by the words of its bitmaps, all of its lists.
    fn is_dense(self, steps: Steps<'_>) -> bool;

    /// The number of documents in all lists.
    fn count(self, steps: Steps<'_>, buffers: &mut Buffers) -> u32;

    /// Appends the documents in all lists, ascending.
    fn find(self, steps: Steps<'_>, buffers: &mut Buffers, found: &mut Vec<u32>);
}
