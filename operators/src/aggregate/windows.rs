//! The groups of windows.
//!
//! A window consists of panes. Rows enter the groups of the live pane. When a pane ends, the window
//! that ends with the pane is the sum of its panes, the oldest first; a window of one pane is the
//! pane itself. Each call sends a bounded number of rows: a batch that closes many windows takes
//! several calls.

use std::collections::VecDeque;
use std::mem;
use std::sync::Arc;
use std::time::Instant;

use arrow_array::RecordBatch;
use arrow_schema::{Schema, SchemaRef};
use trommel_engine::batch::Payload;
use trommel_engine::operator::{Counters, Flow, NamedInputs, Operator, OperatorError, Output};
use trommel_engine::query::{QueryError, QueryPayload, Request, Response};

use super::input::{Input, Observed};
use super::memory::Memory;
use super::parameters::plan::Plan;
use super::questions::{QUERIES, Question};
use super::state::{State, Unsent};
use crate::shared::window::borders::{Borders, WindowSpan};
use crate::shared::window::cutter::{WindowCutter, WindowStep};
use crate::shared::window::slides::Slides;

/// The columns of the rows of windows.
pub(crate) fn window_schema(rows: &Schema, borders: Borders) -> SchemaRef {
    let fields = borders.fields().into_iter().chain(rows.fields().iter().map(Arc::clone));
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

/// Groups in windows.
pub(crate) struct Windows {
    input: Input,
    plan: Arc<Plan>,
    memory: Memory,
    cutter: WindowCutter<Observed>,
    /// The panes of the window, the oldest first, without the live pane.
    panes: VecDeque<State>,
    live: State,
    slides: Slides,
    schema: SchemaRef,
    unsent: Option<(Unsent, WindowSpan)>,
    windows: u64,
}

impl Windows {
    pub(crate) fn new(
        input: Input,
        plan: &Arc<Plan>,
        slides: Slides,
        memory: Memory,
    ) -> Result<Self, OperatorError> {
        Ok(Self {
            input,
            live: State::new(plan, memory.budget())?,
            panes: VecDeque::new(),
            cutter: WindowCutter::new(slides),
            schema: window_schema(&plan.schema, slides.borders),
            plan: Arc::clone(plan),
            memory,
            slides,
            unsent: None,
            windows: 0,
        })
    }

    fn has_rows(&self) -> bool {
        !self.live.is_empty() || self.panes.iter().any(|pane| !pane.is_empty())
    }

    fn empty(&self) -> Result<State, OperatorError> {
        State::new(&self.plan, self.memory.budget())
    }

    /// Sends rows, closes windows and adds rows to groups, until all rows of the batch are in
    /// groups or the rows of a call have been sent.
    fn advance(&mut self, out: &mut Output) -> Result<Flow, OperatorError> {
        loop {
            if self.send(out)? {
                return Ok(Flow::HaveOutput);
            }
            match self.cutter.next(self.has_rows()) {
                Some(WindowStep::Count(rows)) => {
                    let part = self.cutter.batch().part(rows);
                    self.live.add(&part)?;
                }
                Some(WindowStep::Close(span)) => self.close(span)?,
                None => return Ok(Flow::NeedInput),
            }
        }
    }

    /// Sends the next rows of the window that has closed; false if there are none.
    fn send(&mut self, out: &mut Output) -> Result<bool, OperatorError> {
        let Some((unsent, span)) = &mut self.unsent else { return Ok(false) };
        let Some(rows) = unsent.next_rows()? else {
            self.unsent = None;
            return Ok(false);
        };
        let borders = self.slides.borders.columns(*span, rows.num_rows()).into_iter();
        let columns = borders.chain(rows.columns().iter().map(Arc::clone)).collect();
        out.send(RecordBatch::try_new(Arc::clone(&self.schema), columns)?);
        Ok(true)
    }

    /// Ends the live pane, and the window that ends with the pane.
    fn close(&mut self, span: WindowSpan) -> Result<(), OperatorError> {
        let empty = self.empty()?;
        let live = mem::replace(&mut self.live, empty);
        if self.slides.panes == 1 {
            return self.put(live, span);
        }
        self.panes.push_back(live);
        let mut window = self.empty()?;
        self.panes.iter().try_for_each(|pane| window.merge(pane))?;
        if self.panes.len() == self.slides.panes {
            self.panes.pop_front();
        }
        self.put(window, span)
    }

    fn put(&mut self, window: State, span: WindowSpan) -> Result<(), OperatorError> {
        self.windows += 1;
        self.unsent = Some((Unsent::new(window)?, span));
        Ok(())
    }
}

impl Operator for Windows {
    fn process(
        &mut self,
        _: usize,
        input: Payload,
        out: &mut Output,
    ) -> Result<Flow, OperatorError> {
        let entered = input.origin().map_or_else(Instant::now, |origin| origin.entered);
        let observed = self.input.read(&input.into_records(), out)?;
        let rows = observed.rows;
        self.cutter.take(observed, rows, entered);
        self.advance(out)
    }

    fn resume(&mut self, out: &mut Output) -> Result<Flow, OperatorError> {
        self.advance(out)
    }

    fn wake_at(&self) -> Option<Instant> {
        self.cutter.end().filter(|_| self.has_rows())
    }

    fn wake(&mut self, now: Instant, out: &mut Output) -> Result<Flow, OperatorError> {
        self.cutter.pass(now);
        self.advance(out)
    }

    fn finish(&mut self, out: &mut Output) -> Result<Flow, OperatorError> {
        // A window that has closed at the end of a pane is not sent twice.
        if !self.live.is_empty() {
            self.close(self.cutter.last_span())?;
        }
        self.advance(out)
    }

    /// An answer is possible at any time: while the rows of a window wait, all rows up to the
    /// border of that window are in groups.
    fn can_answer(&self) -> bool {
        true
    }

    fn queries(&self) -> &'static [&'static str] {
        QUERIES
    }

    /// The rows of the window that is open.
    fn query(
        &self,
        request: &Request,
        _payload: Option<QueryPayload>,
    ) -> Result<Response, QueryError> {
        let question = Question::read(request, &self.plan)?;
        let panes = self.panes.iter().chain([&self.live]);
        let panes = panes.map(|pane| question.copy(pane)).collect::<Result<Vec<State>, _>>()?;
        Ok(Response::Compute(Box::new(move || question.answer(&panes))))
    }

    fn counters(&self) -> Counters {
        let mut counters = vec![("windows", self.windows)];
        counters.extend(self.input.counters());
        counters
    }

    fn named_inputs(&self) -> NamedInputs {
        self.input.named()
    }
}
