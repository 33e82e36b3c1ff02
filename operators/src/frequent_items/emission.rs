//! When rows are emitted, and which.

use super::query::Report;

/// When rows are emitted, besides at the end.
#[derive(Debug, Clone, Copy)]
pub(super) struct Emission {
    pub(super) report: Report,
    /// After this many items, at the next batch boundary.
    pub(super) every: Option<u64>,
    /// How many items are left until then.
    pub(super) left: u64,
}

impl Emission {
    pub(super) fn new(report: Report, every: Option<u64>) -> Self {
        Self { report, every, left: every.unwrap_or(u64::MAX) }
    }

    /// Counts `items`; true when rows are due.
    pub(super) fn is_due(&mut self, items: usize) -> bool {
        let Some(every) = self.every else { return false };
        self.left = self.left.saturating_sub(items as u64);
        if self.left > 0 {
            return false;
        }
        self.left = every;
        true
    }
}
