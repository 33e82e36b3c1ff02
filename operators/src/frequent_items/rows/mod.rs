//! Rows of the operator: what is emitted, and when.
//!
//! | file | contents |
//! |---|---|
//! | `batches` | Output of the operator: rows in batches of bounded size, and its state at the end |
//! | `ranked` | Counted items as rows: ranked ones, a single estimate, and items that another thread ranks |
//! | `emission` | When rows are emitted, and which |
//! | `questions` | Questions to a summary: of queries while it runs, and of the configuration when it emits |
//! | `labels` | Labels of states: what was counted, and the type of the items |

pub(crate) mod batches;
pub(crate) mod emission;
pub(crate) mod labels;
pub(crate) mod questions;
pub(crate) mod ranked;
