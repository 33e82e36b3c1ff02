//! The frequent items of a stream as an operator, over the summaries of [`crate::summary`].
//!
//! ```text
//! batches ──► input ──► counting | shards | pipeline | windows ──► rows ──► batches
//!                                      ▲      │
//!                               query ─┘      └─► file of `snapshot`
//! ```
//!
//! | file | contents |
//! |---|---|
//! | `operator` | the parameters |
//! | `scope` | the parameters of windows and decay |
//! | `bind` | from parameters to parts |
//! | `input` | items and weights of a batch |
//! | `counting` | one summary, on one core |
//! | `keys` | the keys of texts on another core than the counts |
//! | `emission` | when rows are emitted |
//! | `shards` | a summary for each of several cores |
//! | `pipeline` | the filter and the counters as two parts |
//! | `windows` | a summary for each pane of a window |
//! | `query` | questions and answers |
//! | `ranked` | counted items as rows |
//! | `rows` | rows on their way out, some rows a call |
//! | `memory` | the share of the memory of the pipeline |
//! | `labels` | what a state counts |

mod bind;
mod counting;
mod emission;
mod input;
mod keys;
mod labels;
mod memory;
mod operator;
mod pipeline;
mod query;
mod ranked;
mod rows;
mod scope;
mod shards;
#[cfg(test)]
mod tests;
mod windows;

pub use self::labels::StoredItems;
pub use self::operator::{Algorithm, Emit, FrequentItems, Parallel};
pub use self::scope::{Decay, Window};
pub use crate::items::{Item, Items, StoredItem, Text};
pub use crate::state::{RestoreError, SnapshotFileError};
pub use crate::summary::{
    Absorbed, COUNTERS_MAX, CapacityError, Counted, Filter, FilterFront, MergeError, Sieve,
    SpaceSaving, sieve, top,
};
