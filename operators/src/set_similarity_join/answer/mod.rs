//! KERNEL: the verification of candidates on the CPU or on a device, in [waves](crate::wave).
//!
//! | file | contents |
//! |---|---|
//! | `chunk` | the chunk that is passed between the parts |
//! | `answers` | the outcome of the verification of a chunk |
//! | `kernel` | the kernel of a join, for both kinds of chunks |
//! | `work` | tasks of the CPU that several kernels do side by side |
//! | `overlap` | verification of candidate pairs |
//! | `tiles` | verification of tiles |
//! | `device_sets` | sets in the memory of a device |

pub(crate) mod answers;
pub(crate) mod chunk;
pub(crate) mod device_sets;
pub(crate) mod kernel;
pub(crate) mod overlap;
#[cfg(test)]
pub(crate) mod stand_in_tests;
pub(crate) mod tiles;
pub(crate) mod work;
