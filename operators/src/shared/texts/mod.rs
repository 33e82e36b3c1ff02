//! Distinct texts and their numbers.
//!
//! If a text is not in the cache, a look-up costs a cache miss for each place that the look-up
//! visits. An index therefore holds short texts itself, and the look-up of a short text visits one
//! cache line. A line can be fetched in advance while further texts are cut:
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
