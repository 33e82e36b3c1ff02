//! The state of the operator: all of the stream, a window, or recent items, on one core or several.
//!
//! | file | contents |
//! |---|---|
//! | `state` | The operator with its state in one place: SpaceSaving, the filter in front of it, or the sieve; plain, or with counts that fade |
//! | `scope` | The part of the stream that counts: all of it, a window, or recent items by decay |
//! | `windows` | The operator over windows: rows for each window when it closes |
//! | `window_rows` | The rows of windows |
//! | `partial_windows` | Windows that several workers count |
//! | `memory` | The share of a summary in the memory of the pipeline |
//! | `partial` | A summary for each worker, and the sum of their bounds |

pub(crate) mod memory;
pub(crate) mod partial;
pub(crate) mod partial_windows;
pub(crate) mod scope;
pub(crate) mod state;
pub(crate) mod window_rows;
pub(crate) mod windows;
