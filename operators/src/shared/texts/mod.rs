//! Distinct texts and their numbers.
//!
//! A look-up of a text that is not in the cache costs the time of a miss for each place that it
//! visits. So an index holds short texts itself, a look-up of one visits one cache line, and a line
//! can be fetched in advance while other texts are cut:
//!
//! ```text
//! text ──► key: 15 bytes and a length ──► hash ──► line of 64 bytes
//!                                                  ┌───────┬───────┬───────┬─────────┬───┐
//!                                                  │ key   │ key   │ key   │ numbers │ n │
//!                                                  └───────┴───────┴───────┴─────────┴───┘
//! longer ──► key: a hash and a length ───────────► the same, then the text itself is compared
//! ```
//!
//! | file | contents |
//! |---|---|
//! | `key` | keys and their hashes |
//! | `index` | from keys to numbers |
//! | `table` | from texts to numbers, and back |

mod index;
mod key;
mod table;

pub(crate) use self::key::{Key, SHORT_MAX, TextHash, TextKey};
pub(crate) use self::table::TextTable;
