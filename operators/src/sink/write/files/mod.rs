//! Files of rows: the target, growing files, and their rotation.
//!
//! | file | contents |
//! |---|---|
//! | `archive` | Full files of a growing file: compresses full files, and removes the oldest |
//! | `log` | File that grows while the stream runs, and is rotated when its size or its age reaches a limit |
//! | `rotated` | Names of files that were rotated: `rows.20261122T053312.123Z.jsonl` for `rows.jsonl` |
//! | `target` | Targets of encoded rows |

pub(crate) mod archive;
pub(crate) mod log;
pub(crate) mod rotated;
pub(crate) mod target;
