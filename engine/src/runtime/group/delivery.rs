//! The delivery of an operator's output: to nodes of the same group, or into edges.

use std::mem;

use super::super::node::outputs::LocalInput;
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
        for (mut port, payload) in sent.drain(..) {
            if let Payload::Batch(batch) = &payload {
                self.nodes[index].check_columns(port, &batch.records)?;
                // Ports for chunks come first; a part that sends both numbers each kind from 0.
                port += self.nodes[index].chunk_ports();
            }
            self.nodes[index].count_out(payload.items());
            self.send(index, port, payload);
        }
        self.output.sent = sent;
        Ok(())
    }

    /// Gives `payload` to every consumer of an output port.
    fn send(&mut self, index: usize, port: usize, payload: Payload) {
        for other in 1..self.nodes[index].outputs.consumers(port) {
            let shared = payload.share().expect("chunks have one consumer: the next part");
            self.deliver(index, port, other, Message::Payload(shared));
        }
        self.deliver(index, port, 0, Message::Payload(payload));
    }

    fn deliver(&mut self, index: usize, port: usize, consumer: usize, message: Message) {
        match self.nodes[index].outputs.pass_locally(port, consumer) {
            Some(LocalInput { node, port }) => self.nodes[node].inputs.receive(port, message),
            None => self.nodes[index].outputs.send(port, consumer, message, self.now),
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
        let ending = self.nodes[index].ending();
        for port in 0..self.nodes[index].outputs.ports() {
            for consumer in 0..self.nodes[index].outputs.consumers(port) {
                self.deliver(index, port, consumer, Message::End(ending));
            }
        }
    }
}
