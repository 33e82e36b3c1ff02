//! Objects of JSON, one on each line.
//!
//! | file | contents |
//! |---|---|
//! | `jsonl` | Format `jsonl`: an object of JSON on each line |
//! | `members` | Places of members of objects of JSON |
//! | `strict` | Whether a line is JSON (RFC 8259): the decoder of tables passes over commas that are missing or too many, over numbers such as `01` and `1.`, and over control characters in texts |
//! | `infer` | Columns of a table of JSON from its first rows |

pub(crate) mod infer;
pub(crate) mod jsonl;
pub(crate) mod members;
pub(crate) mod strict;
