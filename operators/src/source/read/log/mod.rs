//! Format `log`: columns from lines that follow a pattern.
//!
//! ```text
//! 1.2.3.4 - - [01/Mar/2026:12:00:00 +0000] "GET / HTTP/1.1" 200 5 ──► ip, time, path, status, …
//! ```
//!
//! | file | contents |
//! |---|---|
//! | `pattern` | the patterns, by name or by template |
//! | `template` | fields between literals, found without backtracking |
//! | `syslog` | messages of RFC 3164 and RFC 5424 |
//! | `logfmt` | pairs of keys and values, and their types |
//! | `spans` | places of the values in a record |
//! | `cells` | points in time of the patterns |
//! | `rows` | rows of typed columns |
//!
//! A pattern gives the place of each value in the record. The cells that parse the fields of CSV
//! tables parse these values, too. A field ends at the first occurrence of the literal that follows
//! the field, so that a record is read once, whatever the record holds.

mod bind;
mod cells;
mod logfmt;
mod pattern;
mod rows;
mod spans;
mod syslog;
mod template;

pub(super) use logfmt::FirstPairs;
pub(super) use pattern::{Pattern, Scanner};
pub(super) use rows::LogRows;
