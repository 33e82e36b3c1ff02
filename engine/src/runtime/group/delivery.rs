//! The delivery of an operator's output: to nodes of the same group, or into edges.

use std::mem;

use super::super::node::outputs::{Dealt, Destination, LocalInput};
use super::RunningGroup;
use crate::batch::{Chunk, Payload};
use crate::channel::Message;
use crate::error::{RunError, RunErrorCause};

impl RunningGroup {
    /// Moves the output of one call to its consumers.
    pub(super) fn pass_on(&mut self, index: usize) -> Result<(), RunError> {
        self.pass_payloads(index)?;
        let mut replies = mem::take(&mut self.output.replies);
        for reply in replies.drain(..) {
            self.send_reply(index, reply);
        }
        self.output.replies = replies;
        for commit in self.output.commits.drain(..) {
            let node = &self.nodes[index];
            self.shared.commit_at_end(node.label().to_owned(), node.operator(), commit);
        }
        if let Some(error) = self.output.late_failure.take() {
            self.shared.fail_late(self.nodes[index].error(RunErrorCause::Late(error)));
        }
        Ok(())
    }

    fn pass_payloads(&mut self, index: usize) -> Result<(), RunError> {
        let mut sent = mem::take(&mut self.output.sent);
        let mut begun = mem::take(&mut self.output.begun).into_iter().peekable();
        let mut to_copies = mem::take(&mut self.output.to_copies).into_iter().peekable();
        for (position, (mut port, payload)) in sent.drain(..).enumerate() {
            while let Some((_, piece)) = begun.next_if(|&(at, _)| at <= position) {
                self.begin_piece(index, piece);
            }
            if let Payload::Batch(batch) = &payload {
                self.nodes[index].check_columns(port, &batch.records)?;
                // Ports for chunks come first; a part that sends both numbers each kind from 0.
                port += self.nodes[index].chunk_ports();
            }
            self.nodes[index].count_out(payload.items());
            let chosen = to_copies.next_if(|&(at, _)| at == position).map(|(_, copy)| copy);
            self.send(index, port, payload, chosen);
        }
        begun.for_each(|(_, piece)| self.begin_piece(index, piece));
        self.output.sent = sent;
        Ok(())
    }

    /// Ends the piece before `piece` of a source that is a lane.
    fn begin_piece(&mut self, index: usize, piece: u64) {
        if let Some(before) = self.nodes[index].begin_piece(piece) {
            self.send_done(index, before);
        }
    }

    /// Tells consumers that want to know that all payloads of a piece have been sent.
    pub(super) fn send_done(&mut self, index: usize, piece: u64) {
        self.send_mark(index, |is_told| is_told.then_some(Message::Done(piece)));
    }

    /// Sends a message without a payload to all copies of the consumers of all ports. The argument
    /// of `message` says whether a consumer is told where pieces end.
    fn send_mark(&mut self, index: usize, message: impl Fn(bool) -> Option<Message>) {
        for port in 0..self.nodes[index].outputs.ports() {
            for consumer in 0..self.nodes[index].outputs.consumers(port) {
                let is_told = self.nodes[index].outputs.wants_pieces(port, consumer);
                for copy in 0..self.nodes[index].outputs.copies(port, consumer) {
                    let Some(message) = message(is_told) else { continue };
                    self.deliver(index, Destination { port, consumer, copy }, message);
                }
            }
        }
    }

    /// Gives `payload` to every consumer of an output port.
    fn send(&mut self, index: usize, port: usize, payload: Payload, chosen: Option<usize>) {
        for other in 1..self.nodes[index].outputs.consumers(port) {
            let shared = payload.share().expect("chunks have one consumer: the next part");
            self.send_one(index, port, other, shared, chosen);
        }
        self.send_one(index, port, 0, payload, chosen);
    }

    /// Gives `payload` to a consumer. If the consumer has several copies, one of them gets the
    /// payload, as a whole piece: the chosen one, if the operator has chosen.
    fn send_one(
        &mut self,
        index: usize,
        port: usize,
        consumer: usize,
        mut payload: Payload,
        chosen: Option<usize>,
    ) {
        let dealt = self.nodes[index].outputs.deal(port, consumer, &mut payload, chosen);
        let (copy, message) = match dealt {
            Some(Dealt { copy, piece }) => (copy, Message::Piece(payload, piece)),
            None => (0, Message::Payload(payload)),
        };
        self.deliver(index, Destination { port, consumer, copy }, message);
    }

    fn deliver(&mut self, index: usize, to: Destination, message: Message) {
        match self.nodes[index].outputs.pass_locally(to) {
            Some(LocalInput { node, lane: Some(lane), .. }) => {
                self.nodes[node].inputs.receive_of_lane(lane, message);
            }
            Some(LocalInput { node, port, .. }) => self.nodes[node].inputs.receive(port, message),
            None => self.nodes[index].outputs.send(to, message, self.now),
        }
    }

    /// Gives `reply` to the part before this one. A part that has ended takes no replies, so a
    /// reply that comes later is dropped, here or at the closed edge.
    fn send_reply(&mut self, index: usize, reply: Chunk) {
        match self.nodes[index].outputs.local_part_before() {
            Some(node) if self.nodes[node].is_done() => {}
            Some(node) => self.nodes[node].inputs.receive_reply(reply),
            None => self.nodes[index].outputs.send_reply(reply, self.now),
        }
    }

    /// Ends a node that has finished: the last answers, then the end markers.
    pub(super) fn end(&mut self, index: usize) {
        // Before the end markers, so that later parts still run when a forwarded query reaches
        // them.
        self.publish_watches(index);
        self.nodes[index].end();
        if let Some(piece) = self.nodes[index].end_piece() {
            self.send_done(index, piece);
        }
        let ending = self.nodes[index].ending();
        self.send_mark(index, |_| Some(Message::End(ending)));
    }
}
