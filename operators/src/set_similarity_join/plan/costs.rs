//! Costs of the ways of a join, in nanoseconds, each with its measurement.

use trommel_kernels::Isa;

// Tasks of a core. These costs divide chunks among kernels, and follow from whole runs on one core
// (bench/reports/set-join.md, *Whole runs*).

/// Collecting a token.
pub(crate) const GATHERED_TOKEN: f64 = 3.0;

/// Sorting a token.
pub(crate) const SORTED_TOKEN: f64 = 8.0;

/// Counting or signing a token.
pub(crate) const PLANNED_TOKEN: f64 = 3.0;

/// Searching a pair of postings.
pub(crate) const SEARCHED_PAIR: f64 = 2.0;

/// Minimum of all steps of a join per token: 20 to 35 for sets of 14 tokens at 0.5.
pub(crate) const JOINED_TOKEN: f64 = 20.0;

// The choice of a device.

/// A core verifies a pair of sets of `mean_size` tokens. Measured: 26, 59, 91 and 250 at 13, 49,
/// 117 and 491 (bench/reports/gpu.md, one core).
pub(crate) fn verified_pair(mean_size: usize) -> f64 {
    20.0 + mean_size as f64 / 2.0
}

/// A core tests a pair of a tile by signatures of `words` words. Measured for 1, 2, 4 and 8 words
/// (`trommel-bench signatures`, Zen 4): 0.135, 0.192, 0.312 and 0.658 with AVX-512; 0.418, 0.606,
/// 0.826 and 1.613 with AVX2; 0.97, 1.9, 3.8 and 6.3 with 128 bits; 2.4, 4.3, 8.3 and 16.7 without
/// vectors.
pub(crate) fn tile_test(words: usize, isa: Isa) -> f64 {
    let factor = match isa {
        Isa::Avx512 => 1.0,
        Isa::Avx2 => 2.6,
        Isa::Portable => 9.0,
        _ => 22.0,
    };
    (0.07 + 0.07 * words as f64) * factor
}

/// A device tests a pair of a tile, per word of the signature. Measured: 0.0010 for one word,
/// 0.0005 for four (bench/reports/gpu.md).
pub(crate) const DEVICE_PAIR: f64 = 0.001;

/// A core tests a pair of postings that a device saves.
pub(crate) const SAVED_TEST: f64 = 0.8;

// The ways of `auto` on a core. These constants follow from the times of each way over generated
// sets of 5 to 533 tokens, of 0.3 to 4 million tokens in all, and over three data sets, at 0.95 to
// 0.5, on one core. The constants are round numbers near the values whose choices lose least: only
// their ratios matter, and no constant is a measured time. In 34 of 654 joins of 0.5 ms and more on
// an AMD EPYC (Zen 4) and on an Intel Xeon, with AVX-512 and with AVX2, the chosen way takes more
// than a tenth longer than the best way, up to 1.7 times as long. In 90 joins of sets that were not
// used for the constants, that happens in 11 joins, up to 1.5 times as long (`trommel-bench
// set-join --grid`).

/// Tiles test a pair by signatures of `words` words.
pub(crate) fn tile_pair(words: usize) -> f64 {
    0.290 + 0.055 * words as f64
}

/// Tiles read a token.
pub(crate) const TILE_TOKEN: f64 = 1.5;

/// A pair of a tile passes: a share of the verification.
pub(crate) fn tile_hit(mean_size: usize) -> f64 {
    61.0 + 1.05 * mean_size as f64
}

/// The postings of a set, in addition to the cost of each posting.
pub(crate) const POSTING_SET: f64 = 3.8;

/// A posting with a signature of `words` words is counted, signed, added and transposed.
pub(crate) fn posting(words: usize) -> f64 {
    31.9 + 4.0 * words as f64
}

/// A pair of postings whose sizes fit is tested.
pub(crate) const POSTING_TEST: f64 = 0.76;

/// A pair of postings passes: the test whether its list is the first list with both sets, and a
/// share of the verification.
pub(crate) const POSTING_HIT: f64 = 80.0;

/// PPJoin reads a set.
pub(crate) const PREFIX_SET: f64 = 55.0;

/// PPJoin counts and adds a posting, if lists and postings take `index_bytes`.
pub(crate) fn prefix_posting(index_bytes: u64) -> f64 {
    3.8 + 6.7 * doublings(index_bytes)
}

/// PPJoin reads a pair of postings whose sizes fit.
pub(crate) const PREFIX_TEST: f64 = 9.4;

/// PPJoin meets a pair of sets, if the tokens of all sets take `token_bytes`: the first test of the
/// pair, and a share of the verification.
pub(crate) fn prefix_pair(token_bytes: u64) -> f64 {
    8.8 + 10.0 * doublings(token_bytes)
}

/// PPJoin signs a token by `words` words for the bitmap filter.
pub(crate) fn prefix_token(words: usize) -> f64 {
    0.19 * words as f64
}

/// A pair passes the bitmap filter: a share of the verification.
pub(crate) const SIGNED_PREFIX_HIT: f64 = 21.0;

/// Number of doublings from 1 MiB to `bytes`, up to 16 MiB: with each doubling, less of the data is
/// in a cache of the core.
fn doublings(bytes: u64) -> f64 {
    (bytes >> 20).max(1).ilog2().min(4).into()
}

/// Factors of the times of a level, relative to AVX-512.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LevelFactors {
    /// Factor of the cost of a posting.
    pub(crate) posting: f64,
    /// Factor of the test of a pair of postings.
    pub(crate) posting_test: f64,
    /// Factor of the test of a pair of a tile.
    pub(crate) tile_test: f64,
}

/// The factors of a level. The factors of AVX2 are fitted together with the constants. In
/// comparison with AVX2, the tests of postings and of tiles take twice and four times as long with
/// 128 bits, and twice and ten times as long without vectors.
pub(crate) fn level_factors(isa: Isa) -> LevelFactors {
    let [posting, posting_test, tile_test] = match isa {
        Isa::Avx512 => [1.0, 1.0, 1.0],
        Isa::Avx2 => [1.3, 1.3, 4.0],
        Isa::Portable => [1.3, 2.6, 16.0],
        _ => [1.3, 2.6, 40.0],
    };
    LevelFactors { posting, posting_test, tile_test }
}
