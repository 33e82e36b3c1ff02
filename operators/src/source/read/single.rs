//! Formats of which each line is a record: nothing of a file has to be kept between two turns.

use super::growing::Growing;
use super::jsonl::JsonRows;
use super::log::LogRows;
use super::plain::TextLines;
use super::sets::SetLines;

/// Formats whose records are single lines.
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
