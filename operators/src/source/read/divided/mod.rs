//! Lines that are parsed by several workers.
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
//! A record of CSV may have several lines. [`ends`] follows the quotes of a file to tell where a
//! record ends. The first record of the file comes with every block, since it names the columns
//! (`header`) or says how many there are. A record that is longer than the limit is cut: the worker
//! refuses the part that it gets, and the rest of the record is passed over while it is read.
//!
//! **Memory.** A block of one long line, and the rows that are made of it, may need much memory.
//! The reader sends such a block when no other block is under way, and the next one when its rows
//! have been sent. So it needs no more memory than without workers.
//!
//! | file | contents |
//! |---|---|
//! | `block` | lines on their way to a worker |
//! | `cut` | CUT: the format of lines that makes blocks |
//! | `ends` | the places where records end |
//! | `fed` | PREPARE |
//! | `parse` | PARSE and COLLECT |
//! | `tables` | the same for files that bring their columns |

mod block;
mod cut;
mod ends;
mod fed;
mod parse;
mod tables;
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
pub(super) use self::tables::{divide_tables, table_workers};
use super::files::input::Inputs;
use super::files::paths::Files;
use super::text::encoding::Decoding;
use super::text::lines::{LineBuffer, LineFormat, LineSource};
use crate::shared::rejected::OnError;
use crate::wave::{self, Device, Wave};

/// More workers would wait for the thread that reads.
const WORKERS_MAX: usize = 8;
/// Bytes of a block: large enough to amortise its way, small enough for the second-level cache.
pub(super) const BLOCK_BYTES: usize = 256 << 10;
/// Pause until memory that is under way is looked at again.
const PAUSE: Duration = Duration::from_millis(1);
/// Bytes of files that are worth workers.
const BYTES_MIN: u64 = 4 << 20;
/// Mean bytes of the files that are worth workers: a block has lines of one file.
const FILE_BYTES_MIN: u64 = 256 << 10;

/// A format whose blocks can be parsed side by side.
pub(super) trait Divided: LineFormat + Sized {
    /// The same format for another worker, without rows. Takes memory from this budget.
    fn another(&self, memory: &MemoryBudget) -> Self;
    /// Called before the lines of a block: the number of lines in all files before them.
    fn begin_block(&mut self, _lines_before: u64) {}
}

/// The number of workers for `files` on this number of threads; `None` if one thread reads and
/// parses.
pub(super) fn workers(files: &Files, threads: usize) -> Option<usize> {
    let count = u64::try_from(files.places.len()).unwrap_or(u64::MAX).max(1);
    // A pipe may bring any number of bytes.
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
