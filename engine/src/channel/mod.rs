//! Edges between threads: bounded queues that never block, and the doorbell on which a thread waits
//! for all its queues.
//!
//! A stage thread watches several queues: its inputs, the space in its outputs, its mailbox. The
//! thread never blocks on one queue but only *tries* to send and to receive. When no try succeeds,
//! the thread waits on its one doorbell, which every thread rings that changes one of these queues.
//! So a query reaches a thread that waits for space, and threads cannot deadlock by waiting in the
//! wrong order.
//!
//! An edge has one producer and one consumer. The edge has a limit of messages and a limit of
//! bytes; a message that is larger than the byte limit passes alone. A message that does not fit
//! stays with the producer, which produces no more until the message is sent.

mod doorbell;
mod mailbox;
pub(crate) mod oneshot;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use crossbeam_channel::{TryRecvError, TrySendError};
use crossbeam_utils::CachePadded;

pub(crate) use doorbell::Doorbell;
pub(crate) use mailbox::{Mailbox, MailboxSender, Refused, mailbox};

use crate::batch::Payload;
use crate::operator::Ending;
use crate::sync::counter::{add, nanoseconds};
use crate::sync::{AtomicBool, AtomicU64, Ordering, Receiver, Sender, bounded, fence};

/// A message of an edge.
#[derive(Debug)]
pub(crate) enum Message {
    Payload(Payload),
    /// The only payload of the piece with this number.
    Piece(Payload, u64),
    /// The end of the piece with this number: all its payloads have been sent. See
    /// [`Division`](crate::operator::Division).
    Done(u64),
    /// The end marker, which is sent last. An edge that closes without an end marker was cut off.
    End(Ending),
}

/// A message with its size, so that the size is computed once.
#[derive(Debug)]
struct Envelope {
    message: Message,
    bytes: u64,
}

impl From<Message> for Envelope {
    fn from(message: Message) -> Self {
        let bytes = match &message {
            Message::Payload(payload) | Message::Piece(payload, _) => payload.bytes() as u64,
            Message::Done(_) | Message::End(_) => 0,
        };
        Self { message, bytes }
    }
}

/// Bounds of one edge.
///
/// # Examples
/// ```
/// use trommel_engine::channel::QueueLimits;
///
/// assert_eq!(QueueLimits::default(), QueueLimits { batches: 8, bytes: 64 << 20 });
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueLimits {
    /// Maximum number of waiting batches.
    pub batches: usize,
    /// Maximum bytes of the waiting batches; a larger batch passes alone. Lowered where all
    /// queues together would take more than a quarter of the memory that is left to the pipeline.
    pub bytes: u64,
}

impl Default for QueueLimits {
    fn default() -> Self {
        Self { batches: 8, bytes: 64 << 20 }
    }
}

/// The numbers of an edge, which both ends and the metrics read. Each number has one writer.
/// Numbers of different writers are in different cache lines, so that a read does not slow the
/// other end down.
#[derive(Debug)]
pub(crate) struct EdgeState {
    sent: CachePadded<Sent>,
    taken: CachePadded<Received>,
    marks: CachePadded<Marks>,
}

/// The numbers that the producer writes.
#[derive(Debug)]
struct Sent {
    bytes: AtomicU64,
    messages: AtomicU64,
    depth_max: AtomicU64,
    /// Time during which a message of the producer did not fit.
    blocked_ns: AtomicU64,
}

/// The numbers that the consumer writes.
#[derive(Debug)]
struct Received {
    bytes: AtomicU64,
    messages: AtomicU64,
}

/// Marks that both ends read often and write seldom.
#[derive(Debug)]
struct Marks {
    /// Whether the producer's end was dropped: no more messages come.
    is_closed: AtomicBool,
    /// Whether a message of the producer did not fit, so that the producer wants a ring when half
    /// of the queue is free again.
    wants_space: AtomicBool,
}

impl EdgeState {
    fn new() -> Self {
        Self {
            sent: CachePadded::new(Sent {
                bytes: AtomicU64::new(0),
                messages: AtomicU64::new(0),
                depth_max: AtomicU64::new(0),
                blocked_ns: AtomicU64::new(0),
            }),
            taken: CachePadded::new(Received {
                bytes: AtomicU64::new(0),
                messages: AtomicU64::new(0),
            }),
            marks: CachePadded::new(Marks {
                is_closed: AtomicBool::new(false),
                wants_space: AtomicBool::new(false),
            }),
        }
    }

    /// Messages and bytes in the queue. The loads make no consistent snapshot, which is good enough
    /// for display.
    pub(crate) fn waiting(&self) -> (u64, u64) {
        let messages = self.sent.messages.load(Ordering::Relaxed);
        let bytes = self.sent.bytes.load(Ordering::Relaxed);
        (
            messages.saturating_sub(self.taken.messages.load(Ordering::Relaxed)),
            bytes.saturating_sub(self.taken.bytes.load(Ordering::Relaxed)),
        )
    }

    pub(crate) fn depth_max(&self) -> u64 {
        self.sent.depth_max.load(Ordering::Relaxed)
    }

    pub(crate) fn blocked_ns(&self) -> u64 {
        self.sent.blocked_ns.load(Ordering::Relaxed)
    }
}

/// The producer's end.
pub(crate) struct EdgeSender {
    queue: Sender<Envelope>,
    state: Arc<EdgeState>,
    limits: QueueLimits,
    consumer: Arc<Doorbell>,
    pending: VecDeque<Envelope>,
    /// The beginning of the part of the wait for space that is not counted yet.
    blocked_since: Option<Instant>,
    pushed: u64,
}

/// The consumer's end.
pub(crate) struct EdgeReceiver {
    queue: Receiver<Envelope>,
    state: Arc<EdgeState>,
    limits: QueueLimits,
    producer: Arc<Doorbell>,
}

/// Makes an edge between two threads that wait on the given doorbells.
pub(crate) fn edge(
    limits: QueueLimits,
    producer: Arc<Doorbell>,
    consumer: Arc<Doorbell>,
) -> (EdgeSender, EdgeReceiver, Arc<EdgeState>) {
    let (sender, receiver) = bounded(limits.batches.max(1));
    let state = Arc::new(EdgeState::new());
    let sender = EdgeSender {
        queue: sender,
        state: Arc::clone(&state),
        limits,
        consumer,
        pending: VecDeque::new(),
        blocked_since: None,
        pushed: 0,
    };
    let receiver = EdgeReceiver { queue: receiver, state: Arc::clone(&state), limits, producer };
    (sender, receiver, state)
}

impl EdgeSender {
    /// Sends `message`, or keeps the message until [`EdgeSender::flush`] finds space; true if no
    /// message is kept.
    pub(crate) fn push(&mut self, message: Message) -> bool {
        self.pushed += 1;
        self.pending.push_back(message.into());
        self.flush()
    }

    /// Sends kept messages as far as the queue has space; true if no message is left.
    pub(crate) fn flush(&mut self) -> bool {
        if self.pending.is_empty() {
            return true;
        }
        if self.try_flush() {
            self.note_space();
            return true;
        }
        self.blocked_since.get_or_insert_with(Instant::now);
        // The consumer may have emptied the queue between the attempt and this mark, and would not
        // wake us then. So the mark is set before a second attempt, and the consumer reads the mark
        // after the consumer has taken a message (both sides fence).
        self.state.marks.wants_space.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        let has_space = self.try_flush();
        if has_space {
            self.note_space();
        }
        has_space
    }

    fn note_space(&mut self) {
        self.count_blocked();
        self.blocked_since = None;
    }

    /// Counts the time for which messages have been pending.
    pub(crate) fn count_blocked(&mut self) {
        if let Some(since) = &mut self.blocked_since {
            let now = Instant::now();
            add(&self.state.sent.blocked_ns, nanoseconds(now.duration_since(*since)));
            *since = now;
        }
    }

    fn try_flush(&mut self) -> bool {
        let mut sent = false;
        while let Some(envelope) = self.pending.pop_front() {
            match self.try_send(envelope) {
                Ok(()) => sent = true,
                Err(envelope) => {
                    self.pending.push_front(envelope);
                    break;
                }
            }
        }
        if sent {
            self.consumer.ring();
        }
        self.pending.is_empty()
    }

    fn try_send(&mut self, envelope: Envelope) -> Result<(), Envelope> {
        let bytes = envelope.bytes;
        let sent = self.state.sent.bytes.load(Ordering::Relaxed);
        // Relaxed: an old value only makes the queue look fuller than it is. The subtraction
        // saturates, because the consumer may have counted a message that is not counted here yet.
        let waiting = sent.saturating_sub(self.state.taken.bytes.load(Ordering::Relaxed));
        if waiting > 0 && waiting + bytes > self.limits.bytes {
            return Err(envelope);
        }
        match self.queue.try_send(envelope) {
            Ok(()) => {
                add(&self.state.sent.bytes, bytes);
                let sent = add(&self.state.sent.messages, 1);
                let taken = self.state.taken.messages.load(Ordering::Relaxed);
                // The consumer takes a message before it counts the message, so the difference may
                // exceed the limit.
                let most = self.limits.batches.max(1) as u64;
                let depth = sent.saturating_sub(taken).min(most);
                if depth > self.state.sent.depth_max.load(Ordering::Relaxed) {
                    self.state.sent.depth_max.store(depth, Ordering::Relaxed);
                }
                Ok(())
            }
            Err(TrySendError::Full(envelope)) => Err(envelope),
            // Only a failure, an abort, or the end of a part that takes replies drops the consumer
            // early. Nobody needs the message any more.
            Err(TrySendError::Disconnected(_)) => Ok(()),
        }
    }

    /// Whether a message did not fit.
    pub(crate) fn is_blocked(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Whether a flush could get further than the last flush did. Until then, the mark of the last
    /// flush must stay set: a consumer that makes space removes the mark, even if the space is too
    /// small for the kept message, and would not ring again.
    pub(crate) fn has_space(&self) -> bool {
        if !self.state.marks.wants_space.load(Ordering::Relaxed) {
            return true;
        }
        let (messages, bytes) = self.state.waiting();
        messages < self.limits.batches.max(1) as u64
            && self
                .pending
                .front()
                .is_some_and(|envelope| bytes == 0 || bytes + envelope.bytes <= self.limits.bytes)
    }

    /// Number of messages in the queue, and whether the next message fits by number.
    pub(crate) fn depth(&self) -> (u64, bool) {
        let (messages, _) = self.state.waiting();
        (messages, !self.is_blocked() && messages < self.limits.batches.max(1) as u64)
    }

    /// Number of messages pushed so far, sent or kept.
    pub(crate) fn pushed(&self) -> u64 {
        self.pushed
    }
}

/// The result of an attempt to receive.
#[derive(Debug)]
pub(crate) enum Taken {
    Message(Message),
    Nothing,
    /// The edge has closed without an end marker.
    Truncated,
}

impl EdgeReceiver {
    pub(crate) fn take(&self) -> Taken {
        match self.queue.try_recv() {
            Ok(Envelope { message, bytes }) => {
                let bytes = add(&self.state.taken.bytes, bytes);
                let taken = add(&self.state.taken.messages, 1);
                fence(Ordering::SeqCst);
                if self.state.marks.wants_space.load(Ordering::Relaxed) {
                    self.offer_space(taken, bytes);
                }
                Taken::Message(message)
            }
            Err(TryRecvError::Empty) => Taken::Nothing,
            Err(TryRecvError::Disconnected) => Taken::Truncated,
        }
    }

    /// Wakes a blocked producer when half of the queue is free, rather than for every message.
    fn offer_space(&self, taken_messages: u64, taken_bytes: u64) {
        // Saturating: a message is in the queue before the producer counts the message as sent.
        let sent = &self.state.sent.messages;
        let messages = sent.load(Ordering::Relaxed).saturating_sub(taken_messages);
        let bytes = self.state.sent.bytes.load(Ordering::Relaxed).saturating_sub(taken_bytes);
        if messages <= self.limits.batches as u64 / 2 && bytes <= self.limits.bytes / 2 {
            self.state.marks.wants_space.store(false, Ordering::Relaxed);
            self.producer.ring();
        }
    }

    /// Closes an edge whose messages nobody wants any more. Waiting and later messages are dropped,
    /// and a producer that waits for space goes on.
    pub(crate) fn close(self) {
        let Self { queue, state, producer, .. } = self;
        drop(queue);
        // A producer that found the queue full has set its mark before its second attempt. So
        // either that attempt saw the closed queue, or this thread sees the mark (both sides
        // fence).
        fence(Ordering::SeqCst);
        state.marks.wants_space.store(false, Ordering::Relaxed);
        producer.ring();
    }

    /// Whether [`EdgeReceiver::take`] would return a message, or the end of an edge that was cut
    /// off.
    pub(crate) fn is_ready(&self) -> bool {
        !self.queue.is_empty() || self.state.marks.is_closed.load(Ordering::Acquire)
    }
}

impl Drop for EdgeSender {
    fn drop(&mut self) {
        // Release: this store pairs with the acquire in `is_ready`, so that the consumer sees all
        // sent messages first.
        self.state.marks.is_closed.store(true, Ordering::Release);
        self.consumer.ring();
    }
}

#[cfg(all(test, loom))]
mod model {
    use std::sync::Arc;

    use super::{Doorbell, Message, QueueLimits, Taken, edge};
    use crate::batch::{Chunk, Payload};

    fn message(value: u64, bytes: usize) -> Message {
        Message::Payload(Payload::Chunk(Chunk::new(value, 1, bytes)))
    }

    /// A producer with more messages than fit, of these sizes and in these bursts, and a
    /// consumer, each waiting on its doorbell when it is blocked. A lost wake-up would leave one
    /// of them parked, which loom reports as a deadlock.
    fn everything_arrives(limits: QueueLimits, bursts: Vec<Vec<usize>>) {
        let mut model = loom::model::Builder::new();
        // Every schedule with up to three preemptions: all lost wake-ups that were planted need
        // two.
        model.preemption_bound = Some(3);
        let messages = bursts.iter().map(Vec::len).sum::<usize>() as u64;
        model.check(move || {
            let bursts = bursts.clone();
            let bells = [Arc::new(Doorbell::new()), Arc::new(Doorbell::new())];
            let (mut sender, receiver, _) =
                edge(limits, Arc::clone(&bells[0]), Arc::clone(&bells[1]));
            let bell = Arc::clone(&bells[0]);
            let producer = loom::thread::spawn(move || {
                bell.own();
                let mut values = 0..;
                for burst in bursts {
                    for (bytes, value) in burst.into_iter().zip(&mut values) {
                        sender.push(message(value, bytes));
                    }
                    while !sender.flush() {
                        bell.answer_door(|| sender.has_space(), None);
                    }
                }
            });
            bells[1].own();
            let mut expected = 0;
            while expected < messages {
                match receiver.take() {
                    Taken::Message(Message::Payload(payload)) => {
                        assert_eq!(payload.into_value::<u64>(), expected);
                        expected += 1;
                    }
                    Taken::Message(_) | Taken::Truncated => unreachable!("never sent"),
                    Taken::Nothing => bells[1].answer_door(|| receiver.is_ready(), None),
                }
            }
            producer.join().unwrap();
        });
    }

    #[test]
    fn no_wake_up_is_lost_when_the_queue_is_full() {
        everything_arrives(QueueLimits { batches: 1, bytes: 100 }, vec![vec![1], vec![1]]);
    }

    #[test]
    fn no_wake_up_is_lost_when_the_byte_limit_is_reached() {
        everything_arrives(QueueLimits { batches: 4, bytes: 10 }, vec![vec![8], vec![8]]);
    }

    #[test]
    fn no_wake_up_is_lost_when_several_messages_wait() {
        everything_arrives(QueueLimits { batches: 1, bytes: 100 }, vec![vec![1, 1, 1]]);
    }

    #[test]
    fn no_wake_up_is_lost_when_half_of_the_queue_is_free_and_the_next_does_not_fit() {
        everything_arrives(QueueLimits { batches: 2, bytes: 10 }, vec![vec![1, 1, 10]]);
    }
}
