//! The next step of a node.

use std::time::Instant;

/// One call of a source or an operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NodeCall {
    /// Asks the source for more.
    Produce,
    /// Asks the source for the items that were already taken from its input: the run drains.
    StopSource,
    /// Processes the first message of the inbox.
    Take,
    Resume,
    /// Processes the first reply.
    Reply,
    /// Wakes the operator, at the time that the operator has named or in the background.
    Wake,
    Finish,
    /// Fails the node: an input closed without its end marker.
    Truncated,
}

/// The next step of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NodeStep {
    Now(NodeCall),
    /// The node has no work before this time, unless a message arrives.
    At(Instant),
    /// The node has no work before a message arrives.
    Wait,
}

/// The state of a group, on which the next step of its nodes depends.
#[derive(Debug, Clone, Copy)]
pub(crate) struct GroupState {
    pub(crate) is_draining: bool,
    /// Whether the thread has credit to answer callers and readers of standing queries.
    pub(crate) may_answer: bool,
    /// Whether no other node has work, so that the node may work in the background.
    pub(crate) is_idle: bool,
    /// The present time. With `None`, a time that has come counts as a wait, and the answer is that
    /// time.
    pub(crate) now: Option<Instant>,
}

impl NodeStep {
    /// `work` if the time `at` has come, and otherwise the wait for that time.
    pub(crate) fn at(at: Option<Instant>, now: Option<Instant>, work: NodeCall) -> Self {
        match (at, now) {
            (Some(at), Some(now)) if at <= now => Self::Now(work),
            (Some(at), _) => Self::At(at),
            (None, _) => Self::Wait,
        }
    }
}
