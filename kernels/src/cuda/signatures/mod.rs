//! Tiles of all pairs on a device: the contract of [`crate::signatures`], a chunk of tiles at a
//! time.
//!
//! Sets go to the device once and get their signatures there ([`SignedSets`]); a chunk goes
//! through a [`Slot`]:
//!
//! ```text
//! Slot ──submit──► Flight ──collect──► Slot, with matches and unfinished tiles, or a count
//! ```
//!
//! The 32 pairs that a warp verifies at once reserve their places in a buffer of fixed room with
//! one atomic addition, and a strip that finds no place appends itself to the unfinished tiles,
//! which return with the matches. A kernel that counts first would find each overlap twice.
//!
//! Kernels: `kernels/cuda/signatures.cu`. The kernels find the same matches as the levels of the
//! processor; if there is no room for all matches, chance decides which matches are first.
//!
//! | file | contents |
//! |---|---|
//! | `launch` | entry points and grids |
//! | `signed`, `sign` | sets with their runs and signatures; the kernel that makes signatures |
//! | `tiles` | the buffers of a chunk, and its steps |

mod launch;
mod sign;
mod signed;
mod tiles;

pub use self::launch::GRID;
pub use self::signed::SignedSets;
pub use self::tiles::{Answer, Answered, Job, Kept, TileJoin, TileLimits};

#[cfg(doc)]
use super::Slot;
