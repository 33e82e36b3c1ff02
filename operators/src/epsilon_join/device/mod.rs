//! The choice of a GPU, vectors in its memory, and blocks in flight.
//!
//! | file | contents |
//! |---|---|
//! | `choice` | The choice between a GPU and the CPU for a join |
//! | `stores` | Blocks of vectors in the memory of a device |
//! | `flights` | Blocks of a join in flight on a GPU |

pub(crate) mod choice;
pub(crate) mod flights;
pub(crate) mod stores;
