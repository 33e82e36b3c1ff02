//! Input that is damaged, refused, or stopped.
//!
//! | file | contents |
//! |---|---|
//! | `breaking` | Files that are damaged, missing, or of an unexpected kind |
//! | `mutations` | Files of each format that are changed at random places: each is rows, bad rows or an error that names the file, within the memory that the pipeline has |
//! | `rejecting` | Bad lines that go to the output `rejected` |
//! | `stopping` | Stops, pipes, and calls that must not wait |

mod breaking;
mod mutations;
mod rejecting;
mod stopping;

use super::*;
