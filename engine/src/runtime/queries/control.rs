//! Control messages to a stage thread: queries and the registration of standing queries.
//!
//! A mailbox is bounded. A query that finds a full mailbox is refused, so a flood of queries can
//! neither exhaust memory nor stop the data.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;

use arc_swap::ArcSwapOption;
use arrow_array::RecordBatch;

use crate::channel::{Doorbell, MailboxSender, Refused, oneshot};
use crate::query::{Computation, QueryError, QueryPayload, Request, Share};

/// Maximum number of queries that wait at one thread.
pub(crate) const MAILBOX_QUERIES_MAX: usize = 1024;

/// A query on its way to a part.
pub(crate) struct Ticket {
    pub(crate) request: Request,
    /// The data of the part before this one.
    pub(crate) payload: Option<QueryPayload>,
    /// The position of the query: the part answers after exactly `after` messages of its input.
    /// `None` at the first part.
    pub(crate) after: Option<u64>,
    pub(crate) answer_to: AnswerTo,
    /// The pass of a query that the first part has forwarded, while later parts answer.
    pub(crate) pass: Option<Pass>,
}

impl Ticket {
    /// Whether a part has reached the position of the query after `taken` messages.
    pub(crate) fn is_due(&self, taken: u64) -> bool {
        self.after.is_none_or(|after| taken >= after)
    }

    /// Whether the caller still waits for the answer.
    pub(crate) fn is_wanted(&self) -> bool {
        match &self.answer_to {
            AnswerTo::Caller(caller) => caller.is_wanted(),
            AnswerTo::Watch(_) => true,
        }
    }
}

/// Counts one query among those of a stage that its later parts have not answered yet. When the
/// pass is dropped, it rings the bell of the first part.
pub(crate) struct Pass {
    under_way: Arc<AtomicUsize>,
    bell: Arc<Doorbell>,
}

impl Pass {
    pub(crate) fn new(under_way: &Arc<AtomicUsize>, bell: &Arc<Doorbell>) -> Self {
        // Relaxed, here and below: the number is a limit and publishes no data.
        under_way.fetch_add(1, Ordering::Relaxed);
        Self { under_way: Arc::clone(under_way), bell: Arc::clone(bell) }
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        self.under_way.fetch_sub(1, Ordering::Relaxed);
        self.bell.ring();
    }
}

/// The answer of one copy of a stage.
pub(crate) enum CopyAnswer {
    /// The whole answer, which its caller computes.
    Whole(Computation),
    /// The share of the copy in the answer.
    Share(Share),
}

/// An answer, or the reason why there is no answer.
pub(crate) type QueryAnswer = Result<CopyAnswer, QueryError>;

/// The recipient of an answer.
pub(crate) enum AnswerTo {
    Caller(oneshot::Sender<QueryAnswer>),
    Watch(Arc<WatchSlot>),
}

impl AnswerTo {
    pub(crate) fn give(self, answer: QueryAnswer) {
        match self {
            Self::Caller(caller) => caller.send(answer),
            Self::Watch(slot) => slot.publish(answer),
        }
    }
}

/// The rows of an answer, or the reason why there are none.
pub(crate) type Answered = Result<RecordBatch, QueryError>;

/// The answer of one copy of a stage, and its time.
pub(crate) struct Published {
    pub(crate) answer: PublishedAnswer,
    pub(crate) at: Instant,
}

pub(crate) enum PublishedAnswer {
    Whole(Arc<Answered>),
    Share(Share),
}

/// A standing query at one copy of a stage: the last answer, and whether the answer has been read,
/// which requests a newer one.
pub(crate) struct WatchSlot {
    pub(crate) request: Request,
    pub(crate) published: ArcSwapOption<Published>,
    is_wanted: AtomicBool,
}

impl WatchSlot {
    pub(crate) fn new(request: Request) -> Self {
        Self { request, published: ArcSwapOption::empty(), is_wanted: AtomicBool::new(true) }
    }

    fn publish(&self, answer: QueryAnswer) {
        let answer = match answer {
            Ok(CopyAnswer::Share(share)) => PublishedAnswer::Share(share),
            Ok(CopyAnswer::Whole(compute)) => PublishedAnswer::Whole(Arc::new(compute())),
            Err(error) => PublishedAnswer::Whole(Arc::new(Err(error))),
        };
        self.published.store(Some(Arc::new(Published { answer, at: Instant::now() })));
    }

    pub(crate) fn request_refresh(&self) {
        // Relaxed: the mark carries no data, and the doorbell orders the mark against a wait.
        self.is_wanted.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_wanted(&self) -> bool {
        self.is_wanted.load(Ordering::Relaxed)
    }

    pub(crate) fn take_refresh_request(&self) -> bool {
        self.is_wanted() && self.is_wanted.swap(false, Ordering::Relaxed)
    }
}

/// A message of a mailbox. `part` is the index of the part in the thread's group.
pub(crate) enum Control {
    Query { part: usize, ticket: Ticket },
    Watch { part: usize, slot: Arc<WatchSlot> },
}

impl Control {
    /// Whether somebody still waits for the answer.
    fn is_wanted(&self) -> bool {
        match self {
            Self::Query { ticket, .. } => ticket.is_wanted(),
            // The message has one reference: a slot without another reference has lost its reader.
            Self::Watch { slot, .. } => Arc::strong_count(slot) > 1,
        }
    }
}

/// The address of a part: its mailbox and bell.
#[derive(Clone)]
pub(crate) struct Address {
    mailbox: MailboxSender<Control>,
    bell: Arc<Doorbell>,
    part: usize,
    stage: Arc<str>,
    /// Callers that wait for an answer.
    callers: Arc<AtomicUsize>,
}

/// One caller that waits for an answer.
pub(crate) struct Caller<'a> {
    callers: &'a AtomicUsize,
    /// Whether no other caller waits at the same stage.
    pub(crate) is_alone: bool,
}

impl Drop for Caller<'_> {
    fn drop(&mut self) {
        self.callers.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Address {
    pub(crate) fn new(
        mailbox: MailboxSender<Control>,
        bell: Arc<Doorbell>,
        part: usize,
        stage: &str,
    ) -> Self {
        Self { mailbox, bell, part, stage: stage.into(), callers: Arc::default() }
    }

    /// Counts a caller, who waits until the returned value is dropped.
    pub(crate) fn enter(&self) -> Caller<'_> {
        // Relaxed: the number is a hint how to wait, and publishes no data.
        let is_alone = self.callers.fetch_add(1, Ordering::Relaxed) == 0;
        Caller { callers: &self.callers, is_alone }
    }

    /// Sends the query of a caller, who receives the answer on the calling thread.
    pub(crate) fn ask(&self, request: Request) -> oneshot::Receiver<QueryAnswer> {
        let (caller, answer) = oneshot::channel();
        let (payload, after, pass) = (None, None, None);
        let answer_to = AnswerTo::Caller(caller);
        self.send_query(Ticket { request, payload, after, answer_to, pass });
        answer
    }

    /// Sends a query. If the mailbox refuses the query, the answer is the reason.
    pub(crate) fn send_query(&self, ticket: Ticket) {
        let Err(refused) = self.send(Control::Query { part: self.part, ticket }) else { return };
        let refusal = self.refusal(&refused);
        if let Refused::Full(Control::Query { ticket, .. })
        | Refused::Closed(Control::Query { ticket, .. }) = refused
        {
            ticket.answer_to.give(Err(refusal));
        }
    }

    pub(crate) fn send_watch(&self, slot: Arc<WatchSlot>) -> Result<(), QueryError> {
        let control = Control::Watch { part: self.part, slot };
        self.send(control).map_err(|refused| self.refusal(&refused))
    }

    pub(crate) fn ring(&self) {
        self.bell.ring();
    }

    fn send(&self, control: Control) -> Result<(), Refused<Control>> {
        self.mailbox.put(control, Control::is_wanted)?;
        self.bell.ring();
        Ok(())
    }

    fn refusal(&self, refused: &Refused<Control>) -> QueryError {
        let stage = self.stage.to_string();
        match refused {
            Refused::Full(_) => QueryError::Busy { stage, limit: MAILBOX_QUERIES_MAX },
            Refused::Closed(_) => QueryError::Finished { stage },
        }
    }
}
