//! Filters of the published joins, as constants of one loop.

/// Filters of a look-up beyond prefixes and sizes.
///
/// In the filters, `left` is the number of tokens of a set from a common token on.
pub(crate) trait Filters: Send + 'static {
    /// Whether the first common token of a pair is tested: enough tokens must be left in both
    /// sets (positional filter).
    const TESTS_POSITIONS: bool = false;
    /// Whether the signatures of a pair are tested at its first common token (bitmap filter).
    const TESTS_SIGNATURES: bool = false;
}

/// The filters of AllPairs: no further filter.
pub(crate) struct SizesOnly;

/// The filters of PPJoin and GroupJoin.
pub(crate) struct Positions;

/// The filters of PPJoin with the bitmap filter.
pub(crate) struct PositionsAndSignatures;

impl Filters for SizesOnly {}

impl Filters for Positions {
    const TESTS_POSITIONS: bool = true;
}

impl Filters for PositionsAndSignatures {
    const TESTS_POSITIONS: bool = true;
    const TESTS_SIGNATURES: bool = true;
}
