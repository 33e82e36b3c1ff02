//! PREPARE of a stream of vectors: the merges of its panes, and its state.
//!
//! | file | contents |
//! |---|---|
//! | `producer` | Streaming join: each vector is joined on arrival to the earlier vectors of its window |
//! | `merging` | Merges of the panes of a stream during the join of its micro-batches |
//! | `gathering` | The first task of a merge: the vectors of panes, one pane after the other |
//! | `stored` | The vectors of the window of a stream as bytes, so that a later run goes on |

pub(crate) mod gathering;
pub(crate) mod merging;
pub(crate) mod producer;
pub(crate) mod stored;
