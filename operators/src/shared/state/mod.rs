//! States of operators as bytes, from which an operator continues as if it had not been
//! interrupted.
//!
//! ```text
//! offset  bytes
//!      0      8  "trommel", 0x1a
//!      8      2  version: 5
//!     10      1  kind of state            1 SpaceSaving, 2 Filter, 3 Sieve, 4 frequent pairs,
//!                                     5 documents, 6 vectors
//!     11      1  type of items            1 u32, 2 u64, 3 text; of names of their own type,
//!                                     4 i8, 5 i16, 6 i32, 7 i64, 8 u8, 9 u16, too
//!     12      1  how the input ended      0 it is not said, 1 as a whole, 2 it was stopped before
//!     13      1  length of the label
//!     14      2  zero
//!     16      8  length of the body
//!     24         body                     numbers, items and tables of the state
//!      …         label                    name of the things that were counted
//!      …      4  CRC-32 of all before
//! ```
//!
//! All numbers are little-endian. Nothing is allocated before the header, the length and the
//! checksum have been checked. After that, every number is checked when it is read, and a vector
//! gets room for only as many elements as the remaining bytes can hold. Further allocations, for
//! counters that are still free, are limited ([`free_bytes_max`]).
//!
//! A snapshot holds everything that decides future answers, not only the counts: which counters are
//! replaced next, and which items the filter holds. The restored summary therefore answers and
//! continues exactly like the summary that was saved. Fields that follow from other fields are left
//! out, and so is everything that decides only the speed: a snapshot has no secrets of hashes
//! except the secret of the sieve, whose answers depend on it. (Version 1 had no secrets.)
//!
//! A checksum finds accidental damage. The checks of the numbers ensure that a forged snapshot
//! cannot make a summary panic, allocate without limit or answer with bounds that contradict each
//! other. Reading n items takes O(n log n), even if the secret was chosen so that the items
//! collide. No check can tell whether some stream has these counts.

mod fields;
mod file;
mod stamp;

use arrow_schema::DataType;

pub(crate) use self::fields::{Reader, Writer, declared_bytes};
pub use self::file::{MissingState, SnapshotFileError};
pub(crate) use self::file::{SnapshotFile, check_input, read_bytes, read_file};
pub(crate) use self::stamp::Stamp;
use crate::shared::columns::type_name;
use crate::shared::items::{StoredItem, Text};

const MAGIC: [u8; 8] = *b"trommel\x1a";
const VERSION: u16 = 5;
const HEADER_BYTES: usize = 24;
/// Offset of the stamp in the header.
const STAMP: usize = 12;
const CHECKSUM_BYTES: usize = 4;
/// Offset of the type of items in the header.
const ITEMS: usize = 11;

/// The type in which a state counts items: u32, u64 or text.
pub(crate) fn counted_type(state: &[u8]) -> Option<DataType> {
    match *state.get(ITEMS)? {
        u32::NUMBER => Some(DataType::UInt32),
        u64::NUMBER => Some(DataType::UInt64),
        Text::NUMBER => Some(DataType::Utf8),
        _ => None,
    }
}

/// The state of which a snapshot was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StateKind {
    SpaceSaving = 1,
    Filter = 2,
    Sieve = 3,
    FrequentPairs = 4,
    Documents = 5,
    Vectors = 6,
}

impl StateKind {
    const NAMES: [(u8, &str); 6] = [
        (1, "SpaceSaving"),
        (2, "Filter"),
        (3, "Sieve"),
        (4, "frequent pairs"),
        (5, "documents"),
        (6, "vectors"),
    ];
}

const ITEM_NAMES: [(u8, &str); 9] = [
    (u32::NUMBER, "u32"),
    (u64::NUMBER, "u64"),
    (Text::NUMBER, "text"),
    (4, "i8"),
    (5, "i16"),
    (6, "i32"),
    (7, "i64"),
    (8, "u8"),
    (9, "u16"),
];

/// The number of a type of items in a snapshot that keeps the type; `None` for other types.
pub(crate) fn stored_type(kind: &DataType) -> Option<u8> {
    let name = type_name(kind);
    ITEM_NAMES.iter().find(|(_, other)| *other == name).map(|(number, _)| *number)
}

fn name_of(number: u8, names: &[(u8, &'static str)]) -> &'static str {
    names.iter().find(|(other, _)| *other == number).map_or("an unknown type", |(_, name)| name)
}

/// Reason why bytes cannot be restored as a state of the requested type.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RestoreError {
    /// The bytes are too few for a header and a checksum.
    #[error("invalid snapshot of {bytes} bytes: the shortest one has {}", HEADER_BYTES + CHECKSUM_BYTES)]
    TooShort {
        /// The number of bytes.
        bytes: usize,
    },
    /// The bytes do not begin as a snapshot does.
    #[error("invalid snapshot: it begins with {found:02x?}, not with {MAGIC:02x?}")]
    Magic {
        /// The first bytes.
        found: [u8; 8],
    },
    /// The format has another version.
    #[error("byte 8: the snapshot has version {found}; this program reads version {VERSION}")]
    Version {
        /// The version.
        found: u16,
    },
    /// The snapshot is of another state.
    #[error("byte 10: the snapshot is of {found} (number {number}); expected {expected}")]
    Kind {
        /// The number of the kind.
        number: u8,
        /// The name of the kind.
        found: &'static str,
        /// The name of the requested kind.
        expected: &'static str,
    },
    /// The snapshot is of other items.
    #[error("byte 11: the snapshot counts items of {found} (number {number}); expected {expected}")]
    Item {
        /// The number of the type.
        number: u8,
        /// The name of the type.
        found: &'static str,
        /// The name of the requested type.
        expected: &'static str,
    },
    /// The snapshot has too few or too many bytes.
    #[error("the snapshot should have {expected} bytes, by its header; it has {found}")]
    Length {
        /// The length that the header states, including header and checksum.
        expected: u64,
        /// The actual length.
        found: usize,
    },
    /// Bytes have changed.
    #[error(
        "the snapshot is damaged: its checksum is {found:08x}, and that of its bytes {computed:08x}"
    )]
    Checksum {
        /// The checksum at the end.
        found: u32,
        /// The checksum of the bytes.
        computed: u32,
    },
    /// The snapshot has a number, an item or a table that no state has.
    #[error("byte {offset}: {field} is {value}; expected {expected}")]
    Field {
        /// Offset of the field.
        offset: usize,
        /// Name of the field.
        field: &'static str,
        /// Value of the field.
        value: String,
        /// The values that are allowed.
        expected: String,
    },
    /// The summary would need more memory than is allowed.
    #[error("the summary needs up to {bytes} bytes of memory; {limit} are allowed")]
    TooLarge {
        /// The memory that the summary needs.
        bytes: usize,
        /// The memory that is allowed.
        limit: usize,
    },
}

/// The default limit of the memory for a restored state: 64 MiB for counters that are free, and 64
/// times the bytes of the snapshot.
pub(crate) fn free_bytes_max(bytes: &[u8]) -> usize {
    (64 << 20) + bytes.len().saturating_mul(64)
}

/// Refuses a summary that needs more memory than is allowed.
pub(crate) fn check_bytes(bytes: usize, limit: usize) -> Result<(), RestoreError> {
    if bytes <= limit { Ok(()) } else { Err(RestoreError::TooLarge { bytes, limit }) }
}
