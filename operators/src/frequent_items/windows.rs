//! The operator over windows: rows for each window when it closes.
//!
//! A window of items closes exactly after its last item: a batch is divided there. A window of
//! time closes with the first batch that entered the stream after its end, or, when none comes,
//! when the engine says that the time has passed; a batch that entered before and arrives later
//! than that counts in the next window.
//!
//! The borders of windows of time are whole multiples of the slide since 1970, in whole
//! nanoseconds, so that windows of different runs are the same windows. The clock is read with the
//! first batch and then follows the one that never jumps. A window that the stream did not fill,
//! because it began or ended within, is marked: `complete` is false.
//!
//! Each call sends a bounded number of rows: a batch that closes many windows is gone through in
//! several calls.

use std::marker::PhantomData;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use arrow_array::{ArrayRef, BooleanArray, RecordBatch, TimestampMillisecondArray, UInt64Array};
use arrow_schema::{DataType, Field, Schema, SchemaRef, TimeUnit};
use trommel_engine::batch::Payload;
use trommel_engine::operator::{Counters, Flow, Operator, OperatorError, Output};
use trommel_engine::query::{QueryError, QueryPayload, Request, Response};

use super::input::{Input, Observations};
use super::memory::StateMemory;
use super::query::{QUERIES, Question, Report};
use super::ranked::ranked_schema;
use super::rows::{Budget, Rows};
use crate::items::{Column, Items, Part};
use crate::summary::{Counted, PaneQueue, Summary};

/// The zone of the columns of time.
const UTC: &str = "+00:00";
const NANOSECONDS: u128 = 1_000_000_000;

/// Where windows begin and end.
#[derive(Clone, Copy, Debug)]
pub(super) enum Borders {
    /// After a number of items, at least 1; `position` items were seen.
    Items { pane: u64, position: u64 },
    /// On the clock. `index` is the pane that lives, once a batch has come.
    Time { grid: Grid, start: Option<Start>, index: u64 },
}

/// Times, in nanoseconds since 1970, at which panes begin: pane i at i * window / panes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Grid {
    window: u128,
    panes: u128,
}

impl Grid {
    fn begin(self, index: u64) -> u128 {
        u128::from(index) * self.window / self.panes
    }

    /// The pane that a time is in: the last one that does not begin after it.
    fn index(self, time: u128) -> u64 {
        u64::try_from(((time + 1) * self.panes - 1) / self.window).unwrap_or(u64::MAX - 1)
    }
}

/// When the first batch entered.
#[derive(Clone, Copy, Debug)]
pub(super) struct Start {
    at: Instant,
    /// The same on the clock, in nanoseconds since 1970.
    clock: u128,
}

impl Start {
    fn new(at: Instant) -> Self {
        let clock = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let now = Instant::now();
        let (ahead, ago) = (at.saturating_duration_since(now), now.saturating_duration_since(at));
        Self { at, clock: clock.saturating_sub(ago).as_nanos() + ahead.as_nanos() }
    }

    fn clock(self, at: Instant) -> u128 {
        self.clock + at.saturating_duration_since(self.at).as_nanos()
    }

    /// `None` if it is too far away.
    fn instant(self, clock: u128) -> Option<Instant> {
        let after = clock.saturating_sub(self.clock);
        let seconds = u64::try_from(after / NANOSECONDS).ok()?;
        let nanoseconds = u32::try_from(after % NANOSECONDS).ok()?;
        self.at.checked_add(Duration::new(seconds, nanoseconds))
    }
}

impl Borders {
    /// Panes of a number of items.
    pub(super) fn items(pane: u64) -> Self {
        Self::Items { pane, position: 0 }
    }

    /// Windows of this length, each of `panes` panes.
    pub(super) fn time(window: Duration, panes: usize) -> Self {
        let grid = Grid { window: window.as_nanos(), panes: panes as u128 };
        Self::Time { grid, start: None, index: 0 }
    }

    /// The items of a pane, if that is a number.
    pub(super) fn pane_items(self) -> Option<usize> {
        match self {
            Self::Items { pane, .. } => Some(usize::try_from(pane).unwrap_or(usize::MAX)),
            Self::Time { .. } => None,
        }
    }

    /// The type of `window_start` and `window_end`.
    fn column_type(self) -> DataType {
        match self {
            Self::Items { .. } => DataType::UInt64,
            Self::Time { .. } => DataType::Timestamp(TimeUnit::Millisecond, Some(UTC.into())),
        }
    }

    /// The window that ends with the live pane, which is whole if it is `closed` and the stream
    /// began before it.
    fn extent(self, panes: usize, is_closed: bool) -> Extent {
        let panes = panes as u64;
        match self {
            Self::Items { pane, position } => {
                let begun = position.div_ceil(pane).saturating_sub(panes) * pane;
                let is_whole = is_closed && position - begun == pane * panes;
                Extent { start: begun, end: position, is_whole }
            }
            Self::Time { grid, start, index } => {
                let (first, end) = ((index + 1).saturating_sub(panes), index + 1);
                let is_whole =
                    is_closed && start.is_some_and(|start| start.clock <= grid.begin(first));
                let milliseconds =
                    |index| u64::try_from(grid.begin(index) / 1_000_000).unwrap_or(u64::MAX);
                Extent { start: milliseconds(first), end: milliseconds(end), is_whole }
            }
        }
    }
}

/// A window as its rows name it.
#[derive(Clone, Copy, Debug, Default)]
struct Extent {
    start: u64,
    end: u64,
    is_whole: bool,
}

/// The rows that are emitted: the columns of the window, and the columns of [`ranked_schema`].
pub(super) fn window_schema(item: DataType, borders: Borders) -> SchemaRef {
    let border = |name| Arc::new(Field::new(name, borders.column_type(), false));
    let complete = Arc::new(Field::new("complete", DataType::Boolean, false));
    let ranked = ranked_schema(item);
    let fields = [border("window_start"), border("window_end"), complete];
    let fields = fields.into_iter().chain(ranked.fields().iter().map(Arc::clone));
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

/// A batch of which some items are counted.
struct Work {
    observations: Observations,
    done: usize,
}

/// Counts the items of a column in windows.
pub(super) struct Windows<K, S> {
    panes: PaneQueue<K, S>,
    /// How many make a window.
    pane_count: usize,
    borders: Borders,
    input: Input,
    report: Report,
    memory: StateMemory,
    schema: SchemaRef,
    ranked: SchemaRef,
    closed: u64,
    /// Windows that end before are to be closed, before anything else is counted.
    passed: Option<Instant>,
    work: Option<Work>,
    /// Rows of the window that closed last, and its extent.
    rows: Rows<K>,
    extent: Extent,
    _item: PhantomData<K>,
}

impl<K: Column, S: Summary<K>> Windows<K, S> {
    /// Windows that consist of `pane_count` panes.
    pub(super) fn new(
        panes: PaneQueue<K, S>,
        pane_count: usize,
        borders: Borders,
        input: Input,
        report: Report,
        memory: StateMemory,
    ) -> Self {
        Self {
            panes,
            pane_count,
            borders,
            input,
            report,
            memory,
            schema: window_schema(K::TYPE, borders),
            ranked: ranked_schema(K::TYPE),
            closed: 0,
            passed: None,
            work: None,
            rows: Rows::default(),
            extent: Extent::default(),
            _item: PhantomData,
        }
    }

    /// Sends rows, closes windows and counts, until all that has come is counted or enough is sent.
    fn advance(&mut self, out: &mut Output) -> Flow {
        let mut budget = Budget::new();
        loop {
            while let Some(rows) = self.rows.next_batch(&self.ranked, &mut budget) {
                out.send(self.with_extent(&rows));
            }
            if !self.rows.is_empty() {
                return Flow::HaveOutput;
            }
            if !self.close_passed() && !self.count_to_border() {
                return Flow::NeedInput;
            }
        }
    }

    /// Closes the next window of time whose end has passed; false if there is none.
    fn close_passed(&mut self) -> bool {
        let (Some(now), Borders::Time { grid, start: Some(start), index }) =
            (self.passed, &mut self.borders)
        else {
            return false;
        };
        let live = grid.index(start.clock(now));
        if *index < live && self.panes.observed() > 0 {
            self.close();
            return true;
        }
        // Empty windows have no rows.
        *index = live.max(*index);
        self.passed = None;
        false
    }

    /// Counts the batch in hand up to the next border of items; false if it has been used up.
    fn count_to_border(&mut self) -> bool {
        let Some(Work { observations, mut done }) = self.work.take() else { return false };
        let items = K::lend(observations.items.as_ref());
        let mut end = items.len();
        let mut is_full = false;
        if let Borders::Items { pane, position } = &mut self.borders {
            let room = *pane - *position % *pane;
            end = usize::try_from(room).map_or(end, |room| end.min(done.saturating_add(room)));
            *position += (end - done) as u64;
            is_full = done < end && *position % *pane == 0;
        }
        let weights = observations.weights.as_ref().map(|weights| &weights[done..end]);
        self.panes.live().observe(&Part::new(items, done..end), weights);
        done = end;
        let is_used_up = done == items.len();
        if !is_used_up {
            self.work = Some(Work { observations, done });
        }
        if is_full {
            self.close();
        }
        is_full || !is_used_up
    }

    /// Emits the window that ends with the live pane, and goes on to the next pane.
    fn close(&mut self) {
        self.emit(true);
        self.panes.turn();
        if let Borders::Time { index, .. } = &mut self.borders {
            *index += 1;
        }
    }

    /// Makes the rows of the window that ends with the live pane.
    fn emit(&mut self, is_closed: bool) {
        let counted = self.panes.counted();
        let selected =
            self.report.select(counted.iter().map(Counted::as_ref), self.panes.observed());
        if selected.is_empty() {
            return;
        }
        self.closed += 1;
        self.extent = self.borders.extent(self.pane_count, is_closed);
        self.rows = Rows::new(selected);
    }

    /// Rows of [`window_schema`].
    fn with_extent(&self, ranked: &RecordBatch) -> RecordBatch {
        let Extent { start, end, is_whole } = self.extent;
        let rows = ranked.num_rows();
        let border = |border: u64| -> ArrayRef {
            match self.borders {
                Borders::Items { .. } => Arc::new(UInt64Array::from(vec![border; rows])),
                Borders::Time { .. } => {
                    let milliseconds = i64::try_from(border).unwrap_or(i64::MAX);
                    let column = TimestampMillisecondArray::from(vec![milliseconds; rows]);
                    Arc::new(column.with_timezone(UTC))
                }
            }
        };
        let complete: ArrayRef = Arc::new(BooleanArray::from(vec![is_whole; rows]));
        let columns = [border(start), border(end), complete].into_iter();
        let columns = columns.chain(ranked.columns().iter().map(Arc::clone)).collect();
        let rows = RecordBatch::try_new(SchemaRef::clone(&self.schema), columns);
        rows.expect("built to this schema")
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
        let observations = self.input.read(&input.into_records())?;
        self.memory.counted(&observations.items, || self.panes.state_bytes())?;
        if let Borders::Time { grid, start, index } = &mut self.borders {
            if start.is_none() {
                let first = Start::new(entered);
                *index = grid.index(first.clock);
                *start = Some(first);
            }
            self.passed = Some(entered);
        }
        self.work = Some(Work { observations, done: 0 });
        Ok(self.advance(out))
    }

    fn resume(&mut self, out: &mut Output) -> Result<Flow, OperatorError> {
        Ok(self.advance(out))
    }

    fn wake_at(&self) -> Option<Instant> {
        let Borders::Time { grid, start: Some(start), index } = self.borders else { return None };
        if self.panes.observed() == 0 {
            return None;
        }
        start.instant(grid.begin(index + 1))
    }

    fn wake(&mut self, now: Instant, out: &mut Output) -> Result<Flow, OperatorError> {
        self.passed = Some(now);
        Ok(self.advance(out))
    }

    fn finish(&mut self, out: &mut Output) -> Result<Flow, OperatorError> {
        // The last window is not emitted twice.
        if self.panes.live().observed() > 0 {
            self.emit(false);
        }
        Ok(self.advance(out))
    }

    fn query(
        &self,
        request: &Request,
        _payload: Option<QueryPayload>,
    ) -> Result<Response, QueryError> {
        let question = Question::<K>::read(request, QUERIES)?;
        let counted = self.panes.counted();
        let monitored = counted.iter().map(Counted::as_ref);
        let (observed, unmonitored) = (self.panes.observed(), || self.panes.count_min());
        question.answer(&self.ranked, monitored, observed, unmonitored)
    }

    fn counters(&self) -> Counters {
        let mut counters = self.input.counters();
        counters.push(("windows", self.closed));
        counters.push(("state_bytes", self.panes.state_bytes() as u64));
        counters
    }
}
