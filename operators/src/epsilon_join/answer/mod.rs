//! KERNEL: the chunk of the operator, and its answer on the CPU.
//!
//! | file | contents |
//! |---|---|
//! | `chunk` | Chunks: vectors to make ready, parts of a join to search, or rows to report |
//! | `kernel` | KERNEL: makes vectors ready and searches them |
//! | `join` | A join as numbered parts, by a directory or by a nested loop |
//! | `found` | Answers of chunks: pairs, their number, partners, or rows with an earlier partner |

pub(crate) mod chunk;
pub(crate) mod found;
pub(crate) mod join;
pub(crate) mod kernel;
