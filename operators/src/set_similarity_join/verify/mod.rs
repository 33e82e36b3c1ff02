//! KERNEL: the verification of candidates on the CPU or on a device, in [waves](crate::wave).
//!
//! | file | contents |
//! |---|---|
//! | `answers` | the outcome of the verification of a chunk |
//! | `join_chunk` | the chunk that is passed between the parts |
//! | `kernel` | the kernel of a join, for both kinds of chunks |
//! | `overlap` | verification of candidate pairs |
//! | `tiles` | verification of tiles |
//! | `device_sets` | cache of sets on a device |

pub(crate) mod answers;
mod device_sets;
pub(crate) mod join_chunk;
pub(crate) mod kernel;
mod overlap;
#[cfg(test)]
mod stand_in_tests;
mod tiles;
