//! The division of the work of a stage over workers.
//!
//! An operator declares how its work may be divided, and makes further copies of the part that can
//! be copied. The engine decides how many copies run (`graph/divide.rs`), on which threads, and
//! how rows get there; an operator knows no other copy.
//!
//! ```text
//!  one place      read ─► join ─► write
//!
//!  lanes          read 1 ─► words 1 ─► count 1 ─┐ states
//!                 read 2 ─► words 2 ─► count 2 ─┼────────► merge ─► write     (partial)
//!                 read 3 ─► words 3 ─► count 3 ─┘
//!
//!  dealt          pipe ──┬► filter 1 ─┐ pieces, in their order
//!                        └► filter 2 ─┴─────────────────────────────► write    (anywhere)
//! ```
//!
//! Divided stages that follow each other form a *region*: all of them have the same number of
//! copies, copy *i* of a stage sends its rows to copy *i* of the next stage, and the copies with
//! the same number share a thread. Such a chain of copies is a *lane*.
//!
//! The stream of a region consists of numbered *pieces*. A source that is divided takes pieces from
//! a counter that its copies share ([`Output::begin_piece`](super::Output::begin_piece)); in front
//! of a region whose input comes from one place, the engine makes each message a piece. A stage in
//! one place behind a region gets the rows in the order of the pieces, so it cannot tell that the
//! stream was divided.

/// The way in which the work of a stage may be divided over workers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Division {
    /// One worker does all work: the result depends on the whole stream and its order.
    #[default]
    OnePlace,
    /// A source: each copy takes pieces of the input, which the copies share.
    Pieces,
    /// Any copy may take any batch: the rows that a batch leads to depend on this batch alone, and
    /// have all been sent when the operator asks for more input.
    Anywhere,
    /// Each copy has a state of the batches that it got, and sends the state to the last part,
    /// which merges the states. A copy answers queries with its share
    /// ([`Response::Share`](crate::query::Response::Share)).
    Partial,
}

impl Division {
    /// The division in a word, for people.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::OnePlace => "one place",
            Self::Pieces => "pieces",
            Self::Anywhere => "anywhere",
            Self::Partial => "partial",
        }
    }
}
