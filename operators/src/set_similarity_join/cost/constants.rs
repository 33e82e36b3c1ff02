//! Constants of the cost models, each with its measurement.

/// Nanoseconds of a CPU core to verify a pair of sets of `mean_size` tokens. Measured: 26, 59, 91
/// and 250 at 13, 49, 117 and 491 (docs/gpu.md, one core).
pub(crate) fn pair_ns(mean_size: u64) -> u64 {
    20 + mean_size / 2
}

/// Picoseconds of a CPU core to test a pair of a tile, per word of the signature. Measured: 155,
/// 89 and 85 at 1, 4 and 8 words with AVX-512 (`trommel-bench signatures`).
pub(crate) const TILE_PAIR_PS: u64 = 100;

/// Picoseconds of a CPU core to find, test and verify candidates, per posting. Measured: 0.49 s
/// for 207 million postings (files of sentences at 1/2, AVX-512). Shorter lists cost more per
/// posting.
pub(crate) const POSTING_PS: u64 = 2400;

/// Picoseconds of a device to test a pair of a tile, per word of the signature. Measured: 1.0 for
/// one word, 0.5 for four (docs/gpu.md).
pub(crate) const DEVICE_PAIR_PS: u64 = 1;
