//! The state that all threads of one run share: the phase of the run, the first cause of its
//! failure, and all doorbells.

use std::mem;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering, fence};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::{Duration, Instant};

use crate::channel::Doorbell;
use crate::error::{RunError, RunErrorCause};
use crate::operator::Commit;
use crate::sync::counter::nanoseconds;
use crate::sync::lock;

/// Phases of a run, in their order. A run never goes back to an earlier phase.
///
/// ```text
/// Running ── stop() ──► Draining ── abort(), deadline ──► Aborted
///    └────────── abort(), a stage fails ────────────────────▲
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    Running,
    /// The sources have stopped; the stages process the batches in flight.
    Draining,
    /// Every thread ends after its present call.
    Aborted,
}

/// Results that wait for the good end of the run to become permanent.
#[derive(Default)]
struct Commits {
    waiting: Vec<(String, &'static str, Commit)>,
    /// A stage whose result was dropped because the run was aborted.
    discarded: Option<(String, &'static str)>,
}

impl Commits {
    fn discard(&mut self) {
        for (stage, operator, commit) in self.waiting.drain(..) {
            drop(commit);
            self.discarded.get_or_insert((stage, operator));
        }
    }
}

/// Copies of a divided stage whose threads end together: a query needs the share of each copy, also
/// of one that has used its input up.
pub(crate) struct Together {
    /// Number of copies that have not ended.
    left: AtomicUsize,
    /// The bells of the threads of the copies.
    bells: Vec<Arc<Doorbell>>,
}

impl Together {
    /// A copy for each bell.
    pub(crate) fn new(bells: Vec<Arc<Doorbell>>) -> Self {
        Self { left: AtomicUsize::new(bells.len()), bells }
    }

    /// Notes that a copy has ended; the last one wakes the threads of all.
    pub(crate) fn end_one(&self) {
        // Relaxed, here and below: the number carries no data, and the doorbell orders it against
        // a wait.
        if self.left.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.bells.iter().for_each(|bell| bell.ring());
        }
    }

    /// Whether all copies have ended.
    pub(crate) fn have_ended(&self) -> bool {
        self.left.load(Ordering::Relaxed) == 0
    }
}

/// The number that stands for no deadline.
const NEVER: u64 = u64::MAX;

pub(crate) struct Shared {
    phase: AtomicU8,
    started: Instant,
    /// The deadline of a drain, in nanoseconds after the start.
    deadline_ns: AtomicU64,
    first_cause: Mutex<Option<RunError>>,
    ended_at: OnceLock<Instant>,
    /// Calls that make results permanent when the run has ended well.
    commits: Mutex<Commits>,
    /// Sinks that still need input.
    needy_sinks: AtomicUsize,
    /// Whether the run drains because no sink needs input.
    is_sated: AtomicBool,
    /// Number of requests to open files again.
    reopenings: AtomicUsize,
    bells: Vec<Arc<Doorbell>>,
}

impl Shared {
    pub(crate) fn new(bells: Vec<Arc<Doorbell>>, needy_sinks: usize) -> Self {
        Self {
            phase: AtomicU8::new(Phase::Running as u8),
            started: Instant::now(),
            deadline_ns: AtomicU64::new(NEVER),
            first_cause: Mutex::new(None),
            ended_at: OnceLock::new(),
            commits: Mutex::new(Commits::default()),
            needy_sinks: AtomicUsize::new(needy_sinks),
            is_sated: AtomicBool::new(false),
            reopenings: AtomicUsize::new(0),
            bells,
        }
    }

    /// Notes that every thread has ended.
    pub(crate) fn end(&self) {
        let _first_end_stays = self.ended_at.set(Instant::now());
    }

    /// Time from the start until now, or until the end.
    pub(crate) fn wall(&self) -> Duration {
        let until = self.ended_at.get().copied().unwrap_or_else(Instant::now);
        until.duration_since(self.started)
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.ended_at.get().is_some()
    }

    pub(crate) fn phase(&self) -> Phase {
        // Relaxed: the phase carries no data, and the doorbell orders it against a wait.
        match self.phase.load(Ordering::Relaxed) {
            0 => Phase::Running,
            1 => Phase::Draining,
            _ => Phase::Aborted,
        }
    }

    /// Advances to `phase`, unless the run has reached this phase or a later one.
    pub(crate) fn advance(&self, phase: Phase) {
        self.phase.fetch_max(phase as u8, Ordering::Relaxed);
        if phase == Phase::Aborted {
            self.commits().discard();
        }
        self.ring_all();
    }

    /// Asks all threads to let their operators open files again.
    pub(crate) fn reopen(&self) {
        // Relaxed: the number carries no data, and the doorbell orders it against a wait.
        self.reopenings.fetch_add(1, Ordering::Relaxed);
        self.ring_all();
    }

    /// Number of requests to open files again so far.
    pub(crate) fn reopenings(&self) -> usize {
        self.reopenings.load(Ordering::Relaxed)
    }

    fn ring_all(&self) {
        for bell in &self.bells {
            bell.ring();
        }
    }

    /// Lowers the deadline at which draining becomes aborting.
    pub(crate) fn set_deadline(&self, within: Duration) {
        let at = nanoseconds(self.started.elapsed().saturating_add(within));
        self.deadline_ns.fetch_min(at, Ordering::Relaxed);
    }

    pub(crate) fn deadline(&self) -> Option<Instant> {
        match self.deadline_ns.load(Ordering::Relaxed) {
            NEVER => None,
            at => self.started.checked_add(Duration::from_nanos(at)),
        }
    }

    /// Aborts a drain whose deadline has passed. Returns the deadline that is still to come, if the
    /// run drains. Every thread that waits calls this, because a stage that does not return from
    /// its call cannot.
    pub(crate) fn keep_deadline(&self) -> Option<Instant> {
        let deadline = self.deadline().filter(|_| self.phase() == Phase::Draining)?;
        if deadline > Instant::now() {
            return Some(deadline);
        }
        self.advance(Phase::Aborted);
        None
    }

    fn commits(&self) -> MutexGuard<'_, Commits> {
        lock(&self.commits)
    }

    /// Calls `commit` when the run has ended well.
    pub(crate) fn commit_at_end(&self, stage: String, operator: &'static str, commit: Commit) {
        let mut commits = self.commits();
        commits.waiting.push((stage, operator, commit));
        // The phase is read under the lock: an abort either finds the commit or is seen here.
        if self.phase() == Phase::Aborted {
            commits.discard();
        }
    }

    /// Makes the results permanent, unless the run has failed. Every thread has ended.
    pub(crate) fn commit(&self) {
        let Commits { waiting, discarded } = mem::take(&mut *self.commits());
        if let Some((stage, operator)) = discarded {
            return self.keep(RunError { stage, operator, cause: RunErrorCause::Aborted });
        }
        for (stage, operator, commit) in waiting {
            if let Err(error) = commit() {
                self.keep(RunError { stage, operator, cause: RunErrorCause::Failed(error) });
            }
        }
    }

    /// Notes that a sink needs no more input, or has ended. When this was the last sink with a
    /// need, the run drains.
    pub(crate) fn release_sink(&self) {
        // Relaxed: the number carries no data.
        if self.needy_sinks.fetch_sub(1, Ordering::Relaxed) == 1 && self.phase() == Phase::Running {
            self.is_sated.store(true, Ordering::Relaxed);
            // A thread that sees the phase sees the reason, too: this fence pairs with the fence of
            // `is_sated`.
            fence(Ordering::Release);
            self.advance(Phase::Draining);
        }
    }

    /// Whether the run drains because no sink needs input. The caller reads [`Self::phase`] before.
    pub(crate) fn is_sated(&self) -> bool {
        fence(Ordering::Acquire);
        self.is_sated.load(Ordering::Relaxed)
    }

    /// Ends the run because of `error`. Only the first error is kept, because later errors are
    /// consequences. An error that did not end the run is replaced, though.
    pub(crate) fn fail(&self, error: RunError) {
        self.keep(error);
        self.advance(Phase::Aborted);
    }

    /// Lets the run go on to its end, and fail there.
    pub(crate) fn fail_late(&self, error: RunError) {
        self.keep(error);
    }

    fn keep(&self, error: RunError) {
        let is_late = |error: &RunError| matches!(error.cause, RunErrorCause::Late(_));
        let mut first = lock(&self.first_cause);
        if first.as_ref().is_none_or(|first| is_late(first) && !is_late(&error)) {
            *first = Some(error);
        } else {
            tracing::debug!(%error, "after the first failure");
        }
    }

    pub(crate) fn take_first_cause(&self) -> Option<RunError> {
        lock(&self.first_cause).take()
    }
}
