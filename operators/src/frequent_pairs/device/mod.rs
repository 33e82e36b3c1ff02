//! The choice of a GPU, and tasks in flight there.
//!
//! | file | contents |
//! |---|---|
//! | `choice` | The choice between a GPU and the CPU for the pairs of a window |
//! | `flights` | Tasks of tiles in flight on a GPU |

pub(crate) mod choice;
pub(crate) mod flights;
