//! Sets as they come: each is joined to those before it, as far back as a window reaches.
//!
//! ```text
//! batch ──► micro-batch ─┬─► joined to itself ─────────────┐
//!                        ├─► looked up in each live pane ──┼─► chunks ──► verify ──► pairs, or
//!                        ▼                                 │              the sets that pass
//!      cell ......... cell ......... cell (open)           │
//!    [ pane     ]  [ pane     ]  [ pane ][ p ][p] ─────────┘
//!      dropped when its newest set has left the window
//! ```
//!
//! A *pane* is sets that came one after the other, with token numbers by their frequency among
//! themselves and an index, neither of which ever changes. Sets that come later may be of any size,
//! so a pane's index holds the longest prefix that any partner can need, and both ends of the
//! sizes are tested; a token that a pane does not know has no postings there, is rarer than all it
//! knows, and counts as a part of its set only.
//!
//! Panes are merged as in a log-structured index (O'Neil et al., *The Log-Structured Merge-Tree*,
//! 1996): one that is not more than twice as large as what has come after it is made anew together
//! with that, so that there are a logarithmic number of them and each set is sorted a logarithmic
//! number of times. No pane reaches over the border of a *cell*, of which a window has
//! [`CELLS`](window::CELLS), so memory holds the window and at most one cell more. Which pairs are
//! results does not depend on it: whether the older set is still in the window is tested for
//! each pair, exactly.
//!
//! | file | what it holds |
//! |---|---|
//! | `window` | how far back sets are remembered |
//! | `pane` | sets with their numbering, when they came, and an index |
//! | `look_up` | candidates of a micro-batch in a pane |
//! | `join` | the panes, and a micro-batch on its way through them |
//! | `operator` | the operator of a pipeline |

mod join;
mod look_up;
mod operator;
mod pane;
#[cfg(test)]
mod tests;
mod window;

pub(super) use self::join::Rules;
pub(super) use self::operator::{Filter, deduplicate};
pub(super) use self::window::Extent;
pub use self::window::JoinWindow;
