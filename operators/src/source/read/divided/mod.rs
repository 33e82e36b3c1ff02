//! Lines of pipes, and of files that cannot be cut, that are parsed by several workers.
//!
//! ```text
//!         block            ┌► PARSE   ─┐  rows
//!  CUT ─────────► PREPARE ─┼► PARSE 2 ─┼──────► COLLECT ──► rows, rejected
//!  (reads)           ▲     └► PARSE 3 ─┘           │
//!                    └────────── used chunks ──────┘
//! ```
//!
//! One thread reads the files and finds the line ends. It cuts the lines into
//! [blocks](block::Block) at places where a record ends, so a worker can parse a block without the
//! blocks before it. The operator around the workers is a [wave](crate::wave), so rows and rejected
//! rows come in the order of the files, whatever the number of workers.
//!
//! A record of CSV may have several lines. [`ends`] follows the quotes of a file to find the ends
//! of records. Every block has the first record of the file in addition, since that record names
//! the columns (`header`) or shows the number of columns. A record that is longer than the limit is
//! cut: the worker refuses the part that it gets, and the reader passes over the rest of the
//! record.
//!
//! **Memory.** A block of one long line, and the rows of the block, may need much memory. The
//! reader sends such a block only if no other block is under way, and the next block only after the
//! rows of the long block have been sent. The source therefore needs no more memory than without
//! workers.
//!
//! | file | contents |
//! |---|---|
//! | `block` | lines on their way to a worker |
//! | `cut` | CUT: the format of lines that makes blocks |
//! | `ends` | the places where records end |
//! | `fed` | PREPARE |
//! | `parse` | PARSE and COLLECT |

mod block;
mod cut;
mod ends;
mod fed;
mod parse;
#[cfg(test)]
mod tests;

use std::time::Duration;

use arrow_schema::SchemaRef;
use trommel_engine::memory::MemoryBudget;
use trommel_engine::operator::{Fragment, Load};

use self::cut::Blocks;
pub(super) use self::ends::{EachLine, QuotedRecords, RecordEnds};
use self::fed::Prepare;
use self::parse::{Collect, Parse, ParseChunk};
use super::files::input::Inputs;
use super::files::paths::Files;
use super::text::encoding::Decoding;
use super::text::lines::{LineBuffer, LineFormat};
use super::text::source::LineSource;
use crate::shared::rejected::OnError;
use crate::wave::{self, Device, Wave};

/// Maximum workers. Further workers would wait for the thread that reads.
const WORKERS_MAX: usize = 8;
/// Bytes of a block: large enough to amortise the cost of sending, small enough for the
/// second-level cache.
pub(super) const BLOCK_BYTES: usize = 256 << 10;
/// Pause before the next attempt to get memory that other blocks hold.
const PAUSE: Duration = Duration::from_millis(1);
/// Minimum bytes of files at which workers pay.
const BYTES_MIN: u64 = 4 << 20;
/// Minimum mean bytes of a file at which workers pay, since a block has lines of one file only.
const FILE_BYTES_MIN: u64 = 256 << 10;

/// A format whose blocks several workers can parse at the same time.
pub(super) trait Divided: LineFormat + Sized {
    /// The same format for another worker, without rows. The format takes memory from this budget.
    fn another(&self, memory: &MemoryBudget) -> Self;
    /// Called before the lines of a block, with the number of lines in all files before the block,
    /// or with the number of records if these have ids.
    fn begin_block(&mut self, _lines_before: u64) {}
    /// Whether the open file makes no rows, since its first record cannot be used.
    fn is_left_out(&self) -> bool {
        false
    }
    /// Number of lines or records in all files so far, in a format that counts them.
    fn lines_so_far(&self) -> u64 {
        0
    }
}

/// The number of workers for `files` with this number of threads; `None` if one thread reads and
/// parses.
pub(super) fn workers(files: &Files, threads: usize) -> Option<usize> {
    let count = u64::try_from(files.places.len()).unwrap_or(u64::MAX).max(1);
    // A pipe may send any number of bytes, so workers pay.
    let pays =
        files.bytes.is_none_or(|bytes| bytes >= BYTES_MIN && bytes / count >= FILE_BYTES_MIN);
    (threads > 1 && pays).then(|| threads.min(WORKERS_MAX))
}

/// The options of a source with workers.
pub(super) struct Division {
    /// Rows of a batch.
    pub(super) batch: usize,
    pub(super) on_error: OnError,
    pub(super) decoding: Decoding,
    pub(super) memory: MemoryBudget,
    pub(super) block_bytes: usize,
}

impl Division {
    /// A source with this number of workers.
    pub(super) fn source<F: Divided + 'static>(
        &self,
        inputs: Inputs,
        lines: LineBuffer,
        format: &F,
        ends: impl RecordEnds + 'static,
        workers: usize,
    ) -> Fragment {
        let schema = SchemaRef::clone(format.schema());
        let refusals = |on_error: Option<OnError>| {
            Inputs::none(on_error.unwrap_or(self.on_error)).decoding(self.decoding)
        };
        let limits = (lines.isa(), lines.line_bytes_max());
        let blocks = Blocks::new(ends, limits.1).within(&self.memory);
        let cut = LineSource::new(inputs, blocks, self.batch, lines).bytes_max(self.block_bytes);
        let collect = Collect::new(refusals(None));
        let wave = Wave::new(Device::Cpu, Wave::chunks_of(workers, 0), self.block_bytes);
        let worker = |_| Parse::new(format.another(&self.memory), refusals, self.batch, limits);
        let workers = (0..workers).map(worker).collect();
        wave::parallel(Prepare::new(), workers, collect, ParseChunk::default, wave, vec![schema])
            .fed_by("cut", Load::Heavy, cut)
    }
}
