//! PREPARE: the part that turns input into chunks.

use std::time::Instant;

use arrow_array::RecordBatch;
use trommel_engine::batch::{Chunk, Payload};
#[cfg(doc)]
use trommel_engine::operator::Fragment;
use trommel_engine::operator::{
    Counters, Ending, Flow, NamedInputs, Operator, OperatorError, Output,
};
use trommel_engine::query::{QueryError, QueryPayload, Request, Response};

use super::chunk::{InWave, WaveChunk};
use super::device::choice::Estimate;
use super::parts::feeder::Feeder;
use crate::shared::rejected::PORT;

/// Turns input into chunks of work.
///
/// The part around the producer calls, on one thread: for each batch [`take`](Self::take) and then
/// [`fill`](Self::fill) until that returns [`Filled::Nothing`] or [`Filled::Spare`]; after the last
/// batch [`finish`](Self::finish), again `fill`, and at last [`end`](Self::end).
/// [`landed`](Self::landed) can come between two calls of `fill`. A producer keeps no chunk, and
/// sends nothing but [unusable rows](Self::take_rejected).
pub trait Producer: Send + 'static {
    /// Type of the chunks.
    type Chunk: WaveChunk;

    /// Takes a batch of input `port`. All work of the previous batch is in chunks.
    ///
    /// # Errors
    /// Any error ends the run.
    fn take(&mut self, port: usize, batch: Payload) -> Result<(), OperatorError>;

    /// Takes out the rows of the last batch that the producer cannot use, for output 1 of the
    /// stage, an [early output](Fragment::with_early_outputs). Called after each
    /// [`take`](Self::take).
    fn take_rejected(&mut self) -> Option<RecordBatch> {
        None
    }

    /// Takes the end of input `port`; other inputs may go on. Work that begins then is filled
    /// when the producer is [woken](Self::wake_at).
    fn port_ended(&mut self, _port: usize, _ending: Ending) {}

    /// Takes the end of the inputs.
    ///
    /// # Errors
    /// As [`Producer::take`].
    fn finish(&mut self) -> Result<(), OperatorError> {
        Ok(())
    }

    /// Time at which [`wake`](Self::wake) is to be called without input, such as the end of a
    /// window.
    fn wake_at(&self) -> Option<Instant> {
        None
    }

    /// Takes the time `now`, at or after [`Producer::wake_at`]. Called like [`Producer::take`].
    ///
    /// # Errors
    /// As [`Producer::take`].
    fn wake(&mut self, _now: Instant) -> Result<(), OperatorError> {
        Ok(())
    }

    /// Cost of work that is known before its chunks are filled, asked after [`Producer::finish`]
    /// until the cost is known. The cost is charged at once, so no chunk runs on the CPU only to
    /// find out that a device pays. The [estimates](WaveChunk::estimate) of the chunks must not
    /// contain this cost.
    fn expected(&self) -> Option<Estimate> {
        None
    }

    /// Fills `chunk`, which is empty, with the next work.
    ///
    /// # Errors
    /// As [`Producer::take`].
    fn fill(&mut self, chunk: &mut Self::Chunk) -> Result<Filled, OperatorError>;

    /// Fills `chunk`, which is empty, with work that can wait, after [`Filled::Spare`] and while
    /// the thread has no other work; false if there was no such work and the chunk is empty.
    ///
    /// # Errors
    /// As [`Producer::take`].
    fn fill_spare(&mut self, _chunk: &mut Self::Chunk) -> Result<bool, OperatorError> {
        Ok(false)
    }

    /// Called once, when the input has ended and all chunks that can be unfinished have returned.
    ///
    /// # Errors
    /// Any error fails the run at its end, after all rows.
    fn end(&mut self) -> Result<(), OperatorError> {
        Ok(())
    }

    /// Reads a chunk that returns with its answer. The producer may take data out of the chunk.
    fn landed(&mut self, _chunk: &mut Self::Chunk) {}

    /// As [`Operator::queries`].
    fn queries(&self) -> &'static [&'static str] {
        &[]
    }

    /// As [`Operator::can_answer`].
    fn can_answer(&self) -> bool {
        false
    }

    /// Answers a query.
    ///
    /// # Errors
    /// The provided method refuses all queries.
    fn query(&self, request: &Request) -> Result<Response, QueryError> {
        Err(QueryError::unsupported(request, &[]))
    }

    /// Counters for the report.
    fn counters(&self) -> Counters {
        Counters::new()
    }

    /// As [`Operator::named_inputs`].
    fn named_inputs(&self) -> NamedInputs {
        NamedInputs::default()
    }
}

/// Outcome of [`Producer::fill`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filled {
    /// The chunk holds work. There may be more.
    Chunk,
    /// There is no work until more input arrives. The chunk is empty.
    Nothing,
    /// There is no work until a chunk returns, and no input is to be taken before. The chunk is
    /// empty; another chunk is in the wave.
    Waiting,
    /// As [`Filled::Nothing`], with work that can wait until the thread has nothing else to do; at
    /// the end of the input that work is left undone. The chunk is empty.
    Spare,
}

/// The first part of the operator: fills chunks and takes used ones back.
pub(super) struct PreparePart<P: Producer> {
    producer: P,
    feeder: Feeder<P::Chunk>,
    /// Whether there is work that can wait.
    has_spare: bool,
    is_finishing: bool,
    /// Whether work that is known before its chunks are filled has been charged.
    has_charged: bool,
    has_ended: bool,
}

impl<P: Producer> PreparePart<P> {
    pub(super) fn new(producer: P, feeder: Feeder<P::Chunk>) -> Self {
        let (has_spare, is_finishing, has_charged, has_ended) = (false, false, false, false);
        Self { producer, feeder, has_spare, is_finishing, has_charged, has_ended }
    }

    /// Sends a chunk of work that can wait.
    fn send_spare(&mut self, out: &mut Output) -> Result<Flow, OperatorError> {
        let Some(mut chunk) = self.feeder.take() else { return Ok(Flow::AwaitReply) };
        if self.producer.fill_spare(&mut chunk.chunk)? {
            self.feeder.send(chunk, out);
        } else {
            self.feeder.keep(chunk);
        }
        // The next call of `resume` asks the producer whether such work is left.
        Ok(Flow::HaveOutput)
    }
}

impl<P: Producer> Operator for PreparePart<P> {
    fn process(
        &mut self,
        port: usize,
        input: Payload,
        out: &mut Output,
    ) -> Result<Flow, OperatorError> {
        self.producer.take(port, input)?;
        self.producer.take_rejected().into_iter().for_each(|rows| out.send_to(PORT, rows));
        self.resume(out)
    }

    fn finish(&mut self, out: &mut Output) -> Result<Flow, OperatorError> {
        self.is_finishing = true;
        self.producer.finish()?;
        self.resume(out)
    }

    fn resume(&mut self, out: &mut Output) -> Result<Flow, OperatorError> {
        self.has_spare = false;
        if self.is_finishing
            && !self.has_charged
            && let Some(work) = self.producer.expected()
        {
            self.has_charged = true;
            self.feeder.expect(&work);
        }
        let Some(mut chunk) = self.feeder.take() else { return Ok(Flow::AwaitReply) };
        let filled = self.producer.fill(&mut chunk.chunk)?;
        if filled == Filled::Chunk {
            self.feeder.send(chunk, out);
            return Ok(Flow::HaveOutput);
        }
        self.feeder.keep(chunk);
        self.has_spare = filled == Filled::Spare && !self.is_finishing;
        if filled == Filled::Waiting {
            return Ok(Flow::AwaitReply);
        }
        if self.has_spare {
            return Ok(Flow::Background);
        }
        // At the end of the stream, chunks that can be unfinished have to return first.
        let is_done = !self.is_finishing || self.feeder.is_settled();
        if self.is_finishing && is_done && !self.has_ended {
            self.has_ended = true;
            self.producer.end().unwrap_or_else(|error| out.fail_late(error));
        }
        Ok(if is_done { Flow::NeedInput } else { Flow::AwaitReply })
    }

    fn port_ended(&mut self, port: usize, ending: Ending) {
        self.producer.port_ended(port, ending);
    }

    fn wake_at(&self) -> Option<Instant> {
        self.producer.wake_at()
    }

    fn wake(&mut self, now: Instant, out: &mut Output) -> Result<Flow, OperatorError> {
        let is_due = self.producer.wake_at().is_some_and(|at| at <= now);
        if self.has_spare && !is_due {
            return self.send_spare(out);
        }
        self.producer.wake(now)?;
        self.resume(out)
    }

    fn takes_replies(&self) -> bool {
        true
    }

    fn reply(&mut self, reply: Chunk, out: &mut Output) -> Result<Flow, OperatorError> {
        let mut chunk: Box<InWave<P::Chunk>> = reply.into_box();
        if chunk.is_undone {
            self.feeder.send_again(chunk, out);
            return Ok(Flow::HaveOutput);
        }
        self.producer.landed(&mut chunk.chunk);
        if chunk.chunk.retain_unfinished() {
            self.feeder.resubmit(chunk, out);
            return Ok(Flow::HaveOutput);
        }
        self.feeder.keep(chunk);
        self.resume(out)
    }

    fn can_answer(&self) -> bool {
        self.producer.can_answer()
    }

    fn queries(&self) -> &'static [&'static str] {
        self.producer.queries()
    }

    fn query(&self, request: &Request, _: Option<QueryPayload>) -> Result<Response, QueryError> {
        self.producer.query(request)
    }

    fn counters(&self) -> Counters {
        let mut counters = self.producer.counters();
        counters.extend(self.feeder.counters());
        counters
    }

    fn named_inputs(&self) -> NamedInputs {
        self.producer.named_inputs()
    }
}
