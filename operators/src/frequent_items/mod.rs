//! The frequent items of a stream as an operator, over the summaries of [`crate::summary`].
//!
//! ```text
//! batches ──► input ──► counting | workers | pipeline | windows ──► rows ──► batches
//!                                      ▲      │
//!                               query ─┘      └─► file of `snapshot`
//! ```
//!
//! | folder or file | contents |
//! |---|---|
//! | `parameters` | the parameters, their checks, and the parts that they make |
//! | `input` | items and weights of a batch |
//! | `counting` | summaries: of the whole stream, of windows, and of recent items, on one core or several |
//! | `published` | the Parallel Filter: the filter and the counters as two parts |
//! | `rows` | questions, counted items as rows, and when rows are emitted |

mod counting;
mod input;
mod parameters;
mod published;
mod rows;
#[cfg(test)]
mod tests;

pub use self::counting::scope::Decay;
pub use self::parameters::operator::{Algorithm, Emit, FrequentItems, Parallel};
pub use self::rows::labels::StoredItems;
pub use crate::shared::items::{Item, Items, StoredItem, Text};
pub use crate::shared::state::{RestoreError, SnapshotFileError};
pub use crate::shared::window::Window;
pub use crate::summary::{
    Absorbed, COUNTERS_MAX, CapacityError, Counted, Filter, FilterFront, MergeError, Sieve,
    SpaceSaving, sieve, top,
};
