//! Sets of tokens: collected, numbered by frequency and sorted by size, with carried columns.
//!
//! | file | contents |
//! |---|---|
//! | `reader` | reads sets of a program, of numbers or texts |
//! | `input` | the sets of an input: bound, normalised and numbered |
//! | `source` | the ids, sets and carried columns of an input |
//! | `arrived` | sets in the order of arrival |
//! | `collector` | collects sets as they arrive |
//! | `gathering` | collects sets of batches in tasks for several cores |
//! | `numbering` | numbers tokens by ascending frequency |
//! | `order` | the order of sets by size and tokens |
//! | `sorting` | numbers tokens and sorts sets, in tasks for several cores |
//! | `shelves` | sets between the order of arrival and that of a collection |
//! | `block` | sets that chunks refer to |
//! | `collection` | sets in the order that joins need |
//! | `copies` | equal sets of a collection as one |
//! | `carrier` | collects carried columns |
//! | `side` | the two inputs of a join |
//! | `error` | errors of sets |

mod arrived;
mod block;
mod carrier;
mod collection;
mod collector;
mod copies;
mod error;
mod gathering;
mod input;
mod numbering;
mod order;
mod reader;
mod shelves;
mod side;
mod sorting;
mod source;

pub(crate) use self::arrived::RowCounts;
pub use self::block::SetBlock;
pub(crate) use self::carrier::Carrier;
pub use self::collection::SetCollection;
pub(crate) use self::collection::{SETS_AHEAD, SizeRun};
pub use self::collector::SetCollector;
pub use self::error::SetError;
pub(crate) use self::gathering::{Gathering, GatheringTask};
pub(crate) use self::input::{SetBatch, SetInput, TokenNumbers, hide};
pub use self::reader::{SetReadError, SetReader, lists};
pub use self::side::Side;
pub(crate) use self::sorting::{Sorting, SortingTask};
pub(crate) use self::source::SetSource;
pub use crate::columns::DICTIONARY;

/// Cores that share the work on sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shares {
    pub(crate) cores: usize,
    /// Tokens of the smallest part that is worth a task.
    pub(crate) tokens_min: usize,
}

impl Shares {
    /// One core, which does all.
    pub(crate) const ONE: Self = Self { cores: 1, tokens_min: usize::MAX };
}

/// Maximum number of tokens of all sets of a join. It keeps offsets within 32 bits and the number
/// of different sizes below 2^16.
pub const TOKENS_MAX: usize = (1 << 31) - (1 << 16);
