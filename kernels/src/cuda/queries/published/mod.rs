//! The plain algorithm of the paper, which answers one query after the other, for comparison.

mod serial;

pub use self::serial::{SerialCounts, SerialKept, SerialLimits};
