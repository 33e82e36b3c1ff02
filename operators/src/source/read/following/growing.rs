//! Formats of files that are read while they grow.

use crate::source::read::error::ReadError;
use crate::source::read::files::input::Inputs;
use crate::source::read::text::lines::LineFormat;

/// First line of a record: its number in the file, from 1, and its first byte.
pub(crate) type RecordBegin = (u64, u64);

/// Conversion of the lines of several files, which take turns.
pub(crate) trait Growing: LineFormat {
    /// Knowledge of a file between two turns, such as its header.
    type File: Default + Send;
    /// Whether a record that has not grown for a while is complete.
    const COMPLETES: bool = false;

    /// Continues a file.
    fn resume(&mut self, file: Self::File);
    /// The beginning of a record whose end has not come: it is read again with the next turn.
    fn incomplete(&self) -> Option<RecordBegin> {
        None
    }
    /// Leaves the file and drops an incomplete record.
    fn pause(&mut self) -> Self::File;
    /// Makes a row of an incomplete record.
    fn complete(&mut self, _inputs: &mut Inputs) -> Result<(), ReadError> {
        Ok(())
    }
    /// Whether the first lines of the file have to be read before others.
    fn needs_head(&self) -> bool {
        false
    }
}
