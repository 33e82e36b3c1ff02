//! Windows that several workers count.
//!
//! ```text
//!                        ┌► COUNT 1 ─┐ bounds of panes
//!  batches ──► CUT ──────┼► COUNT 2 ─┼──────────────────► MERGE ──► rows of windows
//!     (borders, in turn) └► COUNT 3 ─┘
//! ```
//!
//! CUT cuts batches at the borders of windows and gives the parts to the workers in turn. When a
//! pane ends, CUT sends a mark to each worker after the same item; a worker sends the bounds of its
//! pane to MERGE and begins a new one. The bounds of a pane are the sums of the bounds of all
//! workers, reduced to C items: by 2 and 3 of [the proof](crate::summary::PaneQueue) they have the
//! properties of a pane that one worker counted. MERGE adds panes to windows as one worker does.
//!
//! A query passes CUT, the workers and MERGE at one position of the stream.

use std::collections::VecDeque;
use std::marker::PhantomData;
use std::time::Instant;

use arrow_schema::{DataType, SchemaRef};
use trommel_engine::batch::{Chunk, Payload};
use trommel_engine::operator::{Counters, Flow, NamedInputs, Operator, OperatorError, Output};
use trommel_engine::query::{CopyPayloads, QueryError, QueryPayload, Request, Response};

use super::memory::StateMemory;
use super::window_rows::{Asked, ClosedWindow, WindowRows};
use crate::frequent_items::input::columns::{Input, Observations};
use crate::frequent_items::rows::batches::Budget;
use crate::frequent_items::rows::questions::{QUERIES, Question, check_counters};
use crate::shared::items::Column;
use crate::shared::window::borders::WindowSpan;
use crate::shared::window::cutter::{WindowCutter, WindowStep};
use crate::summary::{Bounds, Counted, EndedPanes, Summary, sum_bounds};

/// Maximum parts of a batch that one call of CUT sends.
const PARTS_PER_CALL: usize = 64;

/// A message of CUT to a worker.
enum PaneWork {
    Batch(Observations),
    Close(Closing),
}

/// The end of a pane, and of the window that ends with the pane.
#[derive(Clone, Copy)]
struct Closing {
    span: WindowSpan,
    /// Whether the stream goes on.
    is_closed: bool,
}

/// The bounds of a pane of one worker.
struct EndedPane<K> {
    worker: usize,
    bounds: Bounds<K>,
    closing: Closing,
}

/// CUT: cuts batches at the borders of windows.
pub(crate) struct Cut<K> {
    input: Input,
    cutter: WindowCutter<Observations>,
    workers: usize,
    /// Weights of the panes of the window, the live pane at the end.
    weights: VecDeque<u64>,
    panes: usize,
    _item: PhantomData<fn() -> K>,
}

impl<K: Column> Cut<K> {
    /// Windows that consist of `panes` panes.
    pub(crate) fn new(input: Input, cutter: WindowCutter<Observations>, panes: usize) -> Self {
        let weights = VecDeque::from([0]);
        Self { input, cutter, workers: 1, weights, panes, _item: PhantomData }
    }

    fn has_items(&self) -> bool {
        self.weights.iter().any(|&weight| weight > 0)
    }

    fn advance(&mut self, out: &mut Output) -> Flow {
        for _ in 0..PARTS_PER_CALL {
            match self.cutter.next(self.has_items()) {
                Some(WindowStep::Count(range)) => {
                    let part = self.cutter.batch().part(range);
                    let items = part.items.len();
                    let weight = part.weights.as_ref().map_or(items as u64, |weights| {
                        weights.iter().fold(0, |sum: u64, weight| sum.saturating_add(*weight))
                    });
                    let live = self.weights.back_mut().expect("there is a live pane");
                    *live = live.saturating_add(weight);
                    let bytes = part.bytes();
                    out.send_chunk(Chunk::new(PaneWork::Batch(part), items, bytes));
                }
                Some(WindowStep::Close(span)) => {
                    self.close(Closing { span, is_closed: true }, out);
                    self.weights.push_back(0);
                    if self.weights.len() > self.panes {
                        self.weights.pop_front();
                    }
                }
                None => return Flow::NeedInput,
            }
        }
        Flow::HaveOutput
    }

    fn close(&self, closing: Closing, out: &mut Output) {
        for worker in 0..self.workers {
            out.send_chunk_to_copy(worker, Chunk::new(PaneWork::Close(closing), 0, 0));
        }
    }
}

impl<K: Column> Operator for Cut<K> {
    fn is_beside(&mut self, copies: usize) {
        self.workers = copies;
    }

    fn process(
        &mut self,
        _port: usize,
        input: Payload,
        out: &mut Output,
    ) -> Result<Flow, OperatorError> {
        let entered = input.origin().map_or_else(Instant::now, |origin| origin.entered);
        let observations = self.input.read(&input.into_records(), out)?;
        let items = observations.items.len();
        self.cutter.take(observations, items, entered);
        Ok(self.advance(out))
    }

    fn resume(&mut self, out: &mut Output) -> Result<Flow, OperatorError> {
        Ok(self.advance(out))
    }

    fn wake_at(&self) -> Option<Instant> {
        self.cutter.end().filter(|_| self.has_items())
    }

    fn wake(&mut self, now: Instant, out: &mut Output) -> Result<Flow, OperatorError> {
        self.cutter.pass(now);
        Ok(self.advance(out))
    }

    fn finish(&mut self, out: &mut Output) -> Result<Flow, OperatorError> {
        // A window that has closed at the end of a pane is not emitted twice.
        if self.weights.back().is_some_and(|&weight| weight > 0) {
            self.close(Closing { span: self.cutter.last_span(), is_closed: false }, out);
        }
        Ok(Flow::NeedInput)
    }

    /// An answer is possible at any time: what CUT has cut has been sent.
    fn can_answer(&self) -> bool {
        true
    }

    fn queries(&self) -> &'static [&'static str] {
        QUERIES
    }

    /// Checks the request; MERGE answers.
    fn query(
        &self,
        request: &Request,
        _payload: Option<QueryPayload>,
    ) -> Result<Response, QueryError> {
        let (_, request) = Asked::split_off(request.clone())?;
        Question::<K>::read(&request, QUERIES, self.input.item_type())?;
        Ok(Response::Forward(Box::new(())))
    }

    fn named_inputs(&self) -> NamedInputs {
        self.input.named()
    }

    fn counters(&self) -> Counters {
        self.input.counters()
    }
}

/// COUNT: counts the live pane.
pub(crate) struct PaneWorker<K, S> {
    number: usize,
    live: S,
    memory: StateMemory,
    _item: PhantomData<fn() -> K>,
}

impl<K: Column, S: Summary<K>> PaneWorker<K, S> {
    /// A worker of this number, from 0, with an empty summary.
    pub(crate) fn new(number: usize, live: S, memory: StateMemory) -> Self {
        Self { number, live, memory, _item: PhantomData }
    }
}

impl<K: Column, S: Summary<K>> Operator for PaneWorker<K, S> {
    fn process(
        &mut self,
        _port: usize,
        input: Payload,
        out: &mut Output,
    ) -> Result<Flow, OperatorError> {
        match input.into_value() {
            PaneWork::Batch(Observations { items, weights }) => {
                self.live.observe(K::lend(items.as_ref()), weights.as_deref());
                self.memory.counted(&items, || self.live.state_bytes())?;
            }
            PaneWork::Close(closing) => {
                let bounds = Bounds::of(&self.live);
                self.live = self.live.to_empty();
                let bytes = bounds.state_bytes();
                let pane = EndedPane { worker: self.number, bounds, closing };
                out.send_chunk(Chunk::new(pane, 0, bytes));
            }
        }
        Ok(Flow::NeedInput)
    }

    fn query(
        &self,
        request: &Request,
        _payload: Option<QueryPayload>,
    ) -> Result<Response, QueryError> {
        let (asked, request) = Asked::split_off(request.clone())?;
        let bounds = match asked {
            Asked::Open => {
                check_counters(&request, self.live.iter())?;
                Bounds::of(&self.live)
            }
            Asked::Closed => Bounds::default(),
        };
        Ok(Response::Forward(Box::new(bounds)))
    }

    fn counters(&self) -> Counters {
        vec![("state_bytes", self.live.state_bytes() as u64)]
    }
}

/// MERGE: adds the panes of the workers, and panes to windows.
pub(crate) struct MergePanes<K> {
    ended: EndedPanes<K>,
    monitored_max: usize,
    /// Panes of each worker that other workers have not sent yet.
    waiting: Vec<VecDeque<EndedPane<K>>>,
    rows: WindowRows<K>,
    item: DataType,
    memory: StateMemory,
}

impl<K: Column> MergePanes<K> {
    /// `monitored_max` is C.
    pub(crate) fn new(
        (panes, monitored_max): (usize, usize),
        item: &DataType,
        rows: WindowRows<K>,
        memory: StateMemory,
    ) -> Self {
        let ended = EndedPanes::new(panes, monitored_max);
        let item = item.clone();
        Self { ended, monitored_max, waiting: Vec::new(), rows, item, memory }
    }

    /// Adds the next pane that all workers have sent; false if there is none.
    fn merge_next(&mut self) -> Result<bool, OperatorError> {
        if self.waiting.iter().any(VecDeque::is_empty) {
            return Ok(false);
        }
        let mut closing = None;
        let panes = self.waiting.iter_mut().filter_map(VecDeque::pop_front);
        let mut pane = sum_bounds(panes.map(|pane| {
            closing = Some(pane.closing);
            pane.bounds
        }));
        pane.keep(self.monitored_max);
        let Closing { span, is_closed } = closing.expect("there is a worker");
        let mut window = self.ended.sum();
        let count_min = window.unmonitored().saturating_add(pane.unmonitored());
        window.add(&pane);
        let observed = window.observed();
        let counted = window.into_monitored();
        self.rows.put(&counted, observed, span);
        if is_closed {
            self.rows.keep(ClosedWindow { span, counted, observed, count_min });
        }
        self.ended.push(pane);
        self.memory.holds(self.state_bytes())?;
        Ok(true)
    }

    fn state_bytes(&self) -> usize {
        self.ended.state_bytes() + self.rows.bytes()
    }
}

impl<K: Column> Operator for MergePanes<K> {
    fn is_beside(&mut self, copies: usize) {
        self.waiting.resize_with(copies, VecDeque::new);
    }

    fn process(
        &mut self,
        _port: usize,
        input: Payload,
        out: &mut Output,
    ) -> Result<Flow, OperatorError> {
        let pane = input.into_value::<EndedPane<K>>();
        self.waiting[pane.worker].push_back(pane);
        self.resume(out)
    }

    fn resume(&mut self, out: &mut Output) -> Result<Flow, OperatorError> {
        let mut budget = Budget::new();
        loop {
            if !self.rows.send(&mut budget, out) {
                return Ok(Flow::HaveOutput);
            }
            if !self.merge_next()? {
                return Ok(Flow::NeedInput);
            }
        }
    }

    /// Rows that wait to leave change no count.
    fn can_answer(&self) -> bool {
        self.waiting.iter().any(VecDeque::is_empty)
    }

    fn query(
        &self,
        request: &Request,
        payload: Option<QueryPayload>,
    ) -> Result<Response, QueryError> {
        let (asked, request) = Asked::split_off(request.clone())?;
        let question = Question::<K>::read(&request, QUERIES, &self.item)?;
        if let Asked::Closed = asked {
            return self.rows.answer_closed(&question, &request);
        }
        let payload = payload.expect("the workers send their bounds");
        let payload = payload.downcast::<CopyPayloads>().expect("MERGE is behind copies");
        let bounds_of = |copy: QueryPayload| *copy.downcast::<Bounds<K>>().expect("bounds");
        let mut bounds: Vec<_> = payload.copies.into_iter().map(bounds_of).collect();
        bounds.push(self.ended.sum());
        let schema = SchemaRef::clone(self.rows.ranked());
        Ok(Response::Compute(Box::new(move || {
            let window = sum_bounds(bounds);
            let monitored = window.monitored().iter().map(Counted::as_ref);
            let unmonitored = || window.unmonitored();
            question.answer(&request, &schema, monitored, window.observed(), unmonitored)?.compute()
        })))
    }

    fn counters(&self) -> Counters {
        vec![("windows", self.rows.closed), ("state_bytes", self.state_bytes() as u64)]
    }
}
