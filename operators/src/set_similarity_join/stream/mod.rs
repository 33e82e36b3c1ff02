//! Sets as they come: each is joined to those before it, as far back as a window reaches.
//!
//! ```text
//! batch ──► micro-batch ──► numbers ──► added to the lists of its prefix, whose older postings
//!             │                         are looked at ──► candidates by pane ──► chunks ──► verify
//!             ▼                                                          ──► pairs, or what passes
//!      cell ......... cell ......... cell (open)
//!    [ pane     ]  [ pane     ]  [ pane ][ p ][p]
//!      dropped when its newest set has left the window
//! ```
//!
//! There is one index of all sets in the window: a list of postings for each token, in the order in
//! which sets came. A set is looked up among those before it, and added, at the cost of one list
//! for each token of its prefix. Sets that come later may be of any size, so the index holds the
//! longest prefix that any partner can need, and both ends of the sizes are tested. A posting has a
//! signature, so that few of the sets that it stands for have to be looked at.
//!
//! All sets have their tokens numbered in one order, which is by frequency only as long as
//! frequencies stay what they were. A token that is new counts as the rarest. Tokens are numbered
//! anew, and the index is made anew, when there are twice as many as the last time, when most of
//! the index is empty, when memory is short, or when so many postings have been tested that it
//! costs little beside (the *ski rental* rule: Karlin, Manasse, Rudolph, Sleator, *Competitive
//! Snoopy Caching*, Algorithmica 3, 1988).
//!
//! A *pane* holds sets that came one after the other, to be verified; it never changes, so that
//! chunks can name it. [`Panes`](crate::panes::Panes) merges and expires panes: memory holds the
//! window and at most one [cell](crate::window::Extent::cell) more. Results do not depend on it: it
//! is tested for each pair, exactly, whether the older set is still in the window.
//!
//! | file | what it holds |
//! |---|---|
//! | `window` | how far back sets are remembered |
//! | `tokens` | numbers for tokens |
//! | `pane` | sets as they come; sets that are remembered |
//! | `index` | postings by token |
//! | `look_up` | candidates of a micro-batch |
//! | `join` | all of it, and a micro-batch on its way through |
//! | `operator` | the operator of a pipeline |

mod index;
mod join;
mod look_up;
mod operator;
mod pane;
#[cfg(test)]
mod tests;
mod tokens;
mod window;

pub(super) use self::join::StreamRules;
pub(super) use self::operator::{StreamProducer, deduplicate};
pub use self::window::JoinWindow;
