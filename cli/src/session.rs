//! A run under the control of its user: waits for the end, shows progress, obeys Ctrl-C.
//!
//! ```text
//! running ── Ctrl-C, SIGTERM, SIGHUP, POST /stop ──► draining ── Ctrl-C again, POST /abort,
//!                                                        --drain-seconds ──► aborted
//! ```
//!
//! A drain that is asked for twice goes on: supervisors repeat themselves, and a terminal sends its
//! signals to all processes of a job. Only a second Ctrl-C, some time after the first, aborts.

use std::time::{Duration, Instant};

use signal_hook::consts::SIGINT;
use trommel::error::{RunError, RunErrorCause};
use trommel::runtime::{RunHandle, RunPhase};
use trommel::{Metrics, RunOptions, Running, Topology};

use crate::failure::{Failure, RUN_FAILED};
use crate::progress::Progress;
use crate::signals::EndSignals;

/// Time between two checks for a stop or an abort over HTTP.
const LOOK: Duration = Duration::from_millis(500);
/// Least time between a first Ctrl-C and one that aborts.
const SECOND_THOUGHT: Duration = Duration::from_secs(1);
/// Added by shells to the number of a signal that ended a program.
const SIGNAL_STATUS: i32 = 128;

/// A running pipeline and its signals.
pub(crate) struct Session {
    running: Running,
    signals: EndSignals,
    progress: Progress,
    /// Limit of a drain.
    drain: Option<Duration>,
    /// The first signal that asked for the end.
    signal: Option<i32>,
    first_interrupt: Option<Instant>,
    /// The last phase that the user was told.
    said: RunPhase,
}

impl Session {
    /// Starts the pipeline; from here to the end of the run, signals are the session's. A drain is
    /// aborted after `drain`.
    pub(crate) fn start(
        topology: Topology,
        options: RunOptions,
        progress: Progress,
        drain: Option<Duration>,
    ) -> Result<Self, Failure> {
        let signals = EndSignals::receive()
            .map_err(|error| Failure::run(format!("cannot receive signals: {error}")))?;
        let running = topology.start(options).map_err(Failure::run)?;
        let (signal, first_interrupt, said) = (None, None, RunPhase::Running);
        Ok(Self { running, signals, progress, drain, signal, first_interrupt, said })
    }

    /// A handle of the run for other threads.
    pub(crate) fn handle(&self) -> RunHandle {
        self.running.handle()
    }

    /// Waits for the end.
    pub(crate) fn wait(mut self) -> Outcome {
        let handle = self.running.handle();
        while !self.rest() && handle.phase() != RunPhase::Aborted {
            self.obey_signals();
            self.say_phase(handle.phase());
            self.progress.draw(|| handle.metrics());
        }
        // A signal of the last moment is in the exit code; the results are printed all the same.
        self.signal = self.signal.or(self.signals.pending().first().copied());
        let result = self.running.join();
        let is_abort = |error: &RunError| {
            matches!(error.cause, RunErrorCause::Aborted | RunErrorCause::Unresponsive(_))
        };
        let was_aborted = result.as_ref().is_err_and(is_abort);
        if was_aborted {
            say_phase(RunPhase::Aborted, &self.progress, &mut self.said);
        }
        self.progress.clear();
        Outcome { metrics: handle.metrics(), error: result.err(), signal: self.signal, was_aborted }
    }

    /// Waits for the next event; true if the run has ended.
    fn rest(&mut self) -> bool {
        let limit = self.progress.interval().unwrap_or(LOOK);
        self.running.wait_beside(self.signals.descriptor(), limit)
    }

    fn obey_signals(&mut self) {
        for signal in self.signals.pending() {
            self.signal.get_or_insert(signal);
            let is_second = |first: Instant| first.elapsed() >= SECOND_THOUGHT;
            if signal == SIGINT && self.first_interrupt.is_some_and(is_second) {
                self.running.abort();
                self.say_phase(RunPhase::Aborted);
            } else {
                match self.drain {
                    Some(limit) => self.running.stop_within(limit),
                    None => self.running.stop(),
                }
                self.say_phase(RunPhase::Draining);
            }
            if signal == SIGINT {
                self.first_interrupt.get_or_insert_with(Instant::now);
            }
        }
    }

    /// Tells the user once that the run drains or is aborted.
    fn say_phase(&mut self, phase: RunPhase) {
        say_phase(phase, &self.progress, &mut self.said);
    }
}

fn say_phase(phase: RunPhase, progress: &Progress, said: &mut RunPhase) {
    match phase {
        RunPhase::Draining if *said == RunPhase::Running => progress
            .say("stopping: everything that was read is processed; press Ctrl-C again to abort"),
        RunPhase::Aborted if *said != phase => {
            progress.say("aborting: batches in flight are lost");
        }
        _ => return,
    }
    *said = phase;
}

/// The end of a run.
pub(crate) struct Outcome {
    /// Counts of the whole run, also if it failed.
    pub(crate) metrics: Metrics,
    /// The first cause, if the pipeline did not reach its end.
    pub(crate) error: Option<RunError>,
    signal: Option<i32>,
    was_aborted: bool,
}

impl Outcome {
    /// Whether all rows went through: a run that failed for another reason has rows to show.
    pub(crate) fn has_all_rows(&self) -> bool {
        let cause = self.error.as_ref().map(|error| &error.cause);
        cause.is_none_or(|cause| matches!(cause, RunErrorCause::Late(_)))
    }

    /// Writes the reason of a failure to standard error; returns the exit code.
    pub(crate) fn conclude(&self) -> u8 {
        if let Some(error) = &self.error {
            crate::say(&format!("error: {error}"));
        }
        match self.signal {
            Some(signal) if self.was_aborted || self.error.is_none() => {
                u8::try_from(SIGNAL_STATUS + signal).expect("the signals are below 128")
            }
            _ if self.error.is_some() => RUN_FAILED,
            _ => 0,
        }
    }
}
