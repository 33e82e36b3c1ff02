//! The directory of the paper: three levels of quantiles, and the bounds of groups.

pub(super) mod directory;
