//! Sets of tokens: collected, numbered by frequency and sorted by size, with carried columns.
//!
//! | file | contents |
//! |---|---|
//! | `reader` | reads sets of a program, of numbers or texts |
//! | `input` | reads sets from batches |
//! | `arrived` | sets in the order of arrival |
//! | `collector` | collects sets as they arrive |
//! | `numbering` | numbers tokens by ascending frequency |
//! | `order` | the order of sets by size and tokens |
//! | `shelves` | sets between the order of arrival and that of a collection |
//! | `block` | sets that chunks refer to |
//! | `collection` | sets in the order that joins need |
//! | `carrier` | collects carried columns |
//! | `side` | the two inputs of a join |
//! | `error` | errors of sets |

mod arrived;
mod block;
mod carrier;
mod collection;
mod collector;
mod error;
mod input;
mod numbering;
mod order;
mod reader;
mod shelves;
mod side;

pub use self::block::SetBlock;
pub(crate) use self::carrier::Carrier;
pub use self::collection::SetCollection;
pub(crate) use self::collection::SizeRun;
pub use self::collector::SetCollector;
pub use self::error::SetError;
pub(crate) use self::input::{SetColumns, SetRows};
pub use self::reader::{SetReadError, SetReader, lists};
pub use self::side::Side;

/// Maximum number of tokens of all sets of a join. It keeps offsets within 32 bits and the number
/// of different sizes below 2^16.
pub const TOKENS_MAX: usize = (1 << 31) - (1 << 16);
