//! The pace of a source: it is called at once, at a time, or when its descriptor is readable.

use std::io;
use std::time::{Duration, Instant};

use super::poller::Readiness;
use super::step::{Step, View, Work};
use crate::operator::{Source, SourceFlow};

/// Pause of a source that waits for a descriptor which cannot be waited for, such as that of a
/// regular file.
const UNWATCHABLE: Duration = Duration::from_millis(1);

/// A source that has nothing at present.
#[derive(Debug, Clone, Copy)]
struct Pause {
    /// Latest time of the next call; `None` if there is none.
    until: Option<Instant>,
}

/// The pace of one source.
#[derive(Default)]
pub(super) struct Pace {
    /// `None` if the source is to be called.
    pause: Option<Pause>,
    /// Where it waits for its descriptor.
    readiness: Option<Readiness>,
    /// Whether it has been asked to stop.
    is_stopping: bool,
}

impl Pace {
    pub(super) fn set_readiness(&mut self, readiness: Readiness) {
        self.readiness = Some(readiness);
    }

    /// The next step, given that its outputs have space.
    pub(super) fn next_step(&self, group: View) -> Step {
        let work = if group.is_draining { Work::StopSource } else { Work::Produce };
        let begins_to_stop = group.is_draining && !self.is_stopping;
        let is_readable = || self.readiness.as_ref().is_some_and(Readiness::is_ready);
        match self.pause {
            Some(pause) if !begins_to_stop && !is_readable() => {
                Step::at(pause.until, group.now, work)
            }
            _ => Step::Now(work),
        }
    }

    /// Notes that the source is about to be called.
    pub(super) fn begin_call(&mut self, work: Work) {
        self.pause = None;
        self.is_stopping |= work == Work::StopSource;
        if let Some(readiness) = &mut self.readiness {
            readiness.unwatch();
        }
    }

    /// Notes the time of the next call.
    ///
    /// # Errors
    /// If the operating system refuses to wait for its descriptor.
    pub(super) fn pause(&mut self, flow: SourceFlow, source: &dyn Source) -> io::Result<()> {
        let wait = match flow {
            SourceFlow::HaveOutput | SourceFlow::Finished => return Ok(()),
            SourceFlow::Idle(wait) => wait,
            SourceFlow::AwaitReadable(wait) if self.watch(source)? => wait,
            SourceFlow::AwaitReadable(wait) => wait.min(UNWATCHABLE),
        };
        self.pause = Some(Pause { until: Instant::now().checked_add(wait) });
        Ok(())
    }

    fn watch(&mut self, source: &dyn Source) -> io::Result<bool> {
        let descriptor = source.descriptor();
        let descriptor =
            descriptor.expect("a source that returns `AwaitReadable` names a descriptor");
        let readiness = self.readiness.as_mut().expect("every source of a run has one");
        readiness.watch(descriptor)
    }
}
