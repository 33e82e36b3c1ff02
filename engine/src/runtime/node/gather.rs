//! The order in which a node takes the messages of lanes.
//!
//! The copies of a divided stage work on pieces of one stream side by side, and a later stage in
//! one place wants the rows in the order of that stream. Each piece has a number, from 0 without
//! gaps, and exactly one lane works on it; a lane works on its pieces in ascending order and sends
//! [`Message::Done`] after each one.
//!
//! ```text
//!  lane 1:  rows of 0 | done 0 | rows of 2 | done 2 | end ──┐
//!                                                           ├─► expects 0, 1, 2, 3: rows in order
//!  lane 2:  rows of 1 | done 1 | rows of 3 | done 3 | end ──┘
//! ```
//!
//! The gather expects one piece at a time. It takes messages of the lane whose first message
//! belongs to this piece, and leaves the messages of other lanes where they are. So a lane that is
//! ahead waits when its queue is full, and the lane with the expected piece never waits for another
//! lane: no set of lanes can block each other. The end marker of a lane is taken at once, since a
//! lane that ends has finished its last piece.

use std::collections::VecDeque;

use crate::channel::{EdgeReceiver, Message, Taken};

/// The lanes of one input of a node.
#[derive(Default)]
pub(crate) struct Gather {
    lanes: Vec<GatheredLane>,
    /// The number of the piece whose rows come next.
    expected: u64,
}

/// One lane, with the messages that the gather has received and that the node has not taken.
struct GatheredLane {
    port: usize,
    /// The edge of the lane; `None` if the lane runs on the thread of the node, or has ended.
    edge: Option<EdgeReceiver>,
    /// Messages of a lane on the same thread, or the first message of the edge.
    waiting: VecDeque<Message>,
}

/// An edge closed without its end marker.
pub(crate) struct Truncated;

impl Gather {
    /// Adds a lane of input `port`, on another thread if the lane has an edge; returns its index.
    pub(crate) fn add(&mut self, port: usize, edge: Option<EdgeReceiver>) -> usize {
        self.lanes.push(GatheredLane { port, edge, waiting: VecDeque::new() });
        self.lanes.len() - 1
    }

    /// Adds a message of a lane on the same thread.
    pub(crate) fn receive(&mut self, lane: usize, message: Message) {
        self.lanes[lane].waiting.push_back(message);
    }

    /// Whether messages of a lane on the same thread wait.
    pub(crate) fn is_waiting(&self, lane: usize) -> bool {
        !self.lanes[lane].waiting.is_empty()
    }

    /// Whether a call of [`Gather::next`] may find a message, or brings the first message of an
    /// edge here.
    pub(crate) fn is_ready(&self) -> bool {
        self.lanes.iter().any(|lane| match lane.waiting.front() {
            Some(message) => self.is_next(message),
            None => lane.edge.as_ref().is_some_and(EdgeReceiver::is_ready),
        })
    }

    /// Whether a message of a lane on the same thread can be taken now.
    pub(crate) fn has_local(&self) -> bool {
        let local = self.lanes.iter().filter(|lane| lane.edge.is_none());
        local.filter_map(|lane| lane.waiting.front()).any(|message| self.is_next(message))
    }

    fn is_next(&self, message: &Message) -> bool {
        match message {
            Message::Payload(payload) => {
                payload.origin().is_none_or(|origin| origin.sequence <= self.expected)
            }
            Message::Piece(_, piece) | Message::Done(piece) => *piece <= self.expected,
            Message::End(_) => true,
        }
    }

    /// Takes the next message in the order of the pieces, with its port. Marks of the gather's own
    /// lanes end here.
    pub(crate) fn next(&mut self) -> Result<Option<(usize, Message)>, Truncated> {
        loop {
            let Some(lane) = self.next_lane()? else { return Ok(None) };
            let message = self.lanes[lane].waiting.pop_front().expect("the lane has a message");
            match message {
                Message::Done(_) => self.expected += 1,
                Message::Payload(_) => return Ok(Some((self.lanes[lane].port, message))),
                Message::Piece(..) => {
                    self.expected += 1;
                    return Ok(Some((self.lanes[lane].port, message)));
                }
                Message::End(_) => {
                    self.lanes[lane].edge = None;
                    return Ok(Some((self.lanes[lane].port, message)));
                }
            }
        }
    }

    /// The lane whose first message comes next. Brings the first message of each edge here.
    fn next_lane(&mut self) -> Result<Option<usize>, Truncated> {
        for index in 0..self.lanes.len() {
            let lane = &mut self.lanes[index];
            if lane.waiting.is_empty()
                && let Some(edge) = &lane.edge
            {
                match edge.take() {
                    Taken::Message(message) => lane.waiting.push_back(message),
                    Taken::Nothing => {}
                    Taken::Truncated => return Err(Truncated),
                }
            }
            if self.lanes[index].waiting.front().is_some_and(|message| self.is_next(message)) {
                return Ok(Some(index));
            }
        }
        Ok(None)
    }
}
