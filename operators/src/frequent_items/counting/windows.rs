//! The operator over windows: rows for each window when it closes.
//!
//! A window of items closes exactly after its last item: a batch is divided at that item. A window
//! of time closes with the first batch that entered the stream after the end of the window. If no
//! such batch arrives, the window closes when the engine says that the time has passed; a batch
//! that entered before the end but arrives after the close counts in the next window.
//!
//! The last closed window is kept for queries.
//!
//! Each call sends a bounded number of rows: a batch that closes many windows takes several calls.

use std::marker::PhantomData;
use std::time::Instant;

use trommel_engine::batch::Payload;
use trommel_engine::operator::{Counters, Flow, NamedInputs, Operator, OperatorError, Output};
use trommel_engine::query::{QueryError, QueryPayload, Request, Response};

use super::memory::StateMemory;
use super::window_rows::{Asked, ClosedWindow, WindowRows};
use crate::frequent_items::input::columns::{Input, Observations};
use crate::frequent_items::rows::batches::Budget;
use crate::frequent_items::rows::questions::{QUERIES, Question, Report};
use crate::shared::items::{Column, Part};
use crate::shared::window::borders::{Borders, WindowSpan};
use crate::shared::window::cutter::{WindowCutter, WindowStep};
use crate::shared::window::slides::Slides;
use crate::summary::{Counted, PaneQueue, Summary};

/// Counts the items of a column in windows.
pub(crate) struct Windows<K, S> {
    panes: PaneQueue<K, S>,
    cutter: WindowCutter<Observations>,
    input: Input,
    memory: StateMemory,
    rows: WindowRows<K>,
    _item: PhantomData<K>,
}

impl<K: Column, S: Summary<K>> Windows<K, S> {
    /// Windows that consist of `pane_count` panes.
    pub(crate) fn new(
        panes: PaneQueue<K, S>,
        pane_count: usize,
        borders: Borders,
        input: Input,
        report: Report,
        memory: StateMemory,
    ) -> Self {
        let rows = WindowRows::new(input.item_type(), borders, report);
        let cutter = WindowCutter::new(Slides { panes: pane_count, borders });
        Self { panes, cutter, input, memory, rows, _item: PhantomData }
    }

    /// Sends rows, closes windows and counts, until all items are counted or the budget of the call
    /// is used up.
    fn advance(&mut self, out: &mut Output) -> Flow {
        let mut budget = Budget::new();
        loop {
            if !self.rows.send(&mut budget, out) {
                return Flow::HaveOutput;
            }
            match self.cutter.next(self.panes.observed() > 0) {
                Some(WindowStep::Count(range)) => self.count(range),
                Some(WindowStep::Close(span)) => self.close(span),
                None => return Flow::NeedInput,
            }
        }
    }

    fn count(&mut self, range: std::ops::Range<usize>) {
        let observations = self.cutter.batch();
        let items = K::lend(observations.items.as_ref());
        let weights = observations.weights.as_ref().map(|weights| &weights[range.clone()]);
        self.panes.live().observe(&Part::new(items, range), weights);
    }

    /// Emits the window that ends with the live pane, and moves on to the next pane.
    fn close(&mut self, span: WindowSpan) {
        let (counted, count_min) = self.panes.counted_and_min();
        let observed = self.panes.observed();
        self.rows.put(&counted, observed, span);
        self.rows.keep(ClosedWindow { span, counted, observed, count_min });
        self.panes.turn();
    }

    fn state_bytes(&self) -> usize {
        self.panes.state_bytes() + self.rows.bytes()
    }
}

impl<K: Column, S: Summary<K>> Operator for Windows<K, S> {
    fn process(
        &mut self,
        _port: usize,
        input: Payload,
        out: &mut Output,
    ) -> Result<Flow, OperatorError> {
        let entered = input.origin().map_or_else(Instant::now, |origin| origin.entered);
        let observations = self.input.read(&input.into_records(), out)?;
        let Self { panes, rows, memory, .. } = self;
        memory.counted(&observations.items, || panes.state_bytes() + rows.bytes())?;
        let items = observations.items.len();
        self.cutter.take(observations, items, entered);
        Ok(self.advance(out))
    }

    fn resume(&mut self, out: &mut Output) -> Result<Flow, OperatorError> {
        Ok(self.advance(out))
    }

    fn wake_at(&self) -> Option<Instant> {
        self.cutter.end().filter(|_| self.panes.observed() > 0)
    }

    fn wake(&mut self, now: Instant, out: &mut Output) -> Result<Flow, OperatorError> {
        self.cutter.pass(now);
        Ok(self.advance(out))
    }

    fn finish(&mut self, out: &mut Output) -> Result<Flow, OperatorError> {
        // A window that has closed at the end of a pane is not emitted twice.
        if self.panes.live().observed() > 0 {
            let counted = self.panes.counted();
            self.rows.put(&counted, self.panes.observed(), self.cutter.last_span());
        }
        Ok(self.advance(out))
    }

    /// An answer is possible at any time: while the rows of a window wait, all items up to the
    /// border of that window are counted.
    fn can_answer(&self) -> bool {
        true
    }

    fn queries(&self) -> &'static [&'static str] {
        QUERIES
    }

    fn query(
        &self,
        request: &Request,
        _payload: Option<QueryPayload>,
    ) -> Result<Response, QueryError> {
        let (asked, request) = Asked::split_off(request.clone())?;
        let question = Question::<K>::read(&request, QUERIES, self.input.item_type())?;
        if let Asked::Closed = asked {
            return self.rows.answer_closed(&question, &request);
        }
        let counted = self.panes.counted();
        let monitored = counted.iter().map(Counted::as_ref);
        let (observed, unmonitored) = (self.panes.observed(), || self.panes.count_min());
        question.answer(&request, self.rows.ranked(), monitored, observed, unmonitored)
    }

    fn named_inputs(&self) -> NamedInputs {
        self.input.named()
    }

    fn counters(&self) -> Counters {
        let mut counters = self.input.counters();
        counters.push(("windows", self.rows.closed));
        counters.push(("state_bytes", self.state_bytes() as u64));
        counters
    }
}
