//! Memory that queries use again.

/// Memory of queries, which each query uses again.
///
/// # Cost
///
/// Grows to twelve bytes for each id of the longest decoded list (bitmaps are not decoded), and
/// eight for each term of the longest query.
#[derive(Debug, Default)]
pub struct QueryScratch {
    pub(super) order: Vec<u64>,
    pub(super) buffers: Buffers,
}

impl QueryScratch {
    /// Scratch without memory yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

/// Ids between two steps.
#[derive(Debug, Default)]
pub(super) struct Buffers {
    /// The ids that remain.
    pub(super) ids: Vec<u32>,
    /// The ids of the next step.
    pub(super) next: Vec<u32>,
    /// A decoded list.
    pub(super) list: Vec<u32>,
    /// Documents that are counted.
    pub(super) found: Vec<u32>,
}
