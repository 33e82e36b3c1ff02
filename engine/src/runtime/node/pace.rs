//! The pace of a node: when a source is called (at once, at a time, or when its descriptor is
//! readable), and when a sink without room is called (when its descriptor is writable).

use std::io;
use std::os::fd::BorrowedFd;
use std::time::Instant;

use mio::Interest;

use super::super::poller::Readiness;
use super::super::waits::UNWATCHABLE_RETRY;
use super::step::{GroupState, NodeCall, NodeStep};
use crate::operator::{Source, SourceFlow};

/// A node that waits.
#[derive(Debug, Clone, Copy)]
struct Pause {
    /// Latest time of the next call; `None` if the call waits for the descriptor alone.
    until: Option<Instant>,
}

/// The pace of one node.
#[derive(Default)]
pub(super) struct Pace {
    /// `None` if nothing keeps the node from its next call.
    pause: Option<Pause>,
    /// The registration by which the node waits for its descriptor.
    readiness: Option<Readiness>,
    /// Whether a source has been asked to stop.
    is_stopping: bool,
}

impl Pace {
    pub(super) fn set_readiness(&mut self, readiness: Readiness) {
        self.readiness = Some(readiness);
    }

    /// Whether a source has been asked to stop.
    pub(super) fn is_stopping(&self) -> bool {
        self.is_stopping
    }

    /// The next step of a source, given that its outputs have space.
    pub(super) fn next_step(&self, group: GroupState) -> NodeStep {
        let work = if group.is_draining { NodeCall::StopSource } else { NodeCall::Produce };
        let begins_to_stop = group.is_draining && !self.is_stopping;
        if begins_to_stop { NodeStep::Now(work) } else { self.step_after_pause(group, work) }
    }

    /// `work` if the pause is over, and otherwise the wait for its end.
    pub(super) fn step_after_pause(&self, group: GroupState, work: NodeCall) -> NodeStep {
        let is_ready = || self.readiness.as_ref().is_some_and(Readiness::is_ready);
        match self.pause {
            Some(pause) if !is_ready() => NodeStep::at(pause.until, group.now, work),
            _ => NodeStep::Now(work),
        }
    }

    /// Ends the pause: the call begins.
    pub(super) fn begin_call(&mut self, work: NodeCall) {
        self.pause = None;
        self.is_stopping |= work == NodeCall::StopSource;
        if let Some(readiness) = &mut self.readiness {
            readiness.unwatch();
        }
    }

    /// Notes the time or the descriptor of the next call of a source.
    ///
    /// # Errors
    /// If the operating system refuses to wait for its descriptor.
    pub(super) fn pause(&mut self, flow: SourceFlow, source: &dyn Source) -> io::Result<()> {
        let wait = match flow {
            SourceFlow::HaveOutput | SourceFlow::Finished => return Ok(()),
            SourceFlow::Idle(wait) => wait,
            SourceFlow::AwaitReadable(wait) => {
                let descriptor = source.descriptor();
                let descriptor =
                    descriptor.expect("a source that returns `AwaitReadable` names a descriptor");
                let is_watched = self.watch(descriptor, Interest::READABLE)?;
                if is_watched { wait } else { wait.min(UNWATCHABLE_RETRY) }
            }
        };
        self.pause = Some(Pause { until: Instant::now().checked_add(wait) });
        Ok(())
    }

    /// Lets a sink wait for room, at the latest until the time `until`.
    ///
    /// # Errors
    /// If the operating system refuses to wait for the descriptor.
    pub(super) fn await_room(
        &mut self,
        descriptor: Option<BorrowedFd<'_>>,
        until: Option<Instant>,
    ) -> io::Result<()> {
        let is_watched = match descriptor {
            Some(descriptor) => self.watch(descriptor, Interest::WRITABLE)?,
            None => true,
        };
        let retry = (!is_watched).then(|| Instant::now() + UNWATCHABLE_RETRY);
        self.pause = Some(Pause { until: until.into_iter().chain(retry).min() });
        Ok(())
    }

    fn watch(&mut self, descriptor: BorrowedFd<'_>, interest: Interest) -> io::Result<bool> {
        let readiness = self.readiness.as_mut().expect("every node of a run has one");
        readiness.watch(descriptor, interest)
    }
}
