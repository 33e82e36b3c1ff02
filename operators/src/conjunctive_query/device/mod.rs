//! The choice of a GPU, the segments in its memory, and batches in flight.
//!
//! | file | contents |
//! |---|---|
//! | `choice` | The choice between a GPU and the CPU for a batch of queries |
//! | `resident` | Segments that stay in a device's memory |
//! | `streamed` | Lists that batches bring to a device, for segments that find no room in its memory |
//! | `flights` | Batches of queries in flight on a GPU |
//! | `joined` | Answers of a device to a batch, joined over the segments of its index |

pub(crate) mod choice;
pub(crate) mod flights;
pub(crate) mod joined;
pub(crate) mod resident;
pub(crate) mod streamed;
