//! The sizes that a summary can have.

/// Maximum number of counters of a summary: 2^26, which take more than 2 GiB.
pub const COUNTERS_MAX: usize = 1 << 26;

/// The reason why a summary cannot have the requested size.
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
    /// All counters are bins of the filter, so no counter is left after the filter.
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
