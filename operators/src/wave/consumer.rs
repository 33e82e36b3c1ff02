//! COLLECT: the part that turns answered chunks into rows.

use std::collections::VecDeque;

use trommel_engine::batch::{Origin, Payload};
use trommel_engine::operator::{Counters, Flow, NamedInputs, Operator, OperatorError, Output};

use super::chunk::{InWave, WaveChunk};
use super::parts::feeder::into_message;

/// Turns answered chunks into rows.
pub trait Consumer: Send + 'static {
    /// Type of the chunks.
    type Chunk: WaveChunk;

    /// Sends about a batch of rows of an answered chunk. The part calls this method again with the
    /// same chunk, after these rows have been passed on, until the method returns [`Taken::All`].
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

    /// Inputs for the report, if the operator has named inputs.
    fn named_inputs(&self) -> NamedInputs {
        NamedInputs::default()
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
/// returns each chunk to prepare. A chunk without rows returns at once.
pub(super) struct CollectPart<C: Consumer> {
    consumer: C,
    /// Place of the next chunk.
    next: u64,
    /// The chunks that have arrived, by their distance from `next`.
    held: VecDeque<Option<Held<C::Chunk>>>,
}

/// A chunk with its origin.
type Held<C> = (Box<InWave<C>>, Option<Origin>);

impl<C: Consumer> CollectPart<C> {
    pub(super) fn new(consumer: C) -> Self {
        Self { consumer, next: 0, held: VecDeque::new() }
    }

    /// Keeps the chunk of `place` until its turn; a chunk of an earlier place, from another kernel,
    /// may arrive later.
    fn hold(&mut self, place: u64, held: Held<C::Chunk>) {
        let ahead = usize::try_from(place - self.next).expect("chunks in the wave are few");
        if self.held.len() <= ahead {
            self.held.resize_with(ahead + 1, || None);
        }
        self.held[ahead] = Some(held);
    }
}

/// Returns a chunk to prepare, after its rows have been read.
fn give_back<C: WaveChunk>(mut chunk: Box<InWave<C>>, out: &mut Output) {
    chunk.chunk.release();
    out.send_reply(into_message(chunk));
}

impl<C: Consumer> Operator for CollectPart<C> {
    fn process(
        &mut self,
        _port: usize,
        input: Payload,
        out: &mut Output,
    ) -> Result<Flow, OperatorError> {
        let origin = input.origin();
        let chunk: Box<InWave<C::Chunk>> = input.into_chunk().into_box();
        match chunk.place {
            // Another device is to answer the chunk, and later chunks wait for that answer.
            _ if chunk.is_undone => out.send_reply(into_message(chunk)),
            Some(place) => self.hold(place, (chunk, origin)),
            None => give_back(chunk, out),
        }
        self.resume(out)
    }

    fn resume(&mut self, out: &mut Output) -> Result<Flow, OperatorError> {
        let Some(Some((chunk, origin))) = self.held.front() else { return Ok(Flow::NeedInput) };
        if let Some(origin) = origin {
            out.set_origin(*origin);
        }
        if self.consumer.take(&chunk.chunk, out)? == Taken::All {
            self.next += 1;
            if let Some(Some((chunk, _))) = self.held.pop_front() {
                give_back(chunk, out);
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

    fn named_inputs(&self) -> NamedInputs {
        self.consumer.named_inputs()
    }
}
