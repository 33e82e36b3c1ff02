//! Waiting: without the interpreter's lock, and with an eye on signals.

use std::time::{Duration, Instant};

use pyo3::prelude::*;

/// Time between two looks at the signals: Ctrl-C is to stop a call within 100 ms.
pub(crate) const TICK: Duration = Duration::from_millis(20);

/// Calls `step` without the lock until it answers. Each call waits for at most [`TICK`]. An
/// exception of a signal handler, such as `KeyboardInterrupt`, ends the wait.
pub(crate) fn until<T: Send>(
    py: Python<'_>,
    mut step: impl FnMut() -> Option<T> + Send,
) -> PyResult<T> {
    loop {
        if let Some(answer) = py.detach(&mut step) {
            return Ok(answer);
        }
        py.check_signals()?;
    }
}

/// Says when it is time for the next look at the signals, in a loop that works.
pub(crate) struct Pace(Instant);

impl Pace {
    pub(crate) fn new() -> Self {
        Self(Instant::now())
    }

    /// Whether [`TICK`] has passed since the last time that this was true.
    pub(crate) fn is_due(&mut self) -> bool {
        let is_due = self.0.elapsed() >= TICK;
        if is_due {
            self.0 = Instant::now();
        }
        is_due
    }
}
