//! When rows are emitted, and which.

use std::time::{Duration, Instant};

use super::questions::Report;

/// The times at which rows are emitted, in addition to the end.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Emission {
    pub(crate) report: Report,
    /// Number of items after which rows are due, at the next batch boundary.
    items: Option<u64>,
    /// Number of items that are left until rows are due.
    left: u64,
    /// Time after which rows are due, if items have arrived in that time.
    period: Option<Duration>,
    /// The end of the period, which begins with the first item of the stream.
    due: Option<Instant>,
    has_news: bool,
}

impl Emission {
    pub(crate) fn new(report: Report, items: Option<u64>, period: Option<Duration>) -> Self {
        let left = items.unwrap_or(u64::MAX);
        Self { report, items, left, period, due: None, has_news: false }
    }

    /// Whether rows are emitted before the end.
    pub(crate) fn is_periodic(&self) -> bool {
        self.items.is_some() || self.period.is_some()
    }

    /// Counts `items`; true when rows are due.
    pub(crate) fn is_due(&mut self, items: usize) -> bool {
        self.has_news |= items > 0;
        // Called even if items alone make rows due: the first call begins the period.
        let has_passed = self.period.is_some() && self.has_passed(Instant::now());
        let Some(every) = self.items else { return has_passed };
        self.left = self.left.saturating_sub(items as u64);
        if self.left > 0 && !has_passed {
            return false;
        }
        self.left = every;
        self.has_news = false;
        true
    }

    /// The time at which rows are due without another item.
    pub(crate) fn wake_at(&self) -> Option<Instant> {
        self.due.filter(|_| self.has_news)
    }

    /// True when rows are due at `now`, because a period has passed.
    pub(crate) fn has_passed(&mut self, now: Instant) -> bool {
        let next = self.period.and_then(|period| now.checked_add(period));
        let Some(due) = self.due else {
            self.due = next;
            return false;
        };
        if now < due || !self.has_news {
            return false;
        }
        (self.due, self.has_news) = (next, false);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shared::share::Share;

    fn emission(items: Option<u64>, seconds: Option<u64>) -> Emission {
        let report = Report { n: 10, share: Share::default() };
        Emission::new(report, items, seconds.map(Duration::from_secs))
    }

    #[test]
    fn rows_are_due_after_items_or_after_time_with_items() {
        let mut of_items = emission(Some(10), None);
        assert_eq!(
            [4, 5, 1, 9, 1].map(|items| of_items.is_due(items)),
            [false, false, true, false, true]
        );
        assert!(of_items.wake_at().is_none());
        let mut at_end = emission(None, None);
        assert!(!at_end.is_due(usize::MAX) && at_end.wake_at().is_none());

        let mut timed = emission(None, Some(3600));
        assert!(timed.wake_at().is_none(), "the first item begins the period");
        assert!(!timed.is_due(5));
        let due = timed.wake_at().expect("there is an item");
        let second = Duration::from_secs(1);
        assert!(!timed.has_passed(due - second) && timed.has_passed(due));
        assert!(timed.wake_at().is_none() && !timed.has_passed(due + 9_000 * second), "no news");
        assert!(!timed.is_due(1));
        assert_eq!(timed.wake_at(), Some(due + 3600 * second));

        let mut both = emission(Some(10), Some(3600));
        assert!(!both.is_due(9) && both.wake_at().is_some());
        assert!(both.is_due(1) && both.wake_at().is_none(), "the items were emitted just now");
    }
}
