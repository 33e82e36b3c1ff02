//! Sets of tokens: collected, numbered by frequency and sorted by size, with carried columns.
//!
//! | folder or file | contents |
//! |---|---|
//! | `input` | sets of an input: of a column or a program, with ids and carried columns |
//! | `arrival` | sets in the order of arrival, and the tasks that collect them |
//! | `sorting` | from the order of arrival to that of a collection, in rounds of tasks |
//! | `block` | sets that chunks refer to |
//! | `collection` | sets in the order that joins need |
//! | `copies` | equal sets of a collection as one |
//! | `side` | the two inputs of a join |
//! | `error` | errors of sets |

mod arrival;
mod block;
mod collection;
mod copies;
mod error;
mod input;
mod side;
mod sorting;

pub(crate) use self::arrival::arrived::RowCounts;
pub use self::arrival::collector::SetCollector;
pub(crate) use self::arrival::gathering::{Gathering, GatheringTask};
pub use self::block::SetBlock;
pub use self::collection::SetCollection;
pub(crate) use self::collection::{SETS_AHEAD, SizeRun};
pub use self::error::SetError;
pub(crate) use self::input::carrier::Carrier;
pub(crate) use self::input::column::{SetBatch, SetInput, TokenNumbers, hide};
pub use self::input::reader::{SetReadError, SetReader, lists};
pub(crate) use self::input::source::SetSource;
pub use self::side::Side;
pub(crate) use self::sorting::rounds::{Sorting, SortingTask};
pub use crate::shared::columns::DICTIONARY;

/// Cores that share the work on sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shares {
    pub(crate) cores: usize,
    /// Minimum tokens of a part that is worth a task.
    pub(crate) tokens_min: usize,
}

impl Shares {
    /// One core, which does all the work.
    pub(crate) const ONE: Self = Self { cores: 1, tokens_min: usize::MAX };
}

/// Maximum number of tokens of all sets of a join. The limit keeps offsets within 32 bits, and the
/// number of different sizes below 2^16.
pub const TOKENS_MAX: usize = (1 << 31) - (1 << 16);
