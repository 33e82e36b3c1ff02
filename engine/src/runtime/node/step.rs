//! The next step of a node.

use std::time::Instant;

/// A piece of work: one call of the operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Work {
    /// Ask the source for more.
    Produce,
    /// Ask the source for the items that it has taken: the run drains.
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

/// The next step of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    Now(Work),
    /// No work before this time, unless a message arrives.
    At(Instant),
    /// No work before a message arrives.
    Wait,
}

/// The state of a group that the next step of its nodes depends on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct GroupState {
    pub(crate) is_draining: bool,
    /// Whether callers and readers of standing queries may be answered now.
    pub(crate) may_answer: bool,
    /// Whether no other node has work, so that one may work in the background.
    pub(crate) is_idle: bool,
    /// `None` for the time that is waited for in place of the work that it brings.
    pub(crate) now: Option<Instant>,
}

impl Step {
    /// `work` if it has come by the time `at`, otherwise the wait for it.
    pub(crate) fn at(at: Option<Instant>, now: Option<Instant>, work: Work) -> Self {
        match (at, now) {
            (Some(at), Some(now)) if at <= now => Self::Now(work),
            (Some(at), _) => Self::At(at),
            (None, _) => Self::Wait,
        }
    }
}
