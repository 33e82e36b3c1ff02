//! Devices: the parameter, the choice, and data that stays there.
//!
//! | file | contents |
//! |---|---|
//! | `parameter` | The `device` parameter of operators |
//! | `session` | The devices of one operator, each opened once, by the part that needs it first |
//! | `choice` | The choice between devices and the CPU: the rule of `device: "auto"` |
//! | `resident` | Data that stays in the memory of a device |
//! | `error` | Failures of a device that end a run |

pub(crate) mod choice;
pub(crate) mod error;
pub(crate) mod parameter;
pub(crate) mod resident;
pub(crate) mod session;
