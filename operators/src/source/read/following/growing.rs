//! Formats of files that are read while they grow.

use crate::source::read::error::ReadError;
use crate::source::read::files::input::Inputs;
use crate::source::read::text::lines::LineFormat;

/// First line of a record: its number in the file, from 1, and its first byte.
pub(crate) type RecordBegin = (u64, u64);

/// Conversion of the lines of several files that take turns.
pub(crate) trait Growing: LineFormat {
    /// State of a file that is kept between two turns, such as its header.
    type File: Default + Send;
    /// Whether an incomplete record becomes complete when its file has not grown for a while.
    const COMPLETES: bool = false;

    /// Continues a file.
    fn resume(&mut self, file: Self::File);
    /// The beginning of a record whose end has not come. The next turn reads the record again.
    fn incomplete(&self) -> Option<RecordBegin> {
        None
    }
    /// Leaves the file, drops an incomplete record, and returns the state of the file.
    fn pause(&mut self) -> Self::File;
    /// Makes a row of an incomplete record.
    fn complete(&mut self, _inputs: &mut Inputs) -> Result<(), ReadError> {
        Ok(())
    }
    /// Whether the next lines are still the first lines of the file, which have to be read before
    /// other lines.
    fn needs_head(&self) -> bool {
        false
    }
}
