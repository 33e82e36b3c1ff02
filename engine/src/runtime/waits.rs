//! All waits of the runtime, each with the reason for its length.
//!
//! Only [`CREDIT_CHECK`], [`UNWATCHABLE_RETRY`] and [`POLL_RETRY`] stand in place of a bell that
//! nobody can ring. The other constants bound a cost or an end: with any value of theirs, each
//! thread still wakes up for each message. `docs/reference/stage-loop.md` tells the protocol.

use std::time::Duration;

/// Time for which an idle thread spins before the thread parks. A parked thread costs its waker a
/// system call and itself about this time until it runs again, so spinning for longer would cost
/// more than parking, and spinning for less would park threads whose work is about to arrive.
pub(super) const SPIN: Duration = Duration::from_micros(50);

/// Looks for work between two readings of the clock by a spinning thread, so that the clock costs
/// a small part of the spin.
pub(super) const SPIN_LOOKS_PER_CLOCK: u32 = 64;

/// Longest time for which a thread parks. The thread then adds the wait to the metrics and parks
/// again, so the idle time that a reader sees is at most this old.
pub(super) const PARK_MAX: Duration = Duration::from_secs(1);

/// Shortest time for which background work lets other work of its thread go first. After a short
/// call, a multiple of its duration alone would let nothing else go first.
pub(super) const BACKGROUND_WAIT_MIN: Duration = Duration::from_micros(500);

/// After a background call of duration d, background work waits for this many times d. So
/// background work takes at most a quarter of a thread that has other work, and the rest of the
/// time feeds other threads.
pub(super) const BACKGROUND_WAIT_FACTOR: u32 = 3;

/// Time between two looks at the credit of another thread, while a query waits for that credit.
/// The other thread earns credit with each call and rings no bell for that, because a ring costs a
/// fence in each call of the data path.
pub(super) const CREDIT_CHECK: Duration = Duration::from_micros(500);

/// Time between two publications of the operators' own counters: short for a person who watches,
/// and long beside a publication, which takes locks and allocates.
pub(super) const PUBLISHING: Duration = Duration::from_millis(100);

/// Pause of a node whose descriptor the operating system cannot watch, such as that of a regular
/// file, before the node tries again.
pub(super) const UNWATCHABLE_RETRY: Duration = Duration::from_millis(1);

/// Time that a thread whose parts have all ended spends on answers to callers that still wait, so
/// that no number of callers delays the end of a run.
pub(super) const LAST_ANSWERS: Duration = Duration::from_millis(100);

/// Time between two looks of `join` at the phase of the run: `join` notices an abort at most this
/// late.
pub(super) const JOIN_CHECK: Duration = Duration::from_millis(100);

/// Wait after the operating system has refused, for lack of memory, to wait for a descriptor.
pub(super) const POLL_RETRY: Duration = Duration::from_millis(50);

/// Time that an aborted run gives an operator to return from its call. After this time `join`
/// names the operator and leaves its thread behind.
pub(super) const ABORT_GRACE: Duration = Duration::from_secs(5);
