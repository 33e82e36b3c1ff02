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
use std::sync::Arc;
use std::time::Instant;

use arrow_array::RecordBatch;
use arrow_schema::{DataType, Schema, SchemaRef};
use serde::Deserialize;
use serde::de::IntoDeserializer;
use serde_json::Value;
use trommel_engine::batch::Payload;
use trommel_engine::operator::{Counters, Flow, NamedInputs, Operator, OperatorError, Output};
use trommel_engine::query::{QueryError, QueryPayload, Request, Response};

use super::memory::StateMemory;
use crate::frequent_items::input::columns::{Input, Observations};
use crate::frequent_items::rows::batches::{Budget, Rows};
use crate::frequent_items::rows::questions::{QUERIES, Question, Report};
use crate::frequent_items::rows::ranked::ranked_schema;
use crate::shared::items::{Column, Items, Part};
use crate::shared::window::borders::{Borders, WindowSpan};
use crate::summary::{Counted, PaneQueue, Summary};

/// The rows that are emitted: the columns of the window, and the columns of [`ranked_schema`].
pub(crate) fn window_schema(item: &DataType, borders: Borders) -> SchemaRef {
    spanned_schema(&ranked_schema(item), borders)
}

/// The columns of the window, then the columns of `others`.
fn spanned_schema(others: &Schema, borders: Borders) -> SchemaRef {
    let fields = borders.fields().into_iter().chain(others.fields().iter().map(Arc::clone));
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

/// Rows of `schema`: the columns of the window, and the columns of `rows`.
fn spanned(
    schema: &SchemaRef,
    borders: Borders,
    span: WindowSpan,
    rows: &RecordBatch,
) -> RecordBatch {
    let window = borders.columns(span, rows.num_rows()).into_iter();
    let columns = window.chain(rows.columns().iter().map(Arc::clone)).collect();
    RecordBatch::try_new(SchemaRef::clone(schema), columns).expect("built to this schema")
}

const NO_WINDOW: &str = "no window with items has closed";

/// The window that a query asks about.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Asked {
    /// The open window.
    #[default]
    Open,
    /// The last closed window with items.
    Closed,
}

impl Asked {
    /// Takes the parameter `window` out of a request.
    fn split_off(request: Request) -> Result<(Self, Request), QueryError> {
        let (window, request) = request.split_off("window");
        let asked = window.map_or(Ok(Self::Open), |window| {
            let read = |window: Value| Self::deserialize(window.into_deserializer());
            read(window).map_err(|source: serde_json::Error| QueryError::Parameters {
                request: request.name().to_owned(),
                source,
            })
        });
        Ok((asked?, request))
    }
}

/// A closed window.
struct ClosedWindow<K> {
    span: WindowSpan,
    counted: Vec<Counted<K>>,
    observed: u64,
    count_min: u64,
}

impl<K: Column> ClosedWindow<K> {
    fn bytes(&self) -> usize {
        let items = self.counted.iter().map(|counted| counted.item.column_bytes());
        size_of_val(&self.counted[..]) + items.sum::<usize>()
    }

    /// The answer to a question, with the columns of the window.
    fn answer(
        &self,
        question: &Question<K>,
        request: &Request,
        ranked: &SchemaRef,
        borders: Borders,
    ) -> Result<Response, QueryError> {
        let monitored = self.counted.iter().map(Counted::as_ref);
        let response =
            question.answer(request, ranked, monitored, self.observed, || self.count_min)?;
        let span = self.span;
        // The thread that asked adds the columns, because the same thread may have to rank the
        // rows.
        Ok(Response::Compute(Box::new(move || {
            let rows = response.compute()?;
            let schema = spanned_schema(rows.schema_ref(), borders);
            Ok(spanned(&schema, borders, span, &rows))
        })))
    }
}

/// A batch whose first `done` items are counted.
struct CountedBatch {
    observations: Observations,
    done: usize,
}

/// Counts the items of a column in windows.
pub(crate) struct Windows<K, S> {
    panes: PaneQueue<K, S>,
    /// Number of panes of a window.
    pane_count: usize,
    borders: Borders,
    input: Input,
    report: Report,
    memory: StateMemory,
    schema: SchemaRef,
    ranked: SchemaRef,
    closed: u64,
    /// Windows that end before this time are to be closed before further items are counted.
    passed: Option<Instant>,
    work: Option<CountedBatch>,
    /// Rows of the last closed window that are still to be sent, and the extent of that window.
    rows: Rows<K>,
    span: WindowSpan,
    last: Option<ClosedWindow<K>>,
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
        let item = input.item_type().clone();
        Self {
            panes,
            pane_count,
            borders,
            input,
            report,
            memory,
            schema: window_schema(&item, borders),
            ranked: ranked_schema(&item),
            closed: 0,
            passed: None,
            work: None,
            rows: Rows::default(),
            span: WindowSpan::default(),
            last: None,
            _item: PhantomData,
        }
    }

    /// Sends rows, closes windows and counts, until all items are counted or the budget of the call
    /// is used up.
    fn advance(&mut self, out: &mut Output) -> Flow {
        let mut budget = Budget::new();
        loop {
            while let Some(rows) = self.rows.next_batch(&self.ranked, &mut budget) {
                out.send(spanned(&self.schema, self.borders, self.span, &rows));
            }
            if !self.rows.is_empty() {
                return Flow::HaveOutput;
            }
            if !self.close_passed() && !self.count_to_border() {
                return Flow::NeedInput;
            }
        }
    }

    /// Closes the next window of time whose end has passed; false if there is no such window with
    /// items.
    fn close_passed(&mut self) -> bool {
        let Some(live) = self.passed.and_then(|now| self.borders.passed(now)) else {
            self.passed = None;
            return false;
        };
        if self.panes.observed() > 0 {
            self.close();
            return true;
        }
        // Empty windows have no rows.
        self.borders.skip_to(live);
        self.passed = None;
        false
    }

    /// Counts the present batch up to the next border of items; false if the batch is used up.
    fn count_to_border(&mut self) -> bool {
        let Some(CountedBatch { observations, mut done }) = self.work.take() else { return false };
        let items = K::lend(observations.items.as_ref());
        let (taken, is_full) = self.borders.advance(items.len() - done);
        let end = done + taken;
        let weights = observations.weights.as_ref().map(|weights| &weights[done..end]);
        self.panes.live().observe(&Part::new(items, done..end), weights);
        done = end;
        let is_used_up = done == items.len();
        if !is_used_up {
            self.work = Some(CountedBatch { observations, done });
        }
        if is_full {
            self.close();
        }
        is_full || !is_used_up
    }

    /// Emits the window that ends with the live pane, and moves on to the next pane.
    fn close(&mut self) {
        let (counted, count_min) = self.panes.counted_and_min();
        self.emit(&counted, true);
        let span = self.borders.span(self.pane_count, true);
        let observed = self.panes.observed();
        self.last = Some(ClosedWindow { span, counted, observed, count_min });
        self.panes.turn();
        self.borders.turn();
    }

    /// Makes the rows of the window that ends with the live pane.
    fn emit(&mut self, counted: &[Counted<K>], is_closed: bool) {
        let counted = counted.iter().map(Counted::as_ref);
        let selected = self.report.select(counted, self.panes.observed());
        if selected.is_empty() {
            return;
        }
        self.closed += 1;
        self.span = self.borders.span(self.pane_count, is_closed);
        self.rows = Rows::new(selected);
    }
}

fn state_bytes<K: Column, S: Summary<K>>(
    panes: &PaneQueue<K, S>,
    last: Option<&ClosedWindow<K>>,
) -> usize {
    panes.state_bytes() + last.map_or(0, ClosedWindow::bytes)
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
        let state_bytes = || state_bytes(&self.panes, self.last.as_ref());
        self.memory.counted(&observations.items, state_bytes)?;
        self.borders.enter(entered);
        self.passed = Some(entered);
        self.work = Some(CountedBatch { observations, done: 0 });
        Ok(self.advance(out))
    }

    fn resume(&mut self, out: &mut Output) -> Result<Flow, OperatorError> {
        Ok(self.advance(out))
    }

    fn wake_at(&self) -> Option<Instant> {
        self.borders.end().filter(|_| self.panes.observed() > 0)
    }

    fn wake(&mut self, now: Instant, out: &mut Output) -> Result<Flow, OperatorError> {
        self.passed = Some(now);
        Ok(self.advance(out))
    }

    fn finish(&mut self, out: &mut Output) -> Result<Flow, OperatorError> {
        // A window that has closed at the end of a pane is not emitted twice.
        if self.panes.live().observed() > 0 {
            self.emit(&self.panes.counted(), false);
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
            let Some(closed) = &self.last else {
                return Err(QueryError::NotYet {
                    request: request.name().to_owned(),
                    awaited: NO_WINDOW,
                });
            };
            return closed.answer(&question, &request, &self.ranked, self.borders);
        }
        let counted = self.panes.counted();
        let monitored = counted.iter().map(Counted::as_ref);
        let (observed, unmonitored) = (self.panes.observed(), || self.panes.count_min());
        question.answer(&request, &self.ranked, monitored, observed, unmonitored)
    }

    fn named_inputs(&self) -> NamedInputs {
        self.input.named()
    }

    fn counters(&self) -> Counters {
        let mut counters = self.input.counters();
        counters.push(("windows", self.closed));
        counters.push(("state_bytes", state_bytes(&self.panes, self.last.as_ref()) as u64));
        counters
    }
}
