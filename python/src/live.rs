//! All runs of the process, so that none outlives the interpreter, and none is used in a fork.
//!
//! A lock guards each run and the list of runs. Neither is held while anything waits for longer
//! than a tick.

use std::mem;
use std::process;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use trommel::Running;
use trommel::error::RunError;
use trommel::runtime::RunHandle;

use crate::wait::TICK;

/// The longest that the end of the interpreter waits for all runs.
const SHUTDOWN: Duration = Duration::from_secs(10);
/// The longest that an interrupted call waits for the end of its run.
const INTERRUPTED: Duration = Duration::from_millis(50);

/// Runs that may still have threads.
static LIVE: Mutex<Vec<Weak<Cell>>> = Mutex::new(Vec::new());
/// Runs that no one refers to any more, but whose threads may not have ended.
static ABANDONED: Mutex<Vec<Running>> = Mutex::new(Vec::new());

/// A lock whose data is consistent after each operation is not spoilt by a panic.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A run, shared by Python objects.
pub(crate) struct Cell {
    pub(crate) handle: RunHandle,
    /// The process that started it.
    process: u32,
    state: Mutex<State>,
}

enum State {
    Running(Running),
    /// `None` if it went well.
    Ended(Option<Arc<RunError>>),
    /// While the end is taken.
    Ending,
}

impl Cell {
    pub(crate) fn new(running: Running) -> Arc<Self> {
        let cell = Arc::new(Self {
            handle: running.handle(),
            process: process::id(),
            state: Mutex::new(State::Running(running)),
        });
        lock(&ABANDONED).retain_mut(|running| !running.wait(Duration::ZERO));
        let mut live = lock(&LIVE);
        live.retain(|cell| cell.strong_count() > 0);
        live.push(Arc::downgrade(&cell));
        cell
    }

    /// Refuses the use of the run in a fork of its process, which has none of its threads.
    pub(crate) fn check_process(&self) -> PyResult<()> {
        let here = process::id();
        if self.process == here {
            return Ok(());
        }
        let there = self.process;
        Err(PyRuntimeError::new_err(format!(
            "this pipeline runs in process {there}, and not in {here}, which was forked from it; \
             start it in the process that uses it"
        )))
    }

    /// Waits for the end, for at most [`TICK`]. `None` if it has not come.
    pub(crate) fn wait(&self) -> Option<Option<Arc<RunError>>> {
        self.wait_for(TICK)
    }

    /// Whether the run has ended.
    pub(crate) fn has_ended(&self) -> bool {
        self.wait_for(Duration::ZERO).is_some()
    }

    fn wait_for(&self, limit: Duration) -> Option<Option<Arc<RunError>>> {
        let mut state = lock(&self.state);
        if let State::Running(running) = &mut *state
            && !running.wait(limit)
        {
            return None;
        }
        let outcome = match mem::replace(&mut *state, State::Ending) {
            State::Running(running) => running.join().err().map(Arc::new),
            State::Ended(outcome) => outcome,
            State::Ending => unreachable!("the lock is held until the end is there"),
        };
        *state = State::Ended(outcome.clone());
        Some(outcome)
    }

    /// Aborts the run and gives its threads a moment to end, after a signal.
    pub(crate) fn interrupt(&self) {
        self.handle.abort();
        self.wait_until(Instant::now() + INTERRUPTED);
    }

    fn wait_until(&self, limit: Instant) {
        while Instant::now() < limit {
            if self.wait().is_some() {
                return;
            }
        }
    }
}

impl Drop for Cell {
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        let State::Running(running) = mem::replace(state, State::Ending) else { return };
        if self.process == process::id() {
            running.abort();
            lock(&ABANDONED).push(running);
        } else {
            // Its threads are in another process; there is nothing here to wait for.
            mem::forget(running);
        }
    }
}

/// Aborts all runs of this process and waits for their threads. Called at the end of the
/// interpreter.
#[pyfunction]
pub(crate) fn shutdown(py: Python<'_>) {
    py.detach(|| {
        let limit = Instant::now() + SHUTDOWN;
        let live: Vec<Arc<Cell>> =
            lock(&LIVE).drain(..).filter_map(|cell| cell.upgrade()).collect();
        let ours = live.iter().filter(|cell| cell.process == process::id());
        let ours: Vec<&Arc<Cell>> = ours.collect();
        ours.iter().for_each(|cell| cell.handle.abort());
        ours.iter().for_each(|cell| cell.wait_until(limit));
        drop(live);
        let abandoned: Vec<Running> = lock(&ABANDONED).drain(..).collect();
        for mut running in abandoned {
            running.wait(limit.saturating_duration_since(Instant::now()));
        }
    });
}
