//! The consumers of a node: nodes of the same thread, and edges to other threads.
//!
//! A consumer that is divided has a target for each of its copies. The node deals its messages to
//! the copies: each message is a piece of its own. A batch goes to the copy with the shortest
//! queue. Chunks to the next part of an operator go to the copies in turn, so that the states of
//! the copies are a function of the stream.

use std::cmp::Reverse;
use std::time::Instant;

use super::super::queries::control::Address;
use crate::batch::{Chunk, Payload};
use crate::channel::{EdgeSender, Message};
use crate::graph::Route;
use crate::metrics::PartCounters;
use crate::sync::counter::{add, nanoseconds};

/// A consumer of an output port.
pub(crate) enum OutputTarget {
    /// Input `port` of a node of the same group. `pushed` counts the messages so far.
    Local { node: usize, port: usize, lane: Option<(usize, usize)>, pushed: u64 },
    /// The edge to a node of another thread.
    Remote(EdgeSender),
}

/// An input of a node of the same group: its port or, of a node that gathers lanes, its lane.
pub(crate) struct LocalInput {
    pub(crate) node: usize,
    pub(crate) port: usize,
    pub(crate) lane: Option<(usize, usize)>,
}

/// A stage, or the next part, that reads an output port.
struct OutputConsumer {
    /// One target, or a target for each copy of the consumer.
    targets: Vec<OutputTarget>,
    route: Route,
    /// The number of the next piece that is dealt.
    next_piece: u64,
}

impl OutputConsumer {
    /// The copy that gets the next message: a copy on another thread with the fewest messages in
    /// its queue; if all queues are full, the copy on this thread.
    fn next_copy(&self, is_chunk: bool) -> usize {
        let edge = |target: &OutputTarget| match target {
            OutputTarget::Remote(edge) => Some(edge.depth()),
            OutputTarget::Local { .. } => None,
        };
        // Copies with equal queues take turns.
        let copies = self.targets.len();
        let first = usize::try_from(self.next_piece).unwrap_or(usize::MAX) % copies;
        if is_chunk {
            return first;
        }
        let turns = || (first..copies).chain(0..first);
        let free = turns().filter(|&copy| edge(&self.targets[copy]).is_some_and(|(_, free)| free));
        let shortest = free.min_by_key(|&copy| edge(&self.targets[copy]).map(|(depth, _)| depth));
        let local = || turns().find(|&copy| edge(&self.targets[copy]).is_none());
        shortest.or_else(local).unwrap_or(first)
    }
}

impl OutputTarget {
    fn local_input(&self) -> Option<LocalInput> {
        match self {
            Self::Remote(_) => None,
            &Self::Local { node, port, lane, .. } => Some(LocalInput { node, port, lane }),
        }
    }
}

/// One copy of a consumer of an output port.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Destination {
    pub(crate) port: usize,
    pub(crate) consumer: usize,
    pub(crate) copy: usize,
}

/// The copy of a consumer that a payload goes to, and the number of the payload's piece.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Dealt {
    pub(crate) copy: usize,
    pub(crate) piece: u64,
}

/// The next part of the operator, and the number of chunks that the node has sent to this part so
/// far.
pub(crate) enum NextPart<'a> {
    Local { node: usize, sent: u64 },
    Remote { address: &'a Address, sent: u64 },
}

/// The copies of the next part, with the number of messages that the node has sent to each.
pub(crate) struct NextCopies<'a>(pub(crate) Vec<NextPart<'a>>);

/// The outputs of one node.
#[derive(Default)]
pub(crate) struct NodeOutputs {
    /// The consumers of each port.
    ports: Vec<Vec<OutputConsumer>>,
    /// The consumers in the same group, the most downstream one first.
    local_nodes: Vec<usize>,
    /// The part before this one, which takes replies.
    reply: Option<OutputTarget>,
    /// The addresses of the next part of the operator, or of its copies.
    next_parts: Vec<Address>,
    /// While a message waits for space: the beginning of the part of the wait that is not counted
    /// yet.
    stuck_since: Option<Instant>,
}

impl NodeOutputs {
    /// Adds a consumer to output `port`, or a copy of the last consumer that messages are dealt to.
    pub(crate) fn add_target(&mut self, port: usize, route: Route, target: OutputTarget) {
        if self.ports.len() <= port {
            self.ports.resize_with(port + 1, Vec::new);
        }
        if let OutputTarget::Local { node, .. } = target {
            self.local_nodes.push(node);
            self.local_nodes.sort_unstable_by_key(|&node| Reverse(node));
        }
        let consumers = &mut self.ports[port];
        match consumers.last_mut() {
            Some(last) if route.is_dealt() && last.route == route => last.targets.push(target),
            _ => consumers.push(OutputConsumer { targets: vec![target], route, next_piece: 0 }),
        }
    }

    /// Sets the way back to the part before this one.
    pub(crate) fn set_reply_target(&mut self, target: OutputTarget) {
        self.reply = Some(target);
    }

    /// Adds the address of the next part, or of the next of its copies.
    pub(crate) fn add_next_part(&mut self, address: Address) {
        self.next_parts.push(address);
    }

    /// Number of output ports; 0 for a sink.
    pub(crate) fn ports(&self) -> usize {
        self.ports.len()
    }

    /// Number of consumers of `port`.
    pub(crate) fn consumers(&self, port: usize) -> usize {
        self.ports[port].len()
    }

    /// Whether the consumer is told where a piece of the stream ends.
    pub(crate) fn wants_pieces(&self, port: usize, consumer: usize) -> bool {
        matches!(self.ports[port][consumer].route, Route::Lane | Route::Gathered(_))
    }

    /// Chooses a copy of the consumer for `payload`, unless the operator has chosen one, and
    /// numbers the payload as a piece; `None` if the consumer has one copy.
    pub(crate) fn deal(
        &mut self,
        port: usize,
        consumer: usize,
        payload: &mut Payload,
        chosen: Option<usize>,
    ) -> Option<Dealt> {
        let consumer = &mut self.ports[port][consumer];
        if !consumer.route.is_dealt() {
            return None;
        }
        let copy = || consumer.next_copy(matches!(payload, Payload::Chunk(_)));
        let dealt = Dealt { copy: chosen.unwrap_or_else(copy), piece: consumer.next_piece };
        payload.set_sequence(dealt.piece);
        consumer.next_piece += 1;
        Some(dealt)
    }

    /// Number of copies of a consumer.
    pub(crate) fn copies(&self, port: usize, consumer: usize) -> usize {
        self.ports[port][consumer].targets.len()
    }

    /// The consumers in the same group, the most downstream one first.
    pub(crate) fn local_nodes(&self) -> &[usize] {
        &self.local_nodes
    }

    /// The inputs of consumers on this thread.
    pub(crate) fn local_inputs(&self) -> impl Iterator<Item = LocalInput> {
        self.targets().filter_map(OutputTarget::local_input)
    }

    /// Counts a message to one copy of a consumer and returns the consumer's input, if the consumer
    /// is in the same group.
    pub(crate) fn pass_locally(&mut self, to: Destination) -> Option<LocalInput> {
        let target = self.target_mut(to);
        if let OutputTarget::Local { pushed, .. } = target {
            *pushed += 1;
        }
        target.local_input()
    }

    fn target_mut(
        &mut self,
        Destination { port, consumer, copy }: Destination,
    ) -> &mut OutputTarget {
        &mut self.ports[port][consumer].targets[copy]
    }

    /// Sends `message` to one copy of a consumer on another thread, or keeps the message until
    /// there is space.
    pub(crate) fn send(&mut self, to: Destination, message: Message, now: Instant) {
        if let OutputTarget::Remote(edge) = self.target_mut(to)
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
        self.next_copy_of_part(0)
    }

    /// The copies to which queries are forwarded, if the next part has partial states.
    pub(crate) fn next_copies(&self) -> Option<NextCopies<'_>> {
        let consumer = self.ports.first()?.first()?;
        let copies = || (0..consumer.targets.len()).map(|copy| self.next_copy_of_part(copy));
        consumer.route.is_dealt().then(|| NextCopies(copies().collect()))
    }

    fn next_copy_of_part(&self, copy: usize) -> NextPart<'_> {
        match &self.ports[0][0].targets[copy] {
            OutputTarget::Remote(edge) => {
                let address = self.next_parts.get(copy);
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

    fn targets(&self) -> impl Iterator<Item = &OutputTarget> {
        self.ports.iter().flatten().flat_map(|consumer| &consumer.targets)
    }

    fn edges(&self) -> impl Iterator<Item = &EdgeSender> {
        self.targets().chain(&self.reply).filter_map(|target| match target {
            OutputTarget::Remote(edge) => Some(edge),
            OutputTarget::Local { .. } => None,
        })
    }

    fn edges_mut(&mut self) -> impl Iterator<Item = &mut EdgeSender> {
        let consumers = self.ports.iter_mut().flatten();
        let targets = consumers.flat_map(|consumer| &mut consumer.targets);
        targets.chain(&mut self.reply).filter_map(|target| match target {
            OutputTarget::Remote(edge) => Some(edge),
            OutputTarget::Local { .. } => None,
        })
    }
}
