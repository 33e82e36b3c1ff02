//! The messages that a node takes: from nodes of its thread, from edges, and replies.

use std::collections::VecDeque;

use super::gather::Gather;
pub(crate) use super::gather::Truncated;
use crate::batch::{Chunk, Payload};
use crate::channel::{EdgeReceiver, Message, Taken};
use crate::operator::Ending;

/// An input from another thread.
struct InputEdge {
    port: usize,
    edge: EdgeReceiver,
    has_ended: bool,
}

/// The inputs of one node.
#[derive(Default)]
pub(crate) struct NodeInputs {
    /// Messages to process next, with their ports: messages of nodes of the same group, and at most
    /// one message of an edge.
    inbox: VecDeque<(usize, Message)>,
    edges: Vec<InputEdge>,
    /// Inputs that come from lanes.
    gathers: Vec<Gather>,
    /// Index of the edge, or of the gather after all edges, that the next fetch tries first.
    next_edge: usize,
    /// The piece of which the last message that was taken was the end.
    done: Option<u64>,
    /// Number of inputs, local or remote, that have not ended.
    open: usize,
    /// Number of inputs of each port that have not ended.
    open_of_ports: Vec<usize>,
    /// The greatest ending so far of the inputs of each port.
    endings: Vec<Ending>,
    /// Number of messages taken so far, end markers included: the position that forwarded queries
    /// refer to.
    taken: u64,
    /// Replies to process next.
    replies: VecDeque<Chunk>,
    /// The edge of the replies when the next part is on another thread.
    reply_edge: Option<EdgeReceiver>,
}

impl NodeInputs {
    /// Adds an input of `port` from a node of the same group.
    pub(crate) fn add_local(&mut self, port: usize) {
        self.count(port);
    }

    fn count(&mut self, port: usize) {
        self.open += 1;
        let ports = self.open_of_ports.len().max(port + 1);
        self.open_of_ports.resize(ports, 0);
        self.endings.resize(ports, Ending::Whole);
        self.open_of_ports[port] += 1;
    }

    /// Adds an input of `port` from another thread.
    pub(crate) fn add_edge(&mut self, port: usize, edge: EdgeReceiver) {
        self.count(port);
        self.edges.push(InputEdge { port, edge, has_ended: false });
    }

    /// Adds one lane of the input with the number `gather`, on another thread if the lane has an
    /// edge; returns the index of the lane.
    pub(crate) fn add_lane(
        &mut self,
        gather: usize,
        port: usize,
        edge: Option<EdgeReceiver>,
    ) -> usize {
        self.count(port);
        if self.gathers.len() <= gather {
            self.gathers.resize_with(gather + 1, Gather::default);
        }
        self.gathers[gather].add(port, edge)
    }

    /// Sets the edge of the replies.
    pub(crate) fn set_reply_edge(&mut self, edge: EdgeReceiver) {
        self.reply_edge = Some(edge);
    }

    /// Adds a message of a node of the same group.
    pub(crate) fn receive(&mut self, port: usize, message: Message) {
        self.inbox.push_back((port, message));
    }

    /// Adds a message of a lane on the same thread.
    pub(crate) fn receive_of_lane(&mut self, (gather, lane): (usize, usize), message: Message) {
        self.gathers[gather].receive(lane, message);
    }

    /// Adds a reply of a node of the same group.
    pub(crate) fn receive_reply(&mut self, reply: Chunk) {
        self.replies.push_back(reply);
    }

    /// Whether a message of a node of the same group waits, which can be taken now.
    pub(crate) fn has_local_message(&self) -> bool {
        !self.inbox.is_empty() || self.gathers.iter().any(Gather::has_local)
    }

    /// Whether messages of one producer on the same thread wait; of a producer that is no lane,
    /// whether any message of the thread waits.
    pub(crate) fn has_unread(&self, lane: Option<(usize, usize)>) -> bool {
        !self.inbox.is_empty()
            || lane.is_some_and(|(gather, lane)| self.gathers[gather].is_waiting(lane))
    }

    /// Whether any message waits.
    pub(crate) fn has_message(&self) -> bool {
        let is_ready = |input: &InputEdge| !input.has_ended && input.edge.is_ready();
        !self.inbox.is_empty()
            || self.edges.iter().any(is_ready)
            || self.gathers.iter().any(Gather::is_ready)
    }

    /// Whether a reply waits.
    pub(crate) fn has_reply(&self) -> bool {
        !self.replies.is_empty() || self.reply_edge.as_ref().is_some_and(EdgeReceiver::is_ready)
    }

    /// Whether the end markers of all inputs have been taken.
    pub(crate) fn have_ended(&self) -> bool {
        self.open == 0
    }

    /// Number of messages taken so far, end markers included.
    pub(crate) fn taken(&self) -> u64 {
        self.taken
    }

    /// Fetches a message from the edges in turn, unless the inbox has one; false if no message
    /// waits.
    pub(crate) fn fetch(&mut self) -> Result<bool, Truncated> {
        if !self.inbox.is_empty() {
            return Ok(true);
        }
        let edges = self.edges.len();
        let inputs = edges + self.gathers.len();
        for _ in 0..inputs {
            let next = self.next_edge;
            self.next_edge = (next + 1) % inputs;
            if next >= edges {
                if let Some(message) = self.gathers[next - edges].next()? {
                    self.inbox.push_back(message);
                    return Ok(true);
                }
                continue;
            }
            let input = &mut self.edges[next];
            if input.has_ended {
                continue;
            }
            match input.edge.take() {
                Taken::Message(message) => {
                    input.has_ended = matches!(message, Message::End(_));
                    self.inbox.push_back((input.port, message));
                    return Ok(true);
                }
                Taken::Nothing => {}
                Taken::Truncated => return Err(Truncated),
            }
        }
        Ok(false)
    }

    /// Fetches a reply from its edge, unless one has been fetched; false if no reply waits.
    pub(crate) fn fetch_reply(&mut self) -> Result<bool, Truncated> {
        if !self.replies.is_empty() {
            return Ok(true);
        }
        let Some(edge) = &self.reply_edge else { return Ok(false) };
        match edge.take() {
            Taken::Message(Message::Payload(Payload::Chunk(reply))) => {
                self.replies.push_back(reply);
                Ok(true)
            }
            Taken::Nothing => Ok(false),
            Taken::Message(_) | Taken::Truncated => Err(Truncated),
        }
    }

    /// The ending of the inputs of `port`, if the end markers of all these inputs have been taken.
    pub(crate) fn port_ending(&self, port: usize) -> Option<Ending> {
        (self.open_of_ports[port] == 0).then(|| self.endings[port])
    }

    /// The ending of the inputs that have ended: one stopped input makes all stopped.
    pub(crate) fn ending(&self) -> Ending {
        self.endings.iter().copied().max().unwrap_or_default()
    }

    /// Takes the message that was fetched, with its port. An end marker has no payload, and
    /// neither has the end of a piece, which [`NodeInputs::take_done`] names.
    pub(crate) fn take(&mut self) -> (usize, Option<Payload>) {
        self.taken += 1;
        match self.inbox.pop_front().expect("a message was fetched") {
            (port, Message::Payload(payload)) => (port, Some(payload)),
            (port, Message::Piece(payload, piece)) => {
                self.done = Some(piece);
                (port, Some(payload))
            }
            (port, Message::Done(piece)) => {
                self.done = Some(piece);
                (port, None)
            }
            (port, Message::End(ending)) => {
                self.open -= 1;
                self.open_of_ports[port] -= 1;
                self.endings[port] = self.endings[port].max(ending);
                (port, None)
            }
        }
    }

    /// The piece whose end was taken last, once; the node asks at a batch boundary.
    pub(crate) fn take_done(&mut self) -> Option<u64> {
        self.done.take()
    }

    /// Takes the reply that was fetched.
    pub(crate) fn take_reply(&mut self) -> Chunk {
        self.replies.pop_front().expect("a reply was fetched")
    }

    /// Drops the replies that wait and the replies that still come.
    pub(crate) fn close_replies(&mut self) {
        self.replies.clear();
        if let Some(edge) = self.reply_edge.take() {
            edge.close();
        }
    }
}
