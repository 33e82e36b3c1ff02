//! Control messages to a stage thread: queries and the registration of standing queries.
//!
//! A mailbox is bounded. A query that finds a full mailbox is refused, so a flood of queries can
//! neither exhaust memory nor stop the data.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Instant;

use arc_swap::ArcSwapOption;
use arrow_array::RecordBatch;

use crate::channel::{Doorbell, MailboxSender, Refused, oneshot};
use crate::query::{Computation, CopyPayloads, QueryError, QueryPayload, Request, Share};
use crate::sync::lock;

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
            // The copies must agree on the queries that they answer, so none drops one.
            AnswerTo::Watch(_) | AnswerTo::Join(_) => true,
        }
    }
}

/// A query that several copies forward, and the data of the copies so far.
pub(crate) struct Join {
    waiting: Mutex<JoinWaiting>,
    /// The bell of the part that joins the data, which a failure rings.
    bell: OnceLock<Arc<Doorbell>>,
}

/// The part of one copy in a query that several copies forward. If the share is dropped before it
/// is given, such as in the mailbox of a thread that ends, the query fails: the part behind the
/// copies would wait for ever.
pub(crate) struct JoinShare {
    join: Arc<Join>,
    copy: usize,
    is_given: bool,
}

impl JoinShare {
    /// Gives the data of the copy to the part behind the copies, which waits on `bell`.
    pub(crate) fn give(
        mut self,
        payload: QueryPayload,
        bell: &Arc<Doorbell>,
    ) -> (Arc<Join>, usize) {
        self.is_given = true;
        self.join.bell.get_or_init(|| Arc::clone(bell));
        self.join.put(self.copy, payload);
        (Arc::clone(&self.join), self.copy)
    }
}

impl Drop for JoinShare {
    fn drop(&mut self) {
        if !self.is_given {
            self.join.fail(None);
        }
    }
}

struct JoinWaiting {
    /// The query as it came to the copies; `None` after its answer.
    ticket: Option<Ticket>,
    copies: Vec<Option<QueryPayload>>,
    left: usize,
}

impl Join {
    /// `ticket` has the data of the part before the copies.
    pub(crate) fn new(ticket: Ticket, copies: usize) -> Arc<Self> {
        let copies: Vec<_> = (0..copies).map(|_| None).collect();
        let left = copies.len();
        let waiting = Mutex::new(JoinWaiting { ticket: Some(ticket), copies, left });
        Arc::new(Self { waiting, bell: OnceLock::new() })
    }

    /// The share of each copy, which is to be given.
    pub(crate) fn share(self: &Arc<Self>, copy: usize) -> JoinShare {
        JoinShare { join: Arc::clone(self), copy, is_given: false }
    }

    /// Notes the data of a copy.
    fn put(&self, copy: usize, payload: QueryPayload) {
        let mut waiting = lock(&self.waiting);
        waiting.left -= usize::from(waiting.copies[copy].replace(payload).is_none());
    }

    /// Answers with the reason why a copy has no data; without a reason, since the copy has ended,
    /// the caller gets no answer.
    fn fail(&self, reason: Option<QueryError>) {
        let ticket = lock(&self.waiting).ticket.take();
        if let (Some(ticket), Some(reason)) = (ticket, reason) {
            ticket.answer_to.give(Err(reason));
        }
        if let Some(bell) = self.bell.get() {
            bell.ring();
        }
    }

    /// Whether the data of all copies are there.
    pub(crate) fn is_complete(&self) -> bool {
        lock(&self.waiting).left == 0
    }

    /// Whether the query has been answered with an error.
    pub(crate) fn has_failed(&self) -> bool {
        lock(&self.waiting).ticket.is_none()
    }

    /// The query with the data of all copies.
    pub(crate) fn take(&self) -> Option<Ticket> {
        let mut waiting = lock(&self.waiting);
        let mut ticket = waiting.ticket.take()?;
        let copies = waiting.copies.drain(..).map(|copy| copy.expect("all copies have come"));
        let first = ticket.payload.take().expect("the part before the copies has sent data");
        ticket.payload = Some(Box::new(CopyPayloads { first, copies: copies.collect() }));
        Some(ticket)
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
    /// The part behind the copies of a part, one of which answers.
    Join(JoinShare),
}

impl AnswerTo {
    pub(crate) fn give(self, answer: QueryAnswer) {
        match self {
            Self::Caller(caller) => caller.send(answer),
            Self::Watch(slot) => slot.publish(answer),
            Self::Join(share) => match answer {
                Err(error) => share.join.fail(Some(error)),
                Ok(_) => unreachable!("a copy forwards its data to the part behind the copies"),
            },
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::channel::oneshot::RecvError;

    fn asked(copies: usize) -> (Arc<Join>, oneshot::Receiver<QueryAnswer>) {
        let (caller, answer) = oneshot::channel();
        let (request, answer_to) = (Request::new("sum"), AnswerTo::Caller(caller));
        let payload: Option<QueryPayload> = Some(Box::new(()));
        let ticket = Ticket { request, payload, after: None, answer_to, pass: None };
        (Join::new(ticket, copies), answer)
    }

    #[test]
    fn a_query_that_a_copy_drops_has_failed() {
        let bell = Arc::new(Doorbell::new());
        let (join, answer) = asked(2);
        join.share(0).give(Box::new(1_u64), &bell);
        assert!(!join.has_failed() && !join.is_complete());
        drop(join.share(1));
        assert!(join.has_failed() && join.take().is_none());
        let limit = std::time::Duration::MAX;
        assert!(matches!(answer.recv(limit, true), Err(RecvError::Closed)));
    }

    #[test]
    fn the_data_of_copies_are_in_their_order() {
        let bell = Arc::new(Doorbell::new());
        let (join, _answer) = asked(3);
        for copy in [2, 0, 1] {
            assert!(!join.is_complete());
            join.share(copy).give(Box::new(copy), &bell);
        }
        assert!(join.is_complete());
        let payload = join.take().unwrap().payload.unwrap().downcast::<CopyPayloads>().unwrap();
        let copies: Vec<usize> =
            payload.copies.into_iter().map(|copy| *copy.downcast::<usize>().unwrap()).collect();
        assert_eq!(copies, [0, 1, 2]);
    }
}
