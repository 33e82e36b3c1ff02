//! Constants of the cost models, each with its measurement.

use trommel_kernels::Isa;

/// Nanoseconds of a CPU core to verify a pair of sets of `mean_size` tokens. Measured: 26, 59, 91
/// and 250 at 13, 49, 117 and 491 (docs/gpu.md, one core).
pub(crate) fn pair_ns(mean_size: u64) -> u64 {
    20 + mean_size / 2
}

/// Picoseconds of a CPU core to test a pair of a tile by signatures of `words` words. Measured: 130
/// at 1 word, 190 at 2 and 680 at 8 with AVX-512 (`trommel-bench set-join --grid`).
pub(crate) fn tile_pair_ps(words: u64) -> u64 {
    60 + 75 * words
}

/// Picoseconds of a device to test a pair of a tile, per word of the signature. Measured: 1.0 for
/// one word, 0.5 for four (docs/gpu.md).
pub(crate) const DEVICE_PAIR_PS: u64 = 1;

// The constants below are from joins of generated sets of 7 to 533 tokens at 0.8 and 0.5
// (`trommel-bench set-join --grid`, one core of a Xeon with AVX-512).

/// Picoseconds to sign a token for tiles.
pub(crate) const SIGNED_TOKEN_PS: u64 = 1_500;

/// Picoseconds to sign a token for postings, per word of the signature.
pub(crate) const WORD_OF_TOKEN_PS: u64 = 600;

/// Picoseconds to count, add and transpose a posting with a signature of `words` words.
pub(crate) fn posting_ps(words: u64) -> u64 {
    13_000 + 3_000 * words
}

/// Picoseconds to test a pair of postings with signatures of `words` words.
pub(crate) fn posting_test_ps(words: u64) -> u64 {
    600 + 120 * words
}

/// Picoseconds of a pair of postings that passes: whether its list is the first one that has both
/// sets, and a share of the verification. Large sets have long prefixes before a common token.
pub(crate) fn hit_ps(mean_size: u64) -> u64 {
    60_000 + 500 * mean_size
}

/// Picoseconds of PPJoin per set.
pub(crate) const PREFIX_SET_PS: u64 = 60_000;

/// Picoseconds of PPJoin to count and add a posting, where its lists take `list_bytes`. Lists that
/// exceed the second-level cache, as over source code, cost a miss for each posting.
pub(crate) fn prefix_posting_ps(list_bytes: usize) -> u64 {
    if list_bytes <= 2 << 20 { 14_000 } else { 40_000 }
}

/// Picoseconds of PPJoin per pair of postings.
pub(crate) const PREFIX_TEST_PS: u64 = 2_500;

/// Picoseconds of PPJoin per pair of sets that it meets: the first test of the pair, and a share of
/// the verification.
pub(crate) const PREFIX_PAIR_PS: u64 = 5_000;

/// Factors by which the tests of postings and of tiles are slower than with AVX-512. Measured: 2.1
/// and 3.2 with AVX2, 4 and 12 with 128 bits, 4 and 32 without vectors.
pub(crate) fn level_factors(isa: Isa) -> [u64; 2] {
    match isa {
        Isa::Avx512 => [1, 1],
        Isa::Avx2 => [2, 3],
        Isa::Portable => [4, 12],
        _ => [4, 32],
    }
}
