//! Similarities, thresholds as exact fractions, and the bounds that follow from both.

mod bounds;
mod threshold;

pub(crate) use self::bounds::Bounds;
pub use self::bounds::Similarity;
pub use self::threshold::{Threshold, ThresholdError};
