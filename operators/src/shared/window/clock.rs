//! The clock of a stream: the number of its items, and the time since its beginning.

use std::time::Instant;

use super::Extent;

/// Position and time of a stream, from which the stamps of its items follow.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StreamClock {
    window: Extent,
    /// Number of items so far.
    position: u64,
    /// Nanoseconds until the last batch entered. The time never decreases: a batch that a younger
    /// batch has overtaken enters at the time of the younger batch.
    time: u64,
    /// Time at which the first batch of this run entered, and the nanoseconds of earlier runs.
    start: Option<Instant>,
    before: u64,
}

impl StreamClock {
    /// The clock of a new stream, with stamps in the unit of `window`.
    pub(crate) fn new(window: Extent) -> Self {
        Self { window, position: 0, time: 0, start: None, before: 0 }
    }

    /// Continues from the position and the time at which an earlier run has ended.
    pub(crate) fn resume(&mut self, position: u64, time: u64) {
        (self.position, self.time, self.before) = (position, time, time);
    }

    /// Whether no batch of this run has entered.
    pub(crate) fn is_new(&self) -> bool {
        self.start.is_none()
    }

    /// Notes that a batch entered the stream.
    pub(crate) fn enter(&mut self, entered: Instant) {
        let start = *self.start.get_or_insert(entered);
        let since = entered.saturating_duration_since(start).as_nanos();
        let time = self.before.saturating_add(u64::try_from(since).unwrap_or(u64::MAX));
        self.time = self.time.max(time);
    }

    /// Number of items so far.
    pub(crate) fn position(&self) -> u64 {
        self.position
    }

    /// Nanoseconds of all runs until the last batch entered.
    pub(crate) fn time(&self) -> u64 {
        self.time
    }

    /// The stamp of the next item.
    pub(crate) fn stamp(&self) -> u64 {
        match self.window {
            Extent::Nanoseconds(_) => self.time,
            Extent::Items(_) | Extent::Endless => self.position,
        }
    }

    /// Counts an item, and returns the stamp of the item.
    pub(crate) fn advance(&mut self) -> u64 {
        let stamp = self.stamp();
        self.position += 1;
        stamp
    }

    /// Number of items, from the next item on, that are in one [cell](Extent::cell).
    pub(crate) fn left_in_cell(&self) -> usize {
        self.window.left_in_cell(self.position)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn stamps_are_positions_or_times() {
        let mut clock = StreamClock::new(Extent::Items(8));
        assert_eq!([(); 3].map(|()| clock.advance()), [0, 1, 2]);
        assert_eq!((clock.left_in_cell(), clock.position()), (1, 3));
        let (mut clock, start) = (StreamClock::new(Extent::Nanoseconds(100)), Instant::now());
        assert!(clock.is_new());
        let entered = |clock: &mut StreamClock, ns| {
            clock.enter(start + Duration::from_nanos(ns));
            clock.advance()
        };
        assert_eq!(
            [0, 70, 30].map(|ns| entered(&mut clock, ns)),
            [0, 70, 70],
            "it never goes back"
        );
        let mut later = StreamClock::new(Extent::Nanoseconds(100));
        later.resume(clock.position(), clock.time());
        assert_eq!([0, 5].map(|ns| entered(&mut later, ns)), [70, 75]);
        assert_eq!((later.position(), later.left_in_cell()), (5, usize::MAX));
    }
}
