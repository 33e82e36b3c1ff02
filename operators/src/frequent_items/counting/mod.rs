//! The state of the operator: all of the stream, a window, or recent items, on one core or several.
//!
//! | file | contents |
//! |---|---|
//! | `state` | The operator with its state in one place: SpaceSaving, the filter in front of it, or the sieve; plain, or with counts that fade |
//! | `scope` | The part of the stream that counts: all of it, a window, or recent items by decay |
//! | `windows` | The operator over windows: rows for each window when it closes |
//! | `memory` | The share of a summary in the memory of the pipeline |
//! | `shards` | Several summaries over alternating batches, each on a core of its own |

pub(crate) mod memory;
pub(crate) mod scope;
pub(crate) mod shards;
pub(crate) mod state;
pub(crate) mod windows;
