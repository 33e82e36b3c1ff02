//! The operator over windows: rows for each window when it closes.
//!
//! A window of items closes exactly behind its last item: a batch is divided there. A window of
//! time closes with the first batch that entered the stream behind its end, or, when none comes,
//! when the engine says that the time has passed; a batch that entered before and arrives later
//! than that counts in the next window. Windows of time begin with the first batch, not with the
//! hour.

use std::marker::PhantomData;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use arrow_array::{ArrayRef, RecordBatch, TimestampMillisecondArray, UInt64Array};
use arrow_schema::{DataType, Field, Schema, SchemaRef, TimeUnit};
use trommel_engine::batch::Payload;
use trommel_engine::operator::{Counters, Flow, Operator, OperatorError, Output};
use trommel_engine::query::{Carried, QueryError, Request, Response};

use super::column::{Column, ranked_rows, ranked_schema};
use super::counting::send_rows;
use super::input::{Input, Observations};
use super::item::Part;
use super::panes::Panes;
use super::report::{QUERIES, Question, Report};
use super::summary::Summary;
use super::{Counted, Items};

/// The zone of the columns of time.
const UTC: &str = "+00:00";

/// Where a window ends.
#[derive(Clone, Copy, Debug)]
pub(super) enum Borders {
    /// After so many items, at least 1; so many were seen.
    Items { pane: u64, position: u64 },
    /// After so much time, more than none.
    Time { pane: Duration, start: Option<Start>, index: u64 },
}

/// When the first batch entered.
#[derive(Clone, Copy, Debug)]
pub(super) struct Start {
    at: Instant,
    /// The same on the clock, since 1970.
    clock: Duration,
}

impl Start {
    fn new(at: Instant) -> Self {
        let clock = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { at, clock: clock.saturating_sub(at.elapsed()) }
    }
}

impl Borders {
    /// Panes of so many items.
    pub(super) fn items(pane: u64) -> Self {
        Self::Items { pane, position: 0 }
    }

    /// Panes of this length.
    pub(super) fn time(pane: Duration) -> Self {
        Self::Time { pane, start: None, index: 0 }
    }

    /// The type of `window_start` and `window_end`.
    fn column_type(self) -> DataType {
        match self {
            Self::Items { .. } => DataType::UInt64,
            Self::Time { .. } => DataType::Timestamp(TimeUnit::Millisecond, Some(UTC.into())),
        }
    }
}

/// What the operator emits: the columns of the window, and those of [`ranked_schema`].
pub(super) fn window_schema(item: DataType, borders: Borders) -> SchemaRef {
    let border = |name| Arc::new(Field::new(name, borders.column_type(), false));
    let ranked = ranked_schema(item);
    let fields = [border("window_start"), border("window_end")];
    let fields = fields.into_iter().chain(ranked.fields().iter().map(Arc::clone));
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

/// Counts the items of a column in windows.
pub(super) struct Windows<K, S> {
    panes: Panes<S>,
    /// How many make a window.
    pane_count: usize,
    borders: Borders,
    input: Input,
    report: Report,
    schema: SchemaRef,
    ranked: SchemaRef,
    closed: u64,
    _item: PhantomData<K>,
}

impl<K: Column, S: Summary<K>> Windows<K, S> {
    /// Windows of so many panes, at least 1, each counted by a summary like `empty`.
    pub(super) fn new(
        empty: S,
        panes: usize,
        borders: Borders,
        input: Input,
        report: Report,
    ) -> Self {
        Self {
            panes: Panes::new(empty, panes),
            pane_count: panes,
            borders,
            input,
            report,
            schema: window_schema(K::TYPE, borders),
            ranked: ranked_schema(K::TYPE),
            closed: 0,
            _item: PhantomData,
        }
    }

    /// Counts a batch that entered at that time, and closes the windows that end before or in it.
    fn observe(
        &mut self,
        items: &K::Batch,
        weights: Option<&[u64]>,
        entered: Instant,
        out: &mut Output,
    ) {
        if let Borders::Time { start, .. } = &mut self.borders {
            start.get_or_insert_with(|| Start::new(entered));
            self.close_until(entered, out);
        }
        let mut done = 0;
        while done < items.len() {
            let mut end = items.len();
            let mut is_full = false;
            if let Borders::Items { pane, position } = &mut self.borders {
                let room = *pane - *position % *pane;
                end = usize::try_from(room).map_or(end, |room| end.min(done.saturating_add(room)));
                *position += (end - done) as u64;
                is_full = *position % *pane == 0;
            }
            let weights = weights.map(|weights| &weights[done..end]);
            self.panes.live().observe(&Part::new(items, done..end), weights);
            if is_full {
                self.close(out);
            }
            done = end;
        }
    }

    /// Closes the windows of time that have ended.
    fn close_until(&mut self, now: Instant, out: &mut Output) {
        loop {
            let is_empty = self.panes.observed() == 0;
            let Borders::Time { pane, start: Some(start), index } = &mut self.borders else {
                return;
            };
            let ended = now.saturating_duration_since(start.at).as_nanos() / pane.as_nanos();
            let ended = u64::try_from(ended).unwrap_or(u64::MAX);
            if *index >= ended {
                return;
            }
            // Nothing is said of windows in which nothing came.
            if is_empty {
                *index = ended;
                return;
            }
            self.close(out);
        }
    }

    /// Emits the window that ends with the live pane, and goes on to the next pane.
    fn close(&mut self, out: &mut Output) {
        self.emit(out);
        self.panes.turn();
        if let Borders::Time { index, .. } = &mut self.borders {
            *index += 1;
        }
    }

    fn emit(&mut self, out: &mut Output) {
        let counted = self.panes.counted();
        let selected =
            self.report.select(counted.iter().map(Counted::as_ref), self.panes.observed());
        if selected.is_empty() {
            return;
        }
        self.closed += 1;
        let ranked = ranked_rows(&self.ranked, &selected);
        let (start, end) = self.border_columns(ranked.num_rows());
        let columns = [start, end].into_iter().chain(ranked.columns().iter().map(Arc::clone));
        let rows = RecordBatch::try_new(SchemaRef::clone(&self.schema), columns.collect());
        send_rows(&rows.expect("built to this schema"), out);
    }

    /// `window_start` and `window_end` of the window that ends now, or would end next.
    fn border_columns(&self, rows: usize) -> (ArrayRef, ArrayRef) {
        let panes = self.pane_count as u64;
        match self.borders {
            Borders::Items { pane, position } => {
                let begun = position.div_ceil(pane).saturating_sub(panes) * pane;
                let column =
                    |border| -> ArrayRef { Arc::new(UInt64Array::from(vec![border; rows])) };
                (column(begun), column(position))
            }
            Borders::Time { pane, start, index } => {
                let start = start.map_or(Duration::ZERO, |start| start.clock);
                let column = |index: u64| -> ArrayRef {
                    let since = pane.as_nanos().saturating_mul(index.into()) + start.as_nanos();
                    let milliseconds = i64::try_from(since / 1_000_000).unwrap_or(i64::MAX);
                    let column = TimestampMillisecondArray::from(vec![milliseconds; rows]);
                    Arc::new(column.with_timezone(UTC))
                };
                (column((index + 1).saturating_sub(panes)), column(index + 1))
            }
        }
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
        let Observations { items, weights } = self.input.read(&input.into_records())?;
        self.observe(K::lend(items.as_ref()), weights.as_deref(), entered, out);
        Ok(Flow::NeedInput)
    }

    fn wake_at(&self) -> Option<Instant> {
        let Borders::Time { pane, start: Some(start), index } = self.borders else { return None };
        if self.panes.observed() == 0 {
            return None;
        }
        let ends = pane.checked_mul(u32::try_from(index + 1).ok()?)?;
        start.at.checked_add(ends)
    }

    fn wake(&mut self, now: Instant, out: &mut Output) -> Result<Flow, OperatorError> {
        self.close_until(now, out);
        Ok(Flow::NeedInput)
    }

    fn finish(&mut self, out: &mut Output) -> Result<Flow, OperatorError> {
        // What the last window has said already is not said again.
        if self.panes.live().observed() > 0 {
            self.emit(out);
        }
        Ok(Flow::NeedInput)
    }

    fn query(&self, request: &Request, _carried: Option<Carried>) -> Result<Response, QueryError> {
        let question = Question::<K>::read(request, QUERIES)?;
        let counted = self.panes.counted();
        let monitored = counted.iter().map(Counted::as_ref);
        let (observed, unmonitored) = (self.panes.observed(), || self.panes.count_min());
        Ok(Response::Answer(question.answer(&self.ranked, monitored, observed, unmonitored)))
    }

    fn counters(&self) -> Counters {
        let mut counters = self.input.counters();
        counters.push(("windows", self.closed));
        counters.push(("state_bytes", self.panes.state_bytes() as u64));
        counters
    }
}
