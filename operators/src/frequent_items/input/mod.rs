//! The columns that the operator reads, and the keys of texts.
//!
//! | file | contents |
//! |---|---|
//! | `columns` | The columns that the operator reads |
//! | `keys` | The keys of texts, computed on another core than the counts |

pub(crate) mod columns;
pub(crate) mod keys;
