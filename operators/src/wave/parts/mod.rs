//! The parts of an operator: chunks on their way, and the counters of the kernel.
//!
//! | file | contents |
//! |---|---|
//! | `feeder` | The chunks of an operator: the next one to be filled, its size, and whether a device pays for it |
//! | `workers` | The choice of the kernel, or of the device, that answers a chunk |
//! | `queues` | Chunks that no kernel has begun, for the CPU or for devices |
//! | `kernel_part` | KERNEL: the part between prepare and collect |
//! | `ledger` | Counters of the kernel part |

pub(crate) mod feeder;
pub(crate) mod kernel_part;
pub(crate) mod ledger;
pub(crate) mod queues;
pub(crate) mod workers;
