//! The plain algorithm of the paper, which answers one query after the other, for comparison.

pub(super) mod serial;
