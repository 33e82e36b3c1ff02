//! The cut of a stream at the borders of windows.

use std::ops::Range;
use std::time::Instant;

use super::borders::{Borders, WindowSpan};
use super::slides::Slides;

/// The next thing that happens to a window.
pub(crate) enum WindowStep {
    /// These items of the batch count in the live pane.
    Count(Range<usize>),
    /// The window that ends with the live pane closes, and the next pane lives.
    Close(WindowSpan),
}

/// Cuts batches at the borders of windows, and knows when windows close.
pub(crate) struct WindowCutter<B> {
    borders: Borders,
    /// Number of panes of a window.
    panes: usize,
    /// Windows that end before this time are to be closed before further items are counted.
    passed: Option<Instant>,
    /// The batch.
    batch: Option<B>,
    /// Number of items of the batch, and number of items that have been counted.
    items: usize,
    done: usize,
    /// Whether the live pane has all its items.
    is_full: bool,
}

impl<B> WindowCutter<B> {
    pub(crate) fn new(Slides { panes, borders }: Slides) -> Self {
        Self { borders, panes, passed: None, batch: None, items: 0, done: 0, is_full: false }
    }

    /// Takes a batch of `items` items that entered the stream at a time. The batch before has been
    /// counted.
    pub(crate) fn take(&mut self, batch: B, items: usize, entered: Instant) {
        self.borders.enter(entered);
        self.passed = Some(entered);
        (self.batch, self.items, self.done) = (Some(batch), items, 0);
    }

    /// Notes the time.
    pub(crate) fn pass(&mut self, now: Instant) {
        self.passed = Some(now);
    }

    /// The batch that is cut.
    pub(crate) fn batch(&self) -> &B {
        self.batch.as_ref().expect("a batch is being counted")
    }

    /// The next step; `None` if the batch is used up. `has_items` says whether the window that ends
    /// with the live pane has items: empty windows have no rows.
    pub(crate) fn next(&mut self, has_items: bool) -> Option<WindowStep> {
        if std::mem::take(&mut self.is_full) {
            return Some(self.close());
        }
        if let Some(live) = self.passed.and_then(|now| self.borders.passed(now)) {
            if has_items {
                return Some(self.close());
            }
            self.borders.skip_to(live);
        }
        self.passed = None;
        let left = self.items - self.done;
        if left == 0 {
            self.batch = None;
            return None;
        }
        let (taken, is_full) = self.borders.advance(left);
        let counted = self.done..self.done + taken;
        self.done += taken;
        self.is_full = is_full;
        Some(WindowStep::Count(counted))
    }

    fn close(&mut self) -> WindowStep {
        let span = self.borders.span(self.panes, true);
        self.borders.turn();
        WindowStep::Close(span)
    }

    /// The extent of the window that the end of the stream closes.
    pub(crate) fn last_span(&self) -> WindowSpan {
        self.borders.span(self.panes, false)
    }

    /// The time at which the next window closes.
    pub(crate) fn end(&self) -> Option<Instant> {
        self.borders.end()
    }
}
