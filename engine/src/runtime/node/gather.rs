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
//!
//! States of copies come in any order. There, a query stops a lane at the position from which the
//! lane's copy has forwarded the query, until the query has come from all copies and all lanes are
//! at their positions ([`Gather::stop_at`]): the answer is that of one cut through all lanes. A
//! stopped lane waits for messages of other lanes only, which their copies have sent already or
//! will send; a copy reads its queries also while its messages have no room.

use std::collections::VecDeque;

use crate::channel::{EdgeReceiver, Message, Taken};

/// The lanes of one input of a node.
#[derive(Default)]
pub(crate) struct Gather {
    lanes: Vec<GatheredLane>,
    /// Whether messages come in the order of pieces.
    is_ordered: bool,
    /// The number of the piece whose rows come next.
    expected: u64,
    /// The lane that the next look begins with, if there is no order.
    turn: usize,
    /// The lane whose message was fetched last.
    fetched: usize,
}

/// One lane, with the messages that the gather has received and that the node has not taken.
struct GatheredLane {
    port: usize,
    /// The edge of the lane; `None` if the lane runs on the thread of the node, or has ended.
    edge: Option<EdgeReceiver>,
    /// Messages of a lane on the same thread, or the first message of the edge.
    waiting: VecDeque<Message>,
    /// Number of messages that the node has taken from the lane.
    taken: u64,
    /// Positions at which queries stop the lane, in ascending order.
    stops: VecDeque<u64>,
}

impl GatheredLane {
    fn is_stopped(&self) -> bool {
        self.stops.front().is_some_and(|&position| self.taken >= position)
    }
}

/// An edge closed without its end marker.
pub(crate) struct Truncated;

impl Gather {
    /// Adds a lane of input `port`, on another thread if the lane has an edge; returns its index.
    pub(crate) fn add(&mut self, port: usize, edge: Option<EdgeReceiver>) -> usize {
        let (waiting, stops) = (VecDeque::new(), VecDeque::new());
        self.lanes.push(GatheredLane { port, edge, waiting, taken: 0, stops });
        self.lanes.len() - 1
    }

    /// Lanes whose messages come in the order of pieces, or in any order.
    pub(crate) fn new(is_ordered: bool) -> Self {
        Self { is_ordered, ..Self::default() }
    }

    /// Stops a lane after `position` messages, until [`Gather::go_on`].
    pub(crate) fn stop_at(&mut self, lane: usize, position: u64) {
        self.lanes[lane].stops.push_back(position);
    }

    /// Whether all lanes are at the positions of their first stops.
    pub(crate) fn has_stopped(&self) -> bool {
        self.lanes.iter().all(GatheredLane::is_stopped)
    }

    /// Removes a stop of a lane.
    pub(crate) fn go_on(&mut self, lane: usize, position: u64) {
        let stops = &mut self.lanes[lane].stops;
        if let Some(index) = stops.iter().position(|&stop| stop == position) {
            stops.remove(index);
        }
    }

    /// Adds a message of a lane on the same thread.
    pub(crate) fn receive(&mut self, lane: usize, message: Message) {
        self.lanes[lane].waiting.push_back(message);
    }

    /// Whether messages of a lane on the same thread wait.
    pub(crate) fn is_waiting(&self, lane: usize) -> bool {
        !self.lanes[lane].waiting.is_empty()
    }

    /// Whether a call of [`Gather::fetch`] may find a message, or brings the first message of an
    /// edge here.
    pub(crate) fn is_ready(&self) -> bool {
        self.lanes.iter().any(|lane| match lane.waiting.front() {
            Some(message) => self.is_next(lane, message),
            None => lane.edge.as_ref().is_some_and(EdgeReceiver::is_ready),
        })
    }

    /// Whether a message of a lane on the same thread can be taken now.
    pub(crate) fn has_local(&self) -> bool {
        let local = self.lanes.iter().filter(|lane| lane.edge.is_none());
        local
            .filter_map(|lane| Some((lane, lane.waiting.front()?)))
            .any(|(lane, message)| self.is_next(lane, message))
    }

    fn is_next(&self, lane: &GatheredLane, message: &Message) -> bool {
        if !self.is_ordered {
            return !lane.is_stopped();
        }
        match message {
            Message::Payload(payload) => {
                payload.origin().is_none_or(|origin| origin.sequence <= self.expected)
            }
            Message::Piece(_, piece) | Message::Done(piece) => *piece <= self.expected,
            Message::End(_) => true,
        }
    }

    /// Whether a message can be taken now. Marks of the gather's own lanes end here.
    pub(crate) fn fetch(&mut self) -> Result<bool, Truncated> {
        while let Some(lane) = self.next_lane()? {
            if !self.is_ordered
                || !matches!(self.lanes[lane].waiting.front(), Some(Message::Done(_)))
            {
                self.fetched = lane;
                return Ok(true);
            }
            self.lanes[lane].waiting.pop_front();
            self.expected += 1;
        }
        Ok(false)
    }

    /// Whether the message that was fetched can still be taken: no query has stopped its lane.
    pub(crate) fn can_take(&self) -> bool {
        !self.lanes[self.fetched].is_stopped()
    }

    /// Takes the message that was fetched, with its port.
    pub(crate) fn take(&mut self) -> (usize, Message) {
        let lane = &mut self.lanes[self.fetched];
        let message = lane.waiting.pop_front().expect("a message was fetched");
        lane.taken += 1;
        match &message {
            Message::Piece(..) => self.expected += 1,
            Message::End(_) => lane.edge = None,
            Message::Payload(_) | Message::Done(_) => {}
        }
        (lane.port, message)
    }

    /// The lane whose first message comes next. Brings the first message of each edge here.
    fn next_lane(&mut self) -> Result<Option<usize>, Truncated> {
        let lanes = self.lanes.len();
        for step in 0..lanes {
            let index = (self.turn + step) % lanes;
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
            let lane = &self.lanes[index];
            if lane.waiting.front().is_some_and(|message| self.is_next(lane, message)) {
                if !self.is_ordered {
                    self.turn = (index + 1) % lanes;
                }
                return Ok(Some(index));
            }
        }
        Ok(None)
    }
}
