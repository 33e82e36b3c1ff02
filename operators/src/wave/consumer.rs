//! COLLECT: the part that turns answered chunks into rows.

use trommel_engine::batch::Payload;
use trommel_engine::operator::{Counters, Flow, Operator, OperatorError, Output};
use trommel_engine::query::{QueryError, QueryPayload, Request, Response};

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

    /// Answers a query. `payload` is the data that the producer has added.
    ///
    /// # Errors
    /// The provided method refuses all queries.
    fn query(
        &self,
        request: &Request,
        _payload: Option<QueryPayload>,
    ) -> Result<Response, QueryError> {
        Err(QueryError::unsupported(request, &[]))
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

/// The last part of the operator: reads chunks and gives them back.
pub(super) struct CollectPart<C: Consumer> {
    consumer: C,
    /// The chunk that is being read.
    chunk: Option<Box<InWave<C::Chunk>>>,
}

impl<C: Consumer> CollectPart<C> {
    pub(super) fn new(consumer: C) -> Self {
        Self { consumer, chunk: None }
    }
}

impl<C: Consumer> Operator for CollectPart<C> {
    fn process(
        &mut self,
        _port: usize,
        input: Payload,
        out: &mut Output,
    ) -> Result<Flow, OperatorError> {
        self.chunk = Some(input.into_chunk().into_box());
        self.resume(out)
    }

    fn resume(&mut self, out: &mut Output) -> Result<Flow, OperatorError> {
        let Some(mut chunk) = self.chunk.take() else { return Ok(Flow::NeedInput) };
        if self.consumer.take(&chunk.chunk, out)? == Taken::Some {
            self.chunk = Some(chunk);
            return Ok(Flow::HaveOutput);
        }
        chunk.chunk.release();
        out.send_reply(into_message(chunk));
        Ok(Flow::NeedInput)
    }

    fn finish(&mut self, out: &mut Output) -> Result<Flow, OperatorError> {
        self.consumer.finish(out)?;
        Ok(Flow::NeedInput)
    }

    fn query(
        &self,
        request: &Request,
        payload: Option<QueryPayload>,
    ) -> Result<Response, QueryError> {
        self.consumer.query(request, payload)
    }

    fn counters(&self) -> Counters {
        self.consumer.counters()
    }
}
