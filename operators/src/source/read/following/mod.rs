//! Files that grow while they are read.
//!
//! | file | contents |
//! |---|---|
//! | `follow` | Source of files that grow: lines are read as they are written, through rotation and truncation |
//! | `followed` | A file that is followed: its position, and the marks that show whether the file was rewritten |
//! | `growing` | Formats of files that are read while they grow |
//! | `descriptors` | Descriptors of followed files, whose number a process limits |

pub(crate) mod descriptors;
pub(crate) mod follow;
pub(crate) mod followed;
pub(crate) mod growing;
