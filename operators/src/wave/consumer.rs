//! COLLECT: the part that turns answered chunks into rows.

use std::collections::VecDeque;

use trommel_engine::batch::{Origin, Payload};
use trommel_engine::operator::{Counters, Flow, Operator, OperatorError, Output};

use super::chunk::{InWave, WaveChunk};
use super::feeder::into_message;

/// Turns answered chunks into rows.
pub trait Consumer: Send + 'static {
    /// Type of the chunks.
    type Chunk: WaveChunk;

    /// Sends about a batch of rows of an answered chunk. Called again with the same chunk, after
    /// these rows have been passed on, until it returns [`Taken::All`].
    ///
    /// # Errors
    /// Any error ends the run.
    fn take(&mut self, chunk: &Self::Chunk, out: &mut Output) -> Result<Taken, OperatorError>;

    /// Sends the last rows, after the last chunk.
    ///
    /// # Errors
    /// As [`Consumer::take`].
    fn finish(&mut self, _out: &mut Output) -> Result<(), OperatorError> {
        Ok(())
    }

    /// Counters for the report.
    fn counters(&self) -> Counters {
        Counters::new()
    }
}

/// Outcome of [`Consumer::take`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// The chunk has been read to its end.
    All,
    /// The chunk has more rows.
    Some,
}

/// The last part of the operator: reads chunks in the order in which prepare has sent them, and
/// gives them back.
pub(super) struct CollectPart<C: Consumer> {
    consumer: C,
    /// Number of the next chunk.
    next: u64,
    /// The chunks from the next one on, as far as they are here.
    held: VecDeque<Option<Held<C::Chunk>>>,
}

/// A chunk with its origin.
type Held<C> = (Box<InWave<C>>, Option<Origin>);

impl<C: Consumer> CollectPart<C> {
    pub(super) fn new(consumer: C) -> Self {
        Self { consumer, next: 0, held: VecDeque::new() }
    }

    /// Keeps a chunk, which may come before earlier ones of other kernels.
    fn hold(&mut self, held: Held<C::Chunk>) {
        let ahead = held.0.number - self.next;
        let place = usize::try_from(ahead).expect("chunks in the wave are few");
        if self.held.len() <= place {
            self.held.resize_with(place + 1, || None);
        }
        self.held[place] = Some(held);
    }
}

impl<C: Consumer> Operator for CollectPart<C> {
    fn process(
        &mut self,
        _port: usize,
        input: Payload,
        out: &mut Output,
    ) -> Result<Flow, OperatorError> {
        let origin = input.origin();
        self.hold((input.into_chunk().into_box(), origin));
        self.resume(out)
    }

    fn resume(&mut self, out: &mut Output) -> Result<Flow, OperatorError> {
        let Some(Some((chunk, origin))) = self.held.front() else { return Ok(Flow::NeedInput) };
        if let Some(origin) = origin {
            out.set_origin(*origin);
        }
        if self.consumer.take(&chunk.chunk, out)? == Taken::All {
            self.next += 1;
            if let Some(Some((mut chunk, _))) = self.held.pop_front() {
                chunk.chunk.release();
                out.send_reply(into_message(chunk));
            }
        }
        let has_next = self.held.front().is_some_and(Option::is_some);
        Ok(if has_next { Flow::HaveOutput } else { Flow::NeedInput })
    }

    fn finish(&mut self, out: &mut Output) -> Result<Flow, OperatorError> {
        self.consumer.finish(out)?;
        Ok(Flow::NeedInput)
    }

    fn counters(&self) -> Counters {
        self.consumer.counters()
    }
}
