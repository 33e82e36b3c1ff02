//! Costs of a join, and the blocks that a device joins.
//!
//! | file | contents |
//! |---|---|
//! | `cost` | Costs of a join on the CPU and on a GPU, in nanoseconds |
//! | `blocks` | A join as blocks of rows, which a device answers one by one |
//! | `job` | The work of a device: a block of a join, and its answer |

pub(crate) mod blocks;
pub(crate) mod cost;
pub(crate) mod job;
