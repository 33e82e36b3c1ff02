//! Transactions on their way from a batch to the tid lists of a window.
//!
//! | file | contents |
//! |---|---|
//! | `collector` | Transactions as they arrive, in blocks |
//! | `transposed` | A block of transactions, transposed: for each of its items the transactions that hold it |
//! | `panes` | The blocks of transactions, by pane |
//! | `joining` | Joins the lists of blocks: one tid list for each frequent item of a window, in tasks that cores can do side by side |
//! | `vertical` | The tid lists of the frequent items of a window |
//! | `pair_rows` | The frequent pairs of a window, which are the rows of triples |
//! | `stored` | The transactions of a stream or of its last window as bytes, so that a later run goes on |

pub(crate) mod collector;
pub(crate) mod joining;
pub(crate) mod pair_rows;
pub(crate) mod panes;
pub(crate) mod stored;
pub(crate) mod transposed;
pub(crate) mod vertical;
