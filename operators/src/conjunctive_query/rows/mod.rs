//! COLLECT: rows of answers; answers to queries of a running stage.
//!
//! | file | contents |
//! |---|---|
//! | `collect` | COLLECT: rows of answers |
//! | `question` | Queries of a running stage |

pub(crate) mod collect;
pub(crate) mod question;
