//! The answer to one query, as a trait that each level implements.

mod common_groups;
mod dense;
mod line_sink;
mod merge_lists;
mod probe;
mod scalar;
mod sink;
mod steps;

pub(super) use self::common_groups::LISTS;
pub(super) use self::dense::DenseQueries;
pub(super) use self::probe::fetch_buckets;
pub(super) use self::steps::MERGE_RATIO;

use super::plan::Steps;
use super::scratch::Buffers;

/// Answers queries.
pub(super) trait Answer: Copy {
    /// Whether a query is counted by the words of its bitmaps: all its lists are bitmaps.
    fn is_dense(self, steps: Steps<'_>) -> bool;

    /// The number of documents in all lists.
    fn count(self, steps: Steps<'_>, buffers: &mut Buffers) -> u32;

    /// Appends the documents in all lists, ascending.
    fn find(self, steps: Steps<'_>, buffers: &mut Buffers, found: &mut Vec<u32>);
}
