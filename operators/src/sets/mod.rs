//! Sets of tokens: collected, numbered by frequency, sorted by size, with columns that go along.
//!
//! | file | contents |
//! |---|---|
//! | `input` | the sets of a batch |
//! | `collector` | sets as they come |
//! | `numbering` | tokens numbered by ascending frequency |
//! | `block` | sets that chunks name |
//! | `collection` | sets that are ready to be joined |
//! | `carrier` | columns that go along, while sets are collected |
//! | `side` | the two inputs of a join |
//! | `error` | why sets are refused |

mod block;
mod carrier;
mod collection;
mod collector;
mod error;
mod input;
mod numbering;
mod side;

pub use self::block::SetBlock;
pub(crate) use self::carrier::Carrier;
pub use self::collection::SetCollection;
pub(crate) use self::collection::SizeRun;
pub use self::collector::SetCollector;
pub use self::error::SetError;
pub(crate) use self::input::{SetColumns, SetRows};
pub use self::side::Side;

/// The most tokens of a join: a number below 2^16 for each size of its sets, and 32-bit offsets.
pub const TOKENS_MAX: usize = (1 << 31) - (1 << 16);
