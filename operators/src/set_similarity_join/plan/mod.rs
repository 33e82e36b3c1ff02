//! Cost models: where candidates are verified, and which sizes are joined by tiles.
//!
//! | file | contents |
//! |---|---|
//! | `costs` | measured costs |
//! | `way` | the way of `auto` on a CPU |
//! | `tiling` | the sizes that `auto` joins by tiles on a device |
//! | `saved` | the time that a device saves the CPU |
//! | `sample` | sets of a sample and the test of their pairs |
//! | `verification` | cost of verifying a chunk |
//! | `opening` | when a device is opened |
//! | `verify_plan` | device and kernel, from `verify` and `device` |

pub(crate) mod costs;
pub(crate) mod opening;
pub(crate) mod sample;
pub(crate) mod saved;
pub(crate) mod tiling;
pub(crate) mod verification;
pub(crate) mod verify_plan;
pub(crate) mod way;
