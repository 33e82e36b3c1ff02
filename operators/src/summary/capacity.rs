//! The sizes that a summary can have.

/// The most counters a summary can have: 2^26, more than 2 GiB of them.
pub const COUNTERS_MAX: usize = 1 << 26;

/// Why a summary cannot have the size that was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CapacityError {
    /// The number of counters is out of range.
    #[error("{counters} counters are out of range: 1 to {COUNTERS_MAX} are possible")]
    Counters {
        /// The number that was asked for.
        counters: usize,
    },
    /// The number of bins is out of range.
    #[error(
        "{bins} filter bins are out of range: 1 to {} are possible",
        trommel_kernels::filter::BINS_MAX
    )]
    Bins {
        /// The number that was asked for.
        bins: usize,
    },
    /// All counters are bins of the filter, none is left after it.
    #[error("{counters} counters leave none after {bins} filter bins: at least {} are needed", bins + 1)]
    NoBackCounters {
        /// The counters that were asked for, bins included.
        counters: usize,
        /// The bins that were asked for.
        bins: usize,
    },
    /// The counters alone need more memory than is allowed.
    #[error("{counters} counters do not fit into {bytes} bytes: at least {bytes_min} are needed")]
    StateBytes {
        /// The counters that were asked for.
        counters: usize,
        /// The memory that is allowed.
        bytes: usize,
        /// The least memory for `counters` counters.
        bytes_min: usize,
    },
}
