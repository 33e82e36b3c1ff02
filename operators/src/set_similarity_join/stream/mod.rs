//! Streaming join: each set is joined on arrival to the earlier sets of its window.
//!
//! ```text
//! batch ──► micro-batch ──► numbers ──► added to the posting lists of its prefix, where older
//!             │                         postings are tested ──► candidates by pane ──► chunks
//!             ▼                                    ──► verify ──► pairs, or the rows that pass
//!      cell ......... cell ......... cell (open)
//!    [ pane     ]  [ pane     ]  [ pane ][ p ][p]
//!      dropped when its newest set has left the window
//! ```
//!
//! **Index.** There is one index of all sets in the window: a posting list per token, in the order
//! of arrival. For each token of its prefix, a set is looked up among the earlier postings of the
//! token's list, and is then appended to the list. A later set can have any size, so the index
//! holds the longest prefix that any partner needs, and a look-up has a lower and an upper bound on
//! the size. Each posting has a signature, so most sets need not be read.
//!
//! **Cache misses.** A posting list costs two misses, the list and its postings, both when a set is
//! added and when the set is removed; a sparse token costs one miss. All these misses are
//! prefetched some sets or tokens ahead, so the misses overlap.
//!
//! **Numbers.** The tokens of all sets are numbered in one order, by frequency at the last
//! numbering; new tokens count as the rarest tokens. Tokens are renumbered and the index is rebuilt
//! when there are twice as many tokens as at the last numbering, when most of the index is empty,
//! when memory is short, or when look-ups since the last numbering have cost several times as much
//! as renumbering costs (the *ski rental* rule: Karlin, Manasse, Rudolph, Sleator, *Competitive
//! Snoopy Caching*, Algorithmica 3, 1988).
//!
//! **Panes.** A *pane* holds consecutive sets for the verification. A pane never changes, so chunks
//! can refer to a pane in any thread and on any device.
//! [`Panes`](crate::shared::window::panes::Panes) merges and expires panes: memory holds the window
//! and at most one [cell](crate::shared::window::Extent::cell) more. Results do not depend on panes
//! and cells: for each pair, an exact test decides whether the older set is still in the window.
//!
//! | file | contents |
//! |---|---|
//! | `window` | the parameter `window` |
//! | `tokens` | numbers of tokens |
//! | `pane` | sets on arrival, and panes |
//! | `index` | posting lists; a hash table for sparse tokens; look-ups in long lists where one similar set is enough |
//! | `look_up` | candidates of a micro-batch |
//! | `join` | the state, and the micro-batch that is being joined |
//! | `operator` | the parts of a pipeline: the producer of pairs, and deduplication |

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
