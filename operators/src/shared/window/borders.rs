//! Where windows begin and end: after a number of items, or on the clock.
//!
//! A window consists of panes: a pane is the distance between the beginnings of two windows.
//! Borders of windows of time are whole multiples of the slide since 1970, in whole nanoseconds, so
//! that windows of different runs are the same windows. Between batches, time follows the clock
//! that never jumps. With each batch the clock of the day is read; if that clock has jumped, such
//! as after a suspension, the borders follow the new time. Each item is still counted in one
//! window: after a jump back, the live pane continues as the pane of the new time. A window that
//! the stream did not fill, because the stream began or ended within the window, is marked:
//! `complete` is false.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use arrow_array::{ArrayRef, BooleanArray, TimestampMillisecondArray, UInt64Array};
use arrow_schema::{DataType, Field, FieldRef, TimeUnit};

/// The zone of the columns of time.
const UTC: &str = "+00:00";
const NANOSECONDS: u128 = 1_000_000_000;
/// Minimum difference of the two clocks that counts as a jump.
const JUMP: u128 = NANOSECONDS;

/// Where windows begin and end.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Borders {
    /// After a number of items, at least 1. `position` is the number of items so far.
    Items { pane: u64, position: u64 },
    /// On the clock. `index` is the live pane, or 0 before the first batch.
    Time { grid: Grid, start: Option<Start>, index: u64 },
}

/// Times, in nanoseconds since 1970, at which panes begin: pane i begins at i * window / panes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Grid {
    window: u128,
    panes: u128,
}

impl Grid {
    /// Nanoseconds of a window.
    pub(crate) fn nanoseconds(self) -> u64 {
        u64::try_from(self.window).expect("a window is at most 10^18 ns")
    }

    fn begin(self, index: u64) -> u128 {
        u128::from(index) * self.window / self.panes
    }

    /// The pane that contains a time: the last pane that does not begin after the time.
    fn index(self, time: u128) -> u64 {
        u64::try_from(((time + 1) * self.panes - 1) / self.window).unwrap_or(u64::MAX - 1)
    }
}

/// Time at which the first batch entered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Start {
    at: Instant,
    /// The same time on the clock of the day, in nanoseconds since 1970.
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

    /// The time `clock` as an instant; `None` if the time is too far away.
    fn instant(self, clock: u128) -> Option<Instant> {
        let after = clock.saturating_sub(self.clock);
        let seconds = u64::try_from(after / NANOSECONDS).ok()?;
        let nanoseconds = u32::try_from(after % NANOSECONDS).ok()?;
        self.at.checked_add(Duration::new(seconds, nanoseconds))
    }
}

impl Borders {
    /// Panes of a number of items.
    pub(crate) fn items(pane: u64) -> Self {
        Self::Items { pane, position: 0 }
    }

    /// Windows of this length, each of `panes` panes.
    pub(crate) fn time(window: Duration, panes: usize) -> Self {
        let grid = Grid { window: window.as_nanos(), panes: panes as u128 };
        Self::Time { grid, start: None, index: 0 }
    }

    /// The number of items of a pane, if panes consist of items.
    pub(crate) fn pane_items(self) -> Option<usize> {
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

    /// The window that ends with the live pane. The window is complete if the pane `is_closed` and
    /// the stream began before the window.
    pub(crate) fn span(self, panes: usize, is_closed: bool) -> WindowSpan {
        let panes = panes as u64;
        match self {
            Self::Items { pane, position } => {
                let begun = position.div_ceil(pane).saturating_sub(panes) * pane;
                let is_whole = is_closed && position - begun == pane * panes;
                WindowSpan { start: begun, end: position, is_whole }
            }
            Self::Time { grid, start, index } => {
                let (first, end) = ((index + 1).saturating_sub(panes), index + 1);
                let is_whole =
                    is_closed && start.is_some_and(|start| start.clock <= grid.begin(first));
                let milliseconds =
                    |index| u64::try_from(grid.begin(index) / 1_000_000).unwrap_or(u64::MAX);
                WindowSpan { start: milliseconds(first), end: milliseconds(end), is_whole }
            }
        }
    }
}

/// A window as its rows name it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct WindowSpan {
    start: u64,
    end: u64,
    is_whole: bool,
}

impl Borders {
    /// The columns that name a window: `window_start`, `window_end` and `complete`.
    pub(crate) fn fields(self) -> [FieldRef; 3] {
        let border = |name| Arc::new(Field::new(name, self.column_type(), false));
        let complete = Arc::new(Field::new("complete", DataType::Boolean, false));
        [border("window_start"), border("window_end"), complete]
    }

    /// The columns of `rows` rows of a window.
    pub(crate) fn columns(self, span: WindowSpan, rows: usize) -> [ArrayRef; 3] {
        let border = |border: u64| -> ArrayRef {
            match self {
                Self::Items { .. } => Arc::new(UInt64Array::from(vec![border; rows])),
                Self::Time { .. } => {
                    let milliseconds = i64::try_from(border).unwrap_or(i64::MAX);
                    let column = TimestampMillisecondArray::from(vec![milliseconds; rows]);
                    Arc::new(column.with_timezone(UTC))
                }
            }
        };
        let complete: ArrayRef = Arc::new(BooleanArray::from(vec![span.is_whole; rows]));
        [border(span.start), border(span.end), complete]
    }

    /// A number for the unit of windows in snapshots: 1 for items, 2 for time.
    pub(crate) fn kind(self) -> u8 {
        match self {
            Self::Items { .. } => 1,
            Self::Time { .. } => 2,
        }
    }

    /// The number of items so far, or the number of the live pane of time.
    pub(crate) fn progress(self) -> u64 {
        match self {
            Self::Items { position, .. } => position,
            Self::Time { index, .. } => index,
        }
    }

    /// Continues from the [progress](Self::progress) of an earlier stream.
    pub(crate) fn resume(&mut self, progress: u64) {
        match self {
            Self::Items { position, .. } => *position = progress,
            Self::Time { index, .. } => *index = progress,
        }
    }

    /// Notes that a batch entered the stream. The first batch begins the pane of its time.
    pub(crate) fn enter(&mut self, entered: Instant) {
        if matches!(self, Self::Time { .. }) {
            self.enter_at(Start::new(entered));
        }
    }

    fn enter_at(&mut self, now: Start) {
        let Self::Time { grid, start, index } = self else { return };
        match start {
            // A restored stream continues with its live pane, even if the time of the pane has
            // passed.
            None if *index == 0 => *index = grid.index(now.clock),
            // The clocks agree, so the borders stay.
            Some(begun) if begun.clock(now.at).abs_diff(now.clock) <= JUMP => return,
            // After a jump back the live pane gets a new number. After a jump forward, `passed`
            // shows that the live pane has ended.
            Some(begun) if now.clock < begun.clock(now.at) => *index = grid.index(now.clock),
            _ => {}
        }
        *start = Some(now);
    }

    /// The pane of time that contains `now`, if that pane is after the live pane.
    pub(crate) fn passed(self, now: Instant) -> Option<u64> {
        let Self::Time { grid, start: Some(start), index } = self else { return None };
        Some(grid.index(start.clock(now))).filter(|live| index < *live)
    }

    /// Skips to the pane `live` of time. No items came before that pane.
    pub(crate) fn skip_to(&mut self, live: u64) {
        if let Self::Time { index, .. } = self {
            *index = live.max(*index);
        }
    }

    /// Goes to the next pane of time.
    pub(crate) fn turn(&mut self) {
        if let Self::Time { index, .. } = self {
            *index += 1;
        }
    }

    /// Takes as many of `left` items as fit into the live pane. Returns the number of taken items,
    /// and whether the pane is then full.
    pub(crate) fn advance(&mut self, left: usize) -> (usize, bool) {
        let Self::Items { pane, position } = self else { return (left, false) };
        let room = *pane - *position % *pane;
        let taken = usize::try_from(room).map_or(left, |room| room.min(left));
        *position += taken as u64;
        (taken, taken > 0 && *position % *pane == 0)
    }

    /// The time at which the live pane ends.
    pub(crate) fn end(self) -> Option<Instant> {
        let Self::Time { grid, start: Some(start), index } = self else { return None };
        start.instant(grid.begin(index + 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn borders_are_those_of_the_clock_after_a_jump() {
        let second = Duration::from_secs(1);
        let begin = Instant::now();
        let at = |seconds: u32, clock: u128| Start {
            at: begin + second * seconds,
            clock: clock * NANOSECONDS,
        };
        let mut borders = Borders::time(Duration::from_secs(10), 1);
        borders.enter_at(at(0, 1_000_005));
        // The clocks may differ a little, such as while a network adjusts them.
        borders.enter_at(at(1, 1_000_006));
        assert_eq!(borders.end(), Some(begin + second * 5));
        // A jump forward: the window of the old time has passed.
        borders.enter_at(at(2, 1_003_602));
        assert_eq!(borders.passed(begin + second * 2), Some(100_360));
        borders.skip_to(100_360);
        assert_eq!(borders.end(), Some(begin + second * 10));
        // A jump back: the live pane continues as the pane of the new time, and is not complete.
        borders.enter_at(at(3, 1_000_007));
        assert_eq!(borders.passed(begin + second * 3), None);
        assert_eq!(borders.end(), Some(begin + second * 6));
        let span = borders.span(1, true);
        assert_eq!((span.start, span.is_whole), (1_000_000_000, false));
        borders.turn();
        assert!(borders.span(1, true).is_whole);
    }
}
