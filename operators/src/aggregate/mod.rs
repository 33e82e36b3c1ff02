//! Operator that computes values of groups of rows.
//!
//! ```text
//! batches ──► columns ──► keys ──► numbers of groups ──► accumulators ──► rows, sorted by key
//!             of `by`                                    (columns indexed
//!             and of calls                                by these numbers)
//! ```
//!
//! A batch is one pass over its columns for each step: keys, hashes, numbers of groups, and a loop
//! for each accumulator. Several workers have groups of their own, which a last part merges
//! (`whole`); windows are sums of panes (`windows`).
//!
//! | folder or file | contents |
//! |---|---|
//! | `parameters` | the parameters, and the way from parameters to parts |
//! | `input` | from batches to the columns of groups and arguments |
//! | `accumulate` | the values of groups |
//! | `memory` | the memory that the parts share |
//! | `state` | groups with their values, and the rows of groups |
//! | `whole`, `windows` | the parts of the operator |
//! | `questions` | the query of a running stage |

mod accumulate;
mod input;
mod memory;
mod parameters;
mod questions;
mod state;
#[cfg(test)]
mod tests;
mod whole;
mod windows;

pub use self::parameters::operator::Aggregate;
