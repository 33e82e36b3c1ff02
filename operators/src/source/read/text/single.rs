//! Formats whose records are single lines: no state of a file is kept between two turns.

use super::plain::TextLines;
use super::sets::SetLines;
use crate::source::read::following::growing::Growing;
use crate::source::read::json::jsonl::JsonRows;
use crate::source::read::log::LogRows;

/// Implements `Growing` for formats whose records are single lines.
macro_rules! of_lines {
    ($($format:ty),*) => {$(
        impl Growing for $format {
            type File = ();

            fn resume(&mut self, (): ()) {}

            fn pause(&mut self) {}
        }
    )*};
}

of_lines!(TextLines, SetLines, JsonRows, LogRows);
