//! Sets in the order of arrival, and the tasks that collect them.
//!
//! | file | contents |
//! |---|---|
//! | `arrived` | Sets in the order of arrival |
//! | `collector` | Collects the sets of a join as they arrive, then numbers their tokens and sorts them |
//! | `gathering` | Collects the sets of batches in tasks, which several cores can do while further
//! batches arrive |
//! | `numbering` | Numbers tokens by ascending frequency |

pub(crate) mod arrived;
pub(crate) mod collector;
pub(crate) mod gathering;
pub(crate) mod numbering;
