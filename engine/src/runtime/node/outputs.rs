//! The consumers of a node: nodes of the same thread, and edges to other threads.

use std::cmp::Reverse;
use std::time::Instant;

use super::super::queries::control::Address;
use crate::batch::{Chunk, Payload};
use crate::channel::{EdgeSender, Message};
use crate::metrics::PartCounters;
use crate::sync::counter::{add, nanoseconds};

/// A consumer of an output port.
pub(crate) enum OutputTarget {
    /// Input `port` of a node of the same group. `pushed` counts the messages so far.
    Local { node: usize, port: usize, pushed: u64 },
    /// The edge to a node of another thread.
    Remote(EdgeSender),
}

/// An input of a node of the same group.
pub(crate) struct LocalInput {
    pub(crate) node: usize,
    pub(crate) port: usize,
}

/// The next part of the operator, and the number of chunks that the node has sent to this part so
/// far.
pub(crate) enum NextPart<'a> {
    Local { node: usize, sent: u64 },
    Remote { address: &'a Address, sent: u64 },
}

/// The outputs of one node.
#[derive(Default)]
pub(crate) struct NodeOutputs {
    /// The consumers of each port.
    ports: Vec<Vec<OutputTarget>>,
    /// The consumers in the same group, the most downstream one first.
    local_nodes: Vec<usize>,
    /// The part before this one, which takes replies.
    reply: Option<OutputTarget>,
    /// The address of the next part of the operator, if the part is on another thread.
    next_part: Option<Address>,
    /// While a message waits for space: the beginning of the part of the wait that is not counted
    /// yet.
    stuck_since: Option<Instant>,
}

impl NodeOutputs {
    /// Adds a consumer to output `port`.
    pub(crate) fn add_target(&mut self, port: usize, target: OutputTarget) {
        if self.ports.len() <= port {
            self.ports.resize_with(port + 1, Vec::new);
        }
        if let OutputTarget::Local { node, .. } = target {
            self.local_nodes.push(node);
            self.local_nodes.sort_unstable_by_key(|&node| Reverse(node));
        }
        self.ports[port].push(target);
    }

    /// Sets the way back to the part before this one.
    pub(crate) fn set_reply_target(&mut self, target: OutputTarget) {
        self.reply = Some(target);
    }

    /// Sets the address of the next part, on another thread.
    pub(crate) fn set_next_part(&mut self, address: Address) {
        self.next_part = Some(address);
    }

    /// Number of output ports; 0 for a sink.
    pub(crate) fn ports(&self) -> usize {
        self.ports.len()
    }

    /// Number of consumers of `port`.
    pub(crate) fn consumers(&self, port: usize) -> usize {
        self.ports[port].len()
    }

    /// The consumers in the same group, the most downstream one first.
    pub(crate) fn local_nodes(&self) -> &[usize] {
        &self.local_nodes
    }

    /// Counts a message to one consumer and returns the consumer's input, if the consumer is in the
    /// same group.
    pub(crate) fn pass_locally(&mut self, port: usize, consumer: usize) -> Option<LocalInput> {
        match &mut self.ports[port][consumer] {
            OutputTarget::Remote(_) => None,
            OutputTarget::Local { node, port, pushed } => {
                *pushed += 1;
                Some(LocalInput { node: *node, port: *port })
            }
        }
    }

    /// Sends `message` to one consumer on another thread, or keeps the message until there is
    /// space.
    pub(crate) fn send(&mut self, port: usize, consumer: usize, message: Message, now: Instant) {
        if let OutputTarget::Remote(edge) = &mut self.ports[port][consumer]
            && !edge.push(message)
        {
            self.stuck_since.get_or_insert(now);
        }
    }

    /// The part before this one, if that part is in the same group.
    ///
    /// # Panics
    /// If there is no part before this one.
    pub(crate) fn local_part_before(&self) -> Option<usize> {
        match self.reply.as_ref().expect("the first part of an operator sends no replies") {
            OutputTarget::Remote(_) => None,
            OutputTarget::Local { node, .. } => Some(*node),
        }
    }

    /// Sends `reply` to the part before this one, on another thread, or keeps the reply until there
    /// is space.
    pub(crate) fn send_reply(&mut self, reply: Chunk, now: Instant) {
        if let Some(OutputTarget::Remote(edge)) = &mut self.reply
            && !edge.push(Message::Payload(Payload::Chunk(reply)))
        {
            self.stuck_since.get_or_insert(now);
        }
    }

    /// The part to which queries are forwarded.
    ///
    /// # Panics
    /// If there is no next part.
    pub(crate) fn next_part(&self) -> NextPart<'_> {
        match &self.ports[0][0] {
            OutputTarget::Remote(edge) => {
                let address = self.next_part.as_ref();
                let address = address.expect("only a part with a successor forwards a query");
                NextPart::Remote { address, sent: edge.pushed() }
            }
            OutputTarget::Local { node, pushed, .. } => {
                NextPart::Local { node: *node, sent: *pushed }
            }
        }
    }

    /// Whether a message waits for space.
    pub(crate) fn is_stuck(&self) -> bool {
        self.stuck_since.is_some()
    }

    /// Whether a queue that was full has space again.
    pub(crate) fn can_flush(&self) -> bool {
        self.is_stuck() && self.edges().any(|edge| edge.is_blocked() && edge.has_space())
    }

    /// Sends kept messages as far as the edges have space. If no message is left, counts the wait
    /// and returns true.
    pub(crate) fn flush(&mut self, now: Instant, counters: &PartCounters) -> bool {
        if !self.is_stuck() {
            return true;
        }
        let mut is_stuck = false;
        for edge in self.edges_mut() {
            is_stuck |= !edge.flush();
        }
        if !is_stuck {
            self.count_blocked(now, counters);
            self.stuck_since = None;
        }
        !is_stuck
    }

    /// Counts the wait for space up to `now`, for the node and for its edges.
    pub(crate) fn count_wait(&mut self, now: Instant, counters: &PartCounters) {
        self.count_blocked(now, counters);
        self.edges_mut().for_each(EdgeSender::count_blocked);
    }

    fn count_blocked(&mut self, now: Instant, counters: &PartCounters) {
        if let Some(since) = self.stuck_since.replace(now) {
            add(&counters.blocked_ns, nanoseconds(now.saturating_duration_since(since)));
        }
    }

    fn edges(&self) -> impl Iterator<Item = &EdgeSender> {
        self.ports.iter().flatten().chain(&self.reply).filter_map(|target| match target {
            OutputTarget::Remote(edge) => Some(edge),
            OutputTarget::Local { .. } => None,
        })
    }

    fn edges_mut(&mut self) -> impl Iterator<Item = &mut EdgeSender> {
        self.ports.iter_mut().flatten().chain(&mut self.reply).filter_map(|target| match target {
            OutputTarget::Remote(edge) => Some(edge),
            OutputTarget::Local { .. } => None,
        })
    }
}
