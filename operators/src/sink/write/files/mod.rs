//! Files of rows: the target, growing files, and their rotation.
//!
//! | file | contents |
//! |---|---|
//! | `archive` | Full files of a growing file: compresses them, and removes the oldest |
//! | `log` | File that grows while the stream runs, and is rotated when it is large or old enough |
//! | `rotated` | Names of files that were rotated: `rows.20261122T053312.123Z.jsonl` for `rows.jsonl` |
//! | `target` | Targets of encoded rows |

pub(crate) mod archive;
pub(crate) mod log;
pub(crate) mod rotated;
pub(crate) mod target;
