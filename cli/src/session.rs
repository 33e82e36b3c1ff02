//! A run under the control of its user: waits for the end, shows progress, obeys Ctrl-C.
//!
//! ```text
//! running ── Ctrl-C, SIGTERM, POST /stop ──► draining ── the same again ──► aborted
//! ```

use std::time::Duration;

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use trommel::error::RunError;
use trommel::{Metrics, QueryHandle, RunOptions, Running, Topology};

use crate::failure::{Failure, RUN_FAILED};
use crate::progress::Progress;

/// How long a signal may wait; short enough to feel instant.
pub(crate) const SLICE: Duration = Duration::from_millis(50);

/// What a shell adds to the number of a signal that ended a program.
const SIGNAL_STATUS: i32 = 128;

/// A pipeline at work.
pub(crate) struct Session {
    running: Running,
    signals: Signals,
    progress: Progress,
    /// The first signal that asked for the end.
    signal: Option<i32>,
    phase: Phase,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Running,
    Draining,
    Aborted,
}

impl Session {
    /// Starts the pipeline; from here on, signals are the session's.
    pub(crate) fn start(
        topology: Topology,
        options: RunOptions,
        progress: Progress,
    ) -> Result<Self, Failure> {
        let signals = Signals::new([SIGINT, SIGTERM])
            .map_err(|error| Failure::run(format!("cannot receive signals: {error}")))?;
        let running = topology.start(options).map_err(Failure::run)?;
        Ok(Self { running, signals, progress, signal: None, phase: Phase::Running })
    }

    /// Waits for at most `limit` and does what is due; true when there is nothing left to wait for.
    pub(crate) fn step(&mut self, limit: Duration) -> bool {
        if self.running.wait(limit) {
            return true;
        }
        let pending: Vec<i32> = self.signals.pending().collect();
        for signal in pending {
            self.signal.get_or_insert(signal);
            self.stop();
        }
        self.progress.draw(&self.running.metrics());
        self.phase == Phase::Aborted
    }

    /// Ends the sources; when they are at it already, ends everything.
    pub(crate) fn stop(&mut self) {
        self.phase = match self.phase {
            Phase::Running => {
                self.running.stop();
                let note =
                    "stopping: what was read is still processed; press Ctrl-C again to abort";
                self.progress.say(note);
                Phase::Draining
            }
            Phase::Draining => {
                self.running.abort();
                self.progress.say("aborting: what is in flight is lost");
                Phase::Aborted
            }
            Phase::Aborted => Phase::Aborted,
        };
    }

    /// Waits for the end.
    pub(crate) fn wait(mut self) -> Outcome {
        while !self.step(SLICE) {}
        self.end()
    }

    /// What came of it, when [`Self::step`] has said that nothing is left to wait for.
    pub(crate) fn end(self) -> Outcome {
        let before = self.running.metrics();
        let result = self.running.join();
        self.progress.clear();
        let (metrics, error) = match result {
            Ok(metrics) => (metrics, None),
            Err(error) => (before, Some(error)),
        };
        Outcome { metrics, error, signal: self.signal, was_aborted: self.phase == Phase::Aborted }
    }

    pub(crate) fn metrics(&self) -> Metrics {
        self.running.metrics()
    }

    pub(crate) fn queries(&self) -> QueryHandle {
        self.running.queries()
    }
}

/// How a run ended.
pub(crate) struct Outcome {
    /// What was counted, up to the failure if it failed.
    pub(crate) metrics: Metrics,
    /// The first cause, if the pipeline did not reach its end.
    pub(crate) error: Option<RunError>,
    signal: Option<i32>,
    was_aborted: bool,
}

impl Outcome {
    /// Says on standard error why the run failed, if it did, and gives the code to exit with.
    pub(crate) fn conclude(&self) -> u8 {
        if let Some(error) = &self.error {
            crate::say(&format!("error: {error}"));
        }
        match self.signal {
            Some(signal) if self.was_aborted || self.error.is_none() => {
                u8::try_from(SIGNAL_STATUS + signal).expect("SIGINT and SIGTERM are below 128")
            }
            _ if self.error.is_some() => RUN_FAILED,
            _ => 0,
        }
    }
}
