//! Overlaps of candidate pairs on a device: the contract of [`crate::overlap`], a chunk at a
//! time.
//!
//! Sets go to the device once ([`DeviceSets`]); a chunk goes through a [`Slot`]:
//!
//! ```text
//! Slot ──submit──► Flight ──collect──► Slot, with overlaps or a count, and times
//! ```
//!
//! Kernels: `kernels/cuda/overlap.cu`. Each kernel returns the same bits as the levels of the
//! processor.
//!
//! | file | contents |
//! |---|---|
//! | `variant` | the kernels, which find the same overlaps in different ways |
//! | `policy` | a kernel with its grid and shared memory |
//! | `pairs` | the buffers of a chunk, and its steps |

mod pairs;
mod policy;
mod variant;

pub use self::pairs::{Answer, Answered, ChunkLimits, Job, Kept, PairOverlap};
pub use self::policy::Policy;
pub use self::variant::{UnknownVariant, Variant};

#[cfg(doc)]
use super::{DeviceSets, Slot};
