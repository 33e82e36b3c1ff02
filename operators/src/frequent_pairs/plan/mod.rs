//! Tasks, and the layouts in which a CPU or a device counts them, by cost.
//!
//! | file | contents |
//! |---|---|
//! | `tasks` | Tasks: parts of the triangle of pairs, each in one layout |
//! | `cost` | Costs of layouts on a CPU and on a GPU, in nanoseconds |
//! | `form` | Forms of the data of a task on a CPU |
//! | `device_form` | Forms of the data of a window on a GPU |
//! | `tiles` | Tasks of tiles, for a device |

pub(crate) mod cost;
pub(crate) mod device_form;
pub(crate) mod form;
pub(crate) mod tasks;
pub(crate) mod tiles;
