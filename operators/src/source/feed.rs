//! Source of batches that another thread hands over while the pipeline runs.

use std::fmt;
use std::ops::RangeInclusive;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use crossbeam_channel::{Receiver, SendTimeoutError, Sender, TryRecvError, bounded};
use rustix::event::{EventfdFlags, eventfd};
use trommel_engine::error::BindError;
use trommel_engine::operator::{
    BindContext, Fragment, Load, OperatorError, OperatorSpec, Output, Source, SourceFlow,
};

use crate::shared::columns::{SchemaMismatch, check_schema};

/// Longest wait for the bell. Each batch rings the bell, so this limit only matters if the system
/// loses a ring.
const WAIT: Duration = Duration::from_secs(1);

/// Sends the batches that a [`Feeder`] hands over, in their order. The stream ends when the feeder
/// is dropped.
///
/// # Examples
/// ```
/// use std::sync::Arc;
/// use std::time::Duration;
/// use arrow_array::{RecordBatch, StringArray};
/// use arrow_schema::{DataType, Field, Schema};
/// use trommel_engine::graph::Graph;
/// use trommel_engine::runtime::RunOptions;
/// use trommel_operators::{Collect, Feed};
///
/// let schema = Arc::new(Schema::new(vec![Field::new("line", DataType::Utf8, false)]));
/// let (feed, feeder) = Feed::new(schema.clone(), 8)?;
/// let mut graph = Graph::new();
/// let lines = graph.add("lines", feed);
/// let (sink, rows) = Collect::new();
/// graph.add_after(lines, "rows", sink);
/// let running = graph.build()?.start(RunOptions::new())?;
///
/// let lines = Arc::new(StringArray::from(vec!["to be", "or not"]));
/// feeder.send(RecordBatch::try_new(schema, vec![lines])?, Duration::MAX)?;
/// drop(feeder);
/// running.join()?;
/// assert_eq!(rows.rows(), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Feed {
    schema: SchemaRef,
    /// Bytes of all batches, if the program knows them.
    bytes: Option<u64>,
    batches: Receiver<RecordBatch>,
    /// The bell: readable while a batch waits, and after the feeder was dropped.
    bell: Arc<OwnedFd>,
}

/// Hands batches over to a [`Feed`], from any thread.
pub struct Feeder {
    schema: SchemaRef,
    /// `None` while the feeder is dropped.
    batches: Option<Sender<RecordBatch>>,
    bell: Arc<OwnedFd>,
}

/// Reason why a batch was not handed over.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FeedError {
    /// The queue stayed full for the whole time.
    #[error("the pipeline took no batch in time")]
    Full(RecordBatch),
    /// The source has ended, because the run was stopped or has failed.
    #[error("the pipeline takes no more batches")]
    Ended,
    /// The batch has other columns than the source.
    #[error(transparent)]
    Schema(#[from] SchemaMismatch),
}

impl Feed {
    /// A source of batches with the given `schema`, and its feeder. At most `batches_max` batches
    /// wait in the queue.
    ///
    /// # Errors
    /// If the operating system has no descriptor left.
    pub fn new(schema: SchemaRef, batches_max: usize) -> std::io::Result<(Self, Feeder)> {
        let bell = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        let (sender, batches) = bounded(batches_max);
        let feeder = Feeder {
            schema: SchemaRef::clone(&schema),
            batches: Some(sender),
            bell: Arc::clone(&bell),
        };
        Ok((Self { schema, bytes: None, batches, bell }, feeder))
    }

    /// Says how many bytes all batches have in total. If they are few, the stages behind the source
    /// run in one place.
    #[must_use]
    pub fn bytes(self, bytes: u64) -> Self {
        Self { bytes: Some(bytes), ..self }
    }
}

impl Feeder {
    /// Hands `batch` over; waits for at most `limit` while the queue is full.
    ///
    /// # Errors
    /// [`FeedError::Full`] gives the batch back, for another try.
    ///
    /// # Panics
    /// Never: only a dropped feeder has no queue.
    pub fn send(&self, batch: RecordBatch, limit: Duration) -> Result<(), FeedError> {
        check_schema("feed", &batch, &self.schema)?;
        let sender = self.batches.as_ref().expect("only a dropped feeder has none");
        let sent = sender.send_timeout(batch, limit.min(Duration::from_secs(1 << 30)));
        sent.map_err(|error| match error {
            SendTimeoutError::Timeout(batch) => FeedError::Full(batch),
            SendTimeoutError::Disconnected(_) => FeedError::Ended,
        })?;
        self.ring();
        Ok(())
    }

    /// The columns of the batches that the source takes.
    #[must_use]
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn ring(&self) {
        // A write fails only if the counter is at its maximum, and the bell is readable then, too.
        let _ = rustix::io::write(&self.bell, &1_u64.to_ne_bytes());
    }
}

impl Drop for Feeder {
    fn drop(&mut self) {
        // The source reads the queue when the bell rings, so the queue has to end first.
        self.batches = None;
        self.ring();
    }
}

impl fmt::Debug for Feed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Feed").field("schema", &self.schema).finish_non_exhaustive()
    }
}

impl fmt::Debug for Feeder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Feeder").field("schema", &self.schema).finish_non_exhaustive()
    }
}

impl OperatorSpec for Feed {
    fn operator(&self) -> &'static str {
        "feed"
    }

    fn input_ports(&self) -> RangeInclusive<usize> {
        0..=0
    }

    fn bind(self: Box<Self>, _: &[SchemaRef], _: BindContext) -> Result<Fragment, BindError> {
        let schema = SchemaRef::clone(&self.schema);
        let bytes = self.bytes;
        Ok(Fragment::source(Load::Light, *self, schema).with_input_bytes(bytes))
    }
}

impl Source for Feed {
    fn next(&mut self, out: &mut Output) -> Result<SourceFlow, OperatorError> {
        match self.batches.try_recv() {
            Ok(batch) => {
                out.send(batch);
                return Ok(SourceFlow::HaveOutput);
            }
            Err(TryRecvError::Disconnected) => return Ok(SourceFlow::Finished),
            Err(TryRecvError::Empty) => {}
        }
        // Silences the bell before the queue is read again, so that no ring is lost.
        let _ = rustix::io::read(&self.bell, &mut [0; 8]);
        match self.batches.try_recv() {
            Ok(batch) => {
                out.send(batch);
                Ok(SourceFlow::HaveOutput)
            }
            Err(TryRecvError::Disconnected) => Ok(SourceFlow::Finished),
            Err(TryRecvError::Empty) => Ok(SourceFlow::AwaitReadable(WAIT)),
        }
    }

    /// Sends the batches that were handed over before the stop.
    fn stop(&mut self, out: &mut Output) -> Result<SourceFlow, OperatorError> {
        match self.batches.try_recv() {
            Ok(batch) => {
                out.send(batch);
                Ok(SourceFlow::HaveOutput)
            }
            Err(_) => Ok(SourceFlow::Finished),
        }
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.bell.as_fd())
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::{ArrayRef, UInt32Array};
    use trommel_engine::graph::Graph;
    use trommel_engine::runtime::RunOptions;

    use super::*;
    use crate::sink::Collect;

    fn batch(items: &[u32]) -> RecordBatch {
        let items: ArrayRef = Arc::new(UInt32Array::from(items.to_vec()));
        RecordBatch::try_from_iter([("item", items)]).unwrap()
    }

    #[test]
    fn batches_come_in_their_order_and_the_stream_ends_with_the_feeder() {
        let (feed, feeder) = Feed::new(batch(&[]).schema(), 2).unwrap();
        let mut graph = Graph::new();
        let items = graph.add("items", feed);
        let (sink, rows) = Collect::new();
        graph.add_after(items, "rows", sink);
        let running = graph.build().unwrap().start(RunOptions::new()).unwrap();
        for item in 0..1_000 {
            feeder.send(batch(&[item]), Duration::MAX).unwrap();
        }
        drop(feeder);
        running.join().unwrap();
        let expected: Vec<_> = (0..1_000).map(|item| batch(&[item])).collect();
        assert_eq!(rows.batches(), expected);
    }

    #[test]
    fn a_stopped_source_sends_the_batches_that_it_was_given_and_takes_no_more() {
        let (mut feed, feeder) = Feed::new(batch(&[]).schema(), 1).unwrap();
        feeder.send(batch(&[1]), Duration::ZERO).unwrap();
        let full = feeder.send(batch(&[2]), Duration::ZERO).unwrap_err();
        assert!(matches!(full, FeedError::Full(given) if given == batch(&[2])));
        let mut out = Output::new();
        assert_eq!(feed.stop(&mut out).unwrap(), SourceFlow::HaveOutput);
        assert_eq!(feed.stop(&mut out).unwrap(), SourceFlow::Finished);
        assert_eq!(out.drain_sent().count(), 1);
        drop(feed);
        assert!(matches!(feeder.send(batch(&[2]), Duration::MAX), Err(FeedError::Ended)));
    }

    #[test]
    fn a_batch_with_other_columns_is_refused() {
        let (_feed, feeder) = Feed::new(batch(&[]).schema(), 1).unwrap();
        let other: ArrayRef = Arc::new(UInt32Array::from(vec![1]));
        let other = RecordBatch::try_from_iter([("set", other)]).unwrap();
        let error = feeder.send(other, Duration::ZERO).unwrap_err().to_string();
        assert_eq!(
            error,
            "a batch has the columns `set` (UInt32); the feed was declared with `item` (UInt32)"
        );
    }
}
