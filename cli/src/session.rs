//! A run under the control of its user: waits for the end, shows progress, obeys Ctrl-C.
//!
//! ```text
//! running ── Ctrl-C, SIGTERM, SIGHUP, POST /stop ──► draining ── Ctrl-C, POST /abort,
//!                                                        --drain-seconds ──► aborted
//! ```
//!
//! SIGUSR1 and POST /reopen let sinks open their files again, in any phase.
//!
//! A drain that is asked for twice goes on: supervisors repeat themselves, and a terminal sends its
//! signals to all processes of a job. Only a Ctrl-C, some time after the drain was announced,
//! aborts.

use std::time::{Duration, Instant};

use signal_hook::consts::SIGINT;
use trommel::error::{RunError, RunErrorCause};
use trommel::runtime::{RunHandle, RunPhase};
use trommel::{Metrics, RunOptions, Running, Topology};

use crate::failure::{Failure, RUN_FAILED};
use crate::progress::Progress;
use crate::progress::growth::Growth;
use crate::signals::{REOPEN, RunSignals};

/// Time between two checks for a stop or an abort over HTTP.
const LOOK: Duration = Duration::from_millis(500);
/// Least time between the announcement of a drain and a Ctrl-C that aborts.
const SECOND_THOUGHT: Duration = Duration::from_secs(1);
/// Exit code after Ctrl-C: 128, which shells add to the number of a signal, and that of SIGINT.
const INTERRUPTED: u8 = 130;

/// A running pipeline and its signals.
pub(crate) struct Session {
    running: Running,
    signals: RunSignals,
    progress: Progress,
    /// Limit of a drain.
    drain: Option<Duration>,
    /// Whether Ctrl-C asked for the end.
    is_interrupted: bool,
    /// The last phase that the user was told, and when.
    said: (RunPhase, Instant),
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
        let signals = RunSignals::receive()
            .map_err(|error| Failure::run(format!("cannot receive signals: {error}")))?;
        let running = topology.start(options).map_err(Failure::run)?;
        let said = (RunPhase::Running, Instant::now());
        Ok(Self { running, signals, progress, drain, is_interrupted: false, said })
    }

    /// A handle of the run for other threads.
    pub(crate) fn handle(&self) -> RunHandle {
        self.running.handle()
    }

    /// Waits for the end.
    pub(crate) fn wait(mut self) -> Outcome {
        let handle = self.running.handle();
        let mut growth = Growth::default();
        while !self.rest() && handle.phase() != RunPhase::Aborted {
            self.obey_signals();
            self.say_phase(handle.phase());
            let metrics = handle.metrics();
            growth.news(&metrics).iter().for_each(|line| self.progress.say(line));
            self.progress.draw(&metrics);
        }
        // Ctrl-C in the last moment is in the exit code; the results are printed all the same.
        self.is_interrupted |= self.signals.pending().contains(&SIGINT);
        let result = self.running.join();
        let is_abort = |error: &RunError| {
            matches!(error.cause, RunErrorCause::Aborted | RunErrorCause::Unresponsive(_))
        };
        let was_aborted = result.as_ref().is_err_and(is_abort);
        if was_aborted {
            say_phase(RunPhase::Aborted, &self.progress, &mut self.said);
        }
        self.progress.clear();
        let (metrics, is_interrupted) = (handle.metrics(), self.is_interrupted);
        Outcome { metrics, error: result.err(), is_interrupted, was_aborted }
    }

    /// Waits for the next event; true if the run has ended.
    fn rest(&mut self) -> bool {
        let limit = self.progress.interval().unwrap_or(LOOK);
        self.running.wait_beside(self.signals.descriptor(), limit)
    }

    fn obey_signals(&mut self) {
        for signal in self.signals.pending() {
            if signal == REOPEN {
                self.running.handle().reopen();
                continue;
            }
            self.is_interrupted |= signal == SIGINT;
            let (said, at) = self.said;
            let is_announced = said == RunPhase::Draining && at.elapsed() >= SECOND_THOUGHT;
            if signal == SIGINT && is_announced {
                self.running.abort();
                self.say_phase(RunPhase::Aborted);
            } else {
                match self.drain {
                    Some(limit) => self.running.stop_within(limit),
                    None => self.running.stop(),
                }
                self.say_phase(RunPhase::Draining);
            }
        }
    }

    /// Tells the user once that the run drains or is aborted.
    fn say_phase(&mut self, phase: RunPhase) {
        say_phase(phase, &self.progress, &mut self.said);
    }
}

fn say_phase(phase: RunPhase, progress: &Progress, said: &mut (RunPhase, Instant)) {
    match phase {
        RunPhase::Draining if said.0 == RunPhase::Running => {
            progress.say("stopping: everything that was read is processed; Ctrl-C aborts");
        }
        RunPhase::Aborted if said.0 != phase => {
            progress.say("aborting: batches in flight are lost");
        }
        _ => return,
    }
    *said = (phase, Instant::now());
}

/// The end of a run.
pub(crate) struct Outcome {
    /// Counts of the whole run, also if it failed.
    pub(crate) metrics: Metrics,
    /// The first cause, if the pipeline did not reach its end.
    pub(crate) error: Option<RunError>,
    is_interrupted: bool,
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
        match &self.error {
            None if self.is_interrupted => INTERRUPTED,
            None => 0,
            Some(_) if self.is_interrupted && self.was_aborted => INTERRUPTED,
            Some(_) => RUN_FAILED,
        }
    }
}
