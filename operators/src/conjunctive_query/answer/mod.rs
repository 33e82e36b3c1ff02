//! KERNEL: the chunk of the operator, and its answer on the CPU.
//!
//! | file | contents |
//! |---|---|
//! | `chunk` | The chunk of the operator: a block to be built, segments to be merged, a device to be opened, or queries |
//! | `kernel` | KERNEL: builds and merges segments, opens the device, and answers queries |

pub(crate) mod chunk;
pub(crate) mod kernel;
