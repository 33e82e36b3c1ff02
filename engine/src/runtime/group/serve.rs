//! Queries at a group: their order, their answers, and their way to the next part.
//!
//! A caller's query waits in the order of arrival until its part is at a batch boundary and the
//! thread has credit for it (see [`Allowance`](crate::runtime::queries::allowance::Allowance)). A
//! forwarded query is answered at its position among the chunks at any cost: the first part has
//! admitted the query, and admits no more while a later part owes time. A query whose caller has
//! given up is not computed.

use std::mem;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use super::super::node::outputs::{NextCopies, NextPart};
use super::super::queries::control::{AnswerTo, Control, CopyAnswer, Join, Ticket, WatchSlot};
use super::super::waits::LAST_ANSWERS;
use super::RunningGroup;
use crate::query::Response;
use crate::sync::counter::nanoseconds;

impl RunningGroup {
    /// Empties the mailbox. A forwarded query is accepted before the chunk that follows the query
    /// is processed.
    pub(super) fn serve_mailbox(&mut self) {
        if self.mailbox.is_empty() {
            return;
        }
        let mut mail = mem::take(&mut self.mail);
        self.mailbox.take_all(&mut mail);
        for control in mail.drain(..) {
            match control {
                Control::Query { part, ticket } if ticket.after.is_some() => {
                    self.accept(part, ticket);
                }
                Control::Query { part, ticket } => self.enqueue(part, ticket),
                Control::Watch { part, slot } => self.add_watch(part, slot),
            }
        }
        self.mail = mail;
    }

    /// Lets the query of a caller wait for its turn.
    fn enqueue(&mut self, index: usize, ticket: Ticket) {
        let node = &mut self.nodes[index];
        let before = node.tickets.asked();
        let refused = node.tickets.ask(ticket);
        self.asked = self.asked - before + node.tickets.asked();
        if let Err(ticket) = refused {
            ticket.answer_to.give(Err(node.busy()));
        }
    }

    fn add_watch(&mut self, index: usize, slot: Arc<WatchSlot>) {
        self.nodes[index].tickets.add_watch(slot);
        self.has_watches = true;
        if self.nodes[index].is_done() {
            // The state changes no more, so this answer is the last.
            self.publish_watches(index);
            self.nodes[index].tickets.clear_watches();
        }
    }

    /// Answers callers in turn, as long as the thread has credit.
    pub(super) fn answer_asked(&mut self) {
        while self.asked > 0 && self.allowance.is_open() && self.answer_one() {}
    }

    /// Answers one caller, and standing queries, on a thread without other work; false if no
    /// query can be answered.
    pub(super) fn answer_at_leisure(&mut self) -> bool {
        self.allowance.forgive();
        let mut has_published = false;
        if self.has_watches {
            for index in 0..self.nodes.len() {
                has_published |= self.serve_watches(index);
            }
        }
        (self.asked > 0 && self.answer_one()) || has_published
    }

    /// Answers waiting callers when all parts have ended, for a limited time: no number of callers
    /// delays the end.
    pub(super) fn answer_last(&mut self) {
        let until = Instant::now() + LAST_ANSWERS;
        while self.asked > 0 && Instant::now() < until && self.answer_one() {}
    }

    /// Answers, or forwards, the oldest query at the next part that can do so.
    fn answer_one(&mut self) -> bool {
        for _ in 0..self.nodes.len() {
            self.served = (self.served + 1) % self.nodes.len();
            let index = self.served;
            if !self.nodes[index].can_answer_asked() {
                continue;
            }
            while let Some(ticket) = self.nodes[index].tickets.next_asked() {
                self.asked -= 1;
                if ticket.is_wanted() {
                    self.answer(index, ticket);
                    self.refresh_clock();
                    return true;
                }
            }
        }
        false
    }

    /// Reads the clock, so that the time of queries is not counted as work of the next part.
    fn refresh_clock(&mut self) {
        self.now = Instant::now();
    }

    /// Answers a forwarded query now, or keeps the query until its position is reached.
    fn accept(&mut self, index: usize, ticket: Ticket) {
        let node = &mut self.nodes[index];
        if ticket.payload.is_some() && matches!(ticket.answer_to, AnswerTo::Join(_)) {
            return self.accept_of_copy(index, ticket);
        }
        if node.can_answer(&ticket) {
            self.answer(index, ticket);
        } else if let Err(ticket) = node.tickets.hold(ticket) {
            ticket.answer_to.give(Err(node.busy()));
        }
    }

    /// Takes the data of one copy for a query, and lets no message of the copy pass before the
    /// data of all copies are there.
    fn accept_of_copy(&mut self, index: usize, ticket: Ticket) {
        let Ticket { payload: Some(payload), after: Some(position), answer_to, .. } = ticket else {
            unreachable!("a copy sends its data and its position")
        };
        let AnswerTo::Join(share) = answer_to else { unreachable!("a copy answers a join") };
        let (join, copy) = share.give(payload, &self.bell);
        let node = &mut self.nodes[index];
        let lanes = node.inputs.copies_mut().expect("copies send to a part with lanes");
        lanes.stop_at(copy, position);
        node.tickets.join(&join, (copy, position));
        self.serve_joins(index);
    }

    /// Answers the queries whose data have come from all copies, when all copies are at the
    /// position of the query. A query that has failed at one copy stops the others no more.
    fn serve_joins(&mut self, index: usize) {
        while self.nodes[index].tickets.has_joins() {
            while let Some(copies) = self.nodes[index].tickets.take_failed_join() {
                self.nodes[index].go_on_with(&copies);
            }
            if !self.nodes[index].can_answer_join() {
                return;
            }
            let first = self.nodes[index].tickets.take_first_join();
            let (join, copies) = first.expect("the first one is complete");
            if let Some(ticket) = join.take() {
                self.answer(index, ticket);
            }
            self.nodes[index].go_on_with(&copies);
        }
    }

    /// Answers the forwarded queries whose position the node has reached.
    pub(super) fn serve_held(&mut self, index: usize) {
        self.serve_joins(index);
        if !self.nodes[index].tickets.has_held() || !self.nodes[index].may_be_asked() {
            return;
        }
        for ticket in self.nodes[index].tickets.take_held() {
            self.accept(index, ticket);
        }
    }

    /// Renews the standing answers that were read since the last renewal, if the thread has credit.
    pub(super) fn serve_watches(&mut self, index: usize) -> bool {
        let is_due = self.has_watches && self.nodes[index].wants_publishing();
        is_due && self.allowance.is_open() && {
            self.renew_watches(index);
            true
        }
    }

    /// Renews all standing answers.
    pub(super) fn publish_watches(&mut self, index: usize) {
        for slot in self.nodes[index].tickets.watches() {
            slot.request_refresh();
        }
        self.renew_watches(index);
    }

    fn renew_watches(&mut self, index: usize) {
        for position in 0..self.nodes[index].tickets.watches().len() {
            let slot = Arc::clone(&self.nodes[index].tickets.watches()[position]);
            if slot.take_refresh_request() {
                let (request, answer_to) = (slot.request.clone(), AnswerTo::Watch(slot));
                let (payload, after, pass) = (None, None, None);
                self.answer(index, Ticket { request, payload, after, answer_to, pass });
            }
        }
    }

    fn answer(&mut self, index: usize, mut ticket: Ticket) {
        // Relaxed: only read to name the stage of a hang or, on the same thread, of a panic.
        self.current.store(index, Ordering::Relaxed);
        let begin = Instant::now();
        let response = self.nodes[index].query(&ticket.request, ticket.payload.take());
        let spend = || self.allowance.spend(nanoseconds(begin.elapsed()));
        let answer = match response {
            Ok(Response::Forward(payload)) => {
                spend();
                return self.send_on(index, Ticket { payload: Some(payload), ..ticket });
            }
            Ok(Response::Answer(rows)) => Ok(CopyAnswer::Whole(Box::new(|| Ok(rows)))),
            Ok(Response::Compute(computation)) => Ok(CopyAnswer::Whole(computation)),
            Ok(Response::Share(share)) => Ok(CopyAnswer::Share(share)),
            Err(error) => Err(error),
        };
        ticket.answer_to.give(answer);
        spend();
    }

    /// Forwards a query to the next part, which answers after the chunks that were sent so far.
    fn send_on(&mut self, index: usize, ticket: Ticket) {
        if let Some(NextCopies(copies)) = self.nodes[index].outputs.next_copies() {
            let copies = copies.len();
            return self.send_to_copies(index, copies, ticket);
        }
        let Ticket { request, payload, answer_to, pass, .. } = ticket;
        let pass = pass.or_else(|| Some(self.nodes[index].tickets.pass(&self.bell)));
        let onward = |sent| Ticket { request, payload, after: Some(sent), answer_to, pass };
        match self.nodes[index].outputs.next_part() {
            NextPart::Remote { address, sent } => address.send_query(onward(sent)),
            NextPart::Local { node, sent } => self.accept(node, onward(sent)),
        }
    }

    /// Forwards a query to all copies of the next part.
    fn send_to_copies(&mut self, index: usize, copies: usize, mut ticket: Ticket) {
        ticket.pass = Some(self.nodes[index].tickets.pass(&self.bell));
        let request = ticket.request.clone();
        let join = Join::new(ticket, copies);
        for copy in 0..copies {
            let next = self.nodes[index].outputs.next_copies();
            let NextCopies(mut next) = next.expect("the next part has copies");
            let onward = |sent| {
                let answer_to = AnswerTo::Join(join.share(copy));
                let (request, after) = (request.clone(), Some(sent));
                Ticket { request, payload: None, after, answer_to, pass: None }
            };
            match next.swap_remove(copy) {
                NextPart::Remote { address, sent } => address.send_query(onward(sent)),
                NextPart::Local { node, sent } => self.accept(node, onward(sent)),
            }
        }
    }
}
