//! What a node could do next.

use std::time::Instant;

/// A piece of work: one call of the operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Work {
    /// Ask the source for more.
    Produce,
    /// Ask the source for what it has taken: the run drains.
    StopSource,
    /// Process the first message of the inbox.
    Take,
    Resume,
    /// Process the first of the replies.
    Reply,
    /// The time has come that the operator named.
    Wake,
    Finish,
    /// An input closed without its end.
    Truncated,
}

/// What a node could do next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    Now(Work),
    /// Something, from this time on; or earlier, when something arrives.
    At(Instant),
    /// Nothing before something arrives.
    Wait,
}

/// What a node needs to know of its group to find its next step.
#[derive(Debug, Clone, Copy)]
pub(super) struct View {
    pub(super) is_draining: bool,
    /// Whether callers and readers of standing queries may be answered now.
    pub(super) may_answer: bool,
    /// `None` to be told of each time that is waited for, and not of the work that it brings.
    pub(super) now: Option<Instant>,
}

impl Step {
    /// `work` if it has come by the time `at`, otherwise the wait for it.
    pub(super) fn at(at: Option<Instant>, now: Option<Instant>, work: Work) -> Self {
        match (at, now) {
            (Some(at), Some(now)) if at <= now => Self::Now(work),
            (Some(at), _) => Self::At(at),
            (None, _) => Self::Wait,
        }
    }
}
