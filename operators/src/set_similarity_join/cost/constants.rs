//! Constants of the cost models, each with its measurement.

use trommel_kernels::Isa;

/// Nanoseconds of a CPU core to verify a pair of sets of `mean_size` tokens. Measured: 26, 59, 91
/// and 250 at 13, 49, 117 and 491 (docs/gpu.md, one core).
pub(crate) fn pair_ns(mean_size: u64) -> u64 {
    20 + mean_size / 2
}

/// Picoseconds of a device to test a pair of a tile, per word of the signature. Measured: 1.0 for
/// one word, 0.5 for four (docs/gpu.md).
pub(crate) const DEVICE_PAIR_PS: u64 = 1;

/// Picoseconds of a CPU core to test a pair of postings that a device saves.
pub(crate) const SAVED_TEST_PS: u64 = 800;

/// The same for what follows if the pair passes.
pub(crate) const SAVED_HIT_PS: u64 = 64_000;

/// The most that a pair of postings saves.
pub(crate) const SAVED_PS_MAX: u64 = 7_500;

// The constants below follow from the times of each way over generated sets of 5 to 533 tokens, and
// over three data sets, at 0.95 to 0.5, on one core. They are round numbers near the least squares
// of the logarithms; only their ratios matter. In 360 joins of 0.5 ms and more on an AMD EPYC
// (Zen 4) and on an Intel Xeon, with AVX-512 and with AVX2, the way that they choose takes more
// than a tenth longer than the best one in 13: 7 of these are on the Xeon with AVX2, up to 1.6
// times as long.

/// Picoseconds of a CPU core to test a pair of a tile by signatures of `words` words.
pub(crate) fn tile_pair_ps(words: u64) -> u64 {
    90 + 102 * words
}

/// Picoseconds of tiles per token.
pub(crate) const TILE_TOKEN_PS: u64 = 1_600;

/// Picoseconds of a pair of a tile that passes: a share of the verification.
pub(crate) fn tile_hit_ps(mean_size: u64) -> u64 {
    42_000 + 600 * mean_size
}

/// Picoseconds of postings per set.
pub(crate) const POSTING_SET_PS: u64 = 18_000;

/// Picoseconds to count, sign, add and transpose a posting with a signature of `words` words.
pub(crate) fn posting_ps(words: u64) -> u64 {
    38_000 + 4_000 * words
}

/// Picoseconds of a pair of postings whose sizes fit, to test it.
pub(crate) const POSTING_TEST_PS: u64 = 440;

/// Picoseconds of a pair of postings that passes: whether its list is the first one that has both
/// sets, and a share of the verification.
pub(crate) const POSTING_HIT_PS: u64 = 44_000;

/// Picoseconds of PPJoin per set.
pub(crate) const PREFIX_SET_PS: u64 = 108_000;

/// Picoseconds of PPJoin to count and add a posting, where lists and postings take `index_bytes`.
/// An index that exceeds the second-level cache costs misses for each posting: 62,000 by 50,000
/// generated sets of 79 tokens.
pub(crate) fn prefix_posting_ps(index_bytes: u64) -> u64 {
    if index_bytes <= 4 << 20 { 22_000 } else { 60_000 }
}

/// Picoseconds of PPJoin per pair of postings whose sizes fit.
pub(crate) const PREFIX_TEST_PS: u64 = 4_400;

/// Picoseconds of PPJoin per pair of sets that it meets: the first test of the pair, and a share of
/// the verification.
pub(crate) const PREFIX_PAIR_PS: u64 = 7_000;

/// Picoseconds of PPJoin to sign a token by `words` words for the bitmap filter.
pub(crate) fn prefix_token_ps(words: u64) -> u64 {
    130 * words
}

/// Picoseconds of PPJoin with the bitmap filter per pair of sets that it meets.
pub(crate) const SIGNED_PREFIX_TEST_PS: u64 = 300;

/// Picoseconds of a pair that passes the bitmap filter: a share of the verification.
pub(crate) const SIGNED_PREFIX_HIT_PS: u64 = 15_000;

/// Percents of the times with AVX-512.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LevelPercents {
    /// Of what a posting costs by itself.
    pub(crate) posting: u64,
    /// Of tests of pairs of postings.
    pub(crate) posting_test: u64,
    /// Of tests of pairs of a tile.
    pub(crate) tile_test: u64,
}

/// The times of a level. Those with AVX2 are fitted with the constants; tests take twice and four
/// times as long with 128 bits, and twice and ten times without vectors.
pub(crate) fn level_percents(isa: Isa) -> LevelPercents {
    let [posting, posting_test, tile_test] = match isa {
        Isa::Avx512 => [100, 100, 100],
        Isa::Avx2 => [150, 230, 330],
        Isa::Portable => [150, 460, 1300],
        _ => [150, 460, 3300],
    };
    LevelPercents { posting, posting_test, tile_test }
}
