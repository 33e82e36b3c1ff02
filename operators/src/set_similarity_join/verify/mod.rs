//! KERNEL: the verification of candidates, on the CPU or on a device, in [waves](crate::wave).
//!
//! | file | contents |
//! |---|---|
//! | `join_chunk` | the chunk that travels between the parts |
//! | `kernel` | the kernel of a join |
//! | `overlap` | candidate pairs |
//! | `tiles` | tiles of all pairs |
//! | `device_sets` | the sets that a device has |

mod device_sets;
pub(crate) mod join_chunk;
pub(crate) mod kernel;
mod overlap;
#[cfg(test)]
mod stand_in_tests;
mod tiles;
