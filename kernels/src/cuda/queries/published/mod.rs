//! The plain algorithm of the paper, which answers one query after another, for comparison.

mod serial;

pub use self::serial::{SerialCounts, SerialKept, SerialLimits};
