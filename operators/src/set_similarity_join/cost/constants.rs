//! Constants of the cost models, each with its measurement.

use trommel_kernels::Isa;

/// Nanoseconds of a CPU core to verify a pair of sets of `mean_size` tokens. Measured: 26, 59, 91
/// and 250 at 13, 49, 117 and 491 (bench/reports/gpu.md, one core).
pub(crate) fn pair_ns(mean_size: u64) -> u64 {
    20 + mean_size / 2
}

/// Picoseconds of a CPU core to test a pair of a tile by signatures of `words` words, for the
/// choice of a device. Measured for 1, 2, 4 and 8 words (`trommel-bench signatures`, Zen 4): 135,
/// 192, 312 and 658 with AVX-512; 418, 606, 826 and 1,613 with AVX2; 0.97, 1.9, 3.8 and 6.3
/// nanoseconds with 128 bits; 2.4, 4.3, 8.3 and 16.7 without vectors.
pub(crate) fn tile_test_ps(words: u64, isa: Isa) -> u64 {
    let percents = match isa {
        Isa::Avx512 => 100,
        Isa::Avx2 => 260,
        Isa::Portable => 900,
        _ => 2200,
    };
    (70 + 70 * words) * percents / 100
}

/// Picoseconds of a device to test a pair of a tile, per word of the signature. Measured: 1.0 for
/// one word, 0.5 for four (bench/reports/gpu.md).
pub(crate) const DEVICE_PAIR_PS: u64 = 1;

/// Picoseconds of a CPU core to test a pair of postings that a device saves.
pub(crate) const SAVED_TEST_PS: u64 = 800;

// The constants below follow from the times of each way over generated sets of 5 to 533 tokens, of
// 0.3 to 4 million tokens in all, and over three data sets, at 0.95 to 0.5, on one core. They are
// round numbers near those whose choices lose least: only their ratios matter, and none is a time.
// In 654 joins of 0.5 ms and more on an AMD EPYC (Zen 4) and on an Intel Xeon, with AVX-512 and
// with AVX2, the way that they choose takes more than a tenth longer than the best one in 34, up to
// 1.7 times as long; in 90 joins of sets that the constants do not follow from, in 11, up to 1.5
// times.

/// Picoseconds of tiles to test a pair by signatures of `words` words.
pub(crate) fn tile_pair_ps(words: u64) -> u64 {
    290 + 55 * words
}

/// Picoseconds of tiles per token.
pub(crate) const TILE_TOKEN_PS: u64 = 1_500;

/// Picoseconds of a pair of a tile that passes: a share of the verification.
pub(crate) fn tile_hit_ps(mean_size: u64) -> u64 {
    61_000 + 1_050 * mean_size
}

/// Picoseconds of postings per set.
pub(crate) const POSTING_SET_PS: u64 = 3_800;

/// Picoseconds to count, sign, add and transpose a posting with a signature of `words` words.
pub(crate) fn posting_ps(words: u64) -> u64 {
    31_900 + 4_000 * words
}

/// Picoseconds of a pair of postings whose sizes fit, to test it.
pub(crate) const POSTING_TEST_PS: u64 = 760;

/// Picoseconds of a pair of postings that passes: whether its list is the first one that has both
/// sets, and a share of the verification.
pub(crate) const POSTING_HIT_PS: u64 = 80_000;

/// Picoseconds of PPJoin per set.
pub(crate) const PREFIX_SET_PS: u64 = 55_000;

/// Picoseconds of PPJoin to count and add a posting, where lists and postings take `index_bytes`.
pub(crate) fn prefix_posting_ps(index_bytes: u64) -> u64 {
    3_800 + 6_700 * doublings(index_bytes)
}

/// Picoseconds of PPJoin per pair of postings whose sizes fit.
pub(crate) const PREFIX_TEST_PS: u64 = 9_400;

/// Picoseconds of PPJoin per pair of sets that it meets, where the tokens of all sets take
/// `token_bytes`: the first test of the pair, and a share of the verification.
pub(crate) fn prefix_pair_ps(token_bytes: u64) -> u64 {
    8_800 + 10_000 * doublings(token_bytes)
}

/// Picoseconds of PPJoin to sign a token by `words` words for the bitmap filter.
pub(crate) fn prefix_token_ps(words: u64) -> u64 {
    190 * words
}

/// Picoseconds of a pair that passes the bitmap filter: a share of the verification.
pub(crate) const SIGNED_PREFIX_HIT_PS: u64 = 21_000;

/// Doublings from 1 MiB to `bytes`, up to 16 MiB: more and more of it is in no cache of the core.
fn doublings(bytes: u64) -> u64 {
    (bytes >> 20).max(1).ilog2().min(4).into()
}

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
        Isa::Avx2 => [130, 130, 400],
        Isa::Portable => [130, 260, 1600],
        _ => [130, 260, 4000],
    };
    LevelPercents { posting, posting_test, tile_test }
}
