//! Cost models: where candidates are verified, and which sizes are joined by tiles.
//!
//! | file | contents |
//! |---|---|
//! | `constants` | measured costs |
//! | `verification` | cost of verifying a chunk |
//! | `saved` | the time that a device saves the CPU |
//! | `sample` | sets of a sample and the test of their pairs |
//! | `tiling` | the sizes that `auto` joins by tiles on a device |
//! | `way` | the way of `auto` on a CPU |
//! | `opening` | when a device is opened |
//! | `plan` | device and kernel, from `verify` and `device` |

pub(crate) mod constants;
pub(crate) mod opening;
pub(crate) mod plan;
mod sample;
mod saved;
pub(crate) mod tiling;
pub(crate) mod verification;
pub(crate) mod way;
