//! Files that several copies of a source read side by side.
//!
//! ```text
//!                     ┌► copy 1: piece 0 ─► rows   piece 3 ─► rows
//! files ─► pieces ────┼► copy 2: piece 1 ─► rows   piece 4 ─► rows
//!                     └► copy 3: piece 2 ─► rows   …
//! ```
//!
//! The input is cut into pieces, which are numbered in the order of the input. A piece is a range
//! of a large file, some row groups of a table, a whole file that cannot be cut, or some small
//! files. A copy takes the next piece, sends its rows, and takes another piece. The rows in the
//! order of the pieces are those of one reader.
//!
//! **Borders.** A line belongs to the range in which it begins. The copy of a range passes over the
//! rest of the line that began before, and reads on past the end of the range until its last line,
//! or its last record of CSV, is complete. A file that is compressed without parts, that is
//! converted before it is cut into lines, or whose lines end with carriage returns alone is one
//! piece.
//!
//! **Counts.** Rows may depend on what precedes their range: numbers of lines, ids, and the quotes
//! of CSV. A copy that takes such a range counts ahead what the range adds, and publishes the
//! counts before it reads the range ([`order`]). Since copies take the ranges in order, the counts
//! of all earlier ranges are soon there; until then a copy is idle. A quote that is open at the
//! beginning of a range is rare, so the count ahead supposes that none is open, and the copy of a
//! range where this is wrong counts again. Only what the format needs is counted: an error counts
//! the lines before its range when the error occurs.
//!
//! **Errors.** A copy reports the error of a piece when all earlier pieces have ended well, so the
//! first error in the order of the input ends the run.
//!
//! **Memory.** A line that is longer than the buffer is read when all earlier pieces have ended, so
//! that only one copy at a time asks for memory. Row groups of tables get memory in the order of
//! the pieces: the rows of a later piece leave later, so a later piece must not hold the memory
//! that an earlier piece waits for.
//!
//! | file | contents |
//! |---|---|
//! | `queue` | the pieces that nobody has taken |
//! | `head` | the look at the first bytes of a file: whether and how the file is cut |
//! | `order` | what precedes a piece |
//! | `ahead` | the counts of a range |
//! | `source` | the source that takes pieces |
//! | `reader` | the readers of lines, of rows of a fixed width, and of tables |
//! | `bind` | the sources that `read` makes of files |

mod ahead;
mod bind;
mod head;
mod order;
mod queue;
mod reader;
mod source;
#[cfg(test)]
mod tests;

use std::time::Duration;

pub(super) use self::bind::Reading;

/// Bytes of a range: large enough that the rows of a range fill batches, and small enough for the
/// second-level cache, since a range may be read twice.
const PIECE_BYTES: u64 = 1 << 20;
/// Bytes of a piece of a table, unless a block of rows has more. Tables are compressed, so a piece
/// has many rows.
const TABLE_PIECE_BYTES: u64 = 256 << 10;
/// Bytes of a piece of a compressed file without compression, as a multiple of the bytes of a
/// range. The reader of a range decompresses the beginning of the next range, too.
const PACKED_RATIO: u64 = 4;
/// Maximum files of a piece.
const PIECE_FILES_MAX: usize = 64;
/// Minimum bytes of files at which copies pay.
const BYTES_MIN: u64 = 4 << 20;
/// Minimum bytes of tables at which copies pay.
const TABLE_BYTES_MIN: u64 = 1 << 20;
/// Pause before the next look at the counts of earlier pieces.
const PAUSE: Duration = Duration::from_micros(100);
