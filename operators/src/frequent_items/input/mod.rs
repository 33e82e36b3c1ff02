//! The columns that the operator reads.
//!
//! | file | contents |
//! |---|---|
//! | `columns` | The columns that the operator reads |

pub(crate) mod columns;
