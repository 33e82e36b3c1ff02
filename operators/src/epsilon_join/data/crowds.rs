//! Crowds: vectors with many partners, of which an output of first ones needs one.
//!
//! n vectors within epsilon of each other are n² / 2 pairs. So if the vectors of a sample have many
//! partners, each vector is looked up until an earlier partner is found. If vectors have few
//! partners, finding each pair once is faster.

use trommel_kernels::sieve::split_mix;
use trommel_kernels::vectors::square;

use crate::epsilon_join::parameters::rules::Rules;
use crate::shared::names::secret::random_seed;

/// Vectors of the sample.
const SAMPLED: u64 = 256;
/// Number of coordinates that each vector of the sample is compared with, and maximum number of
/// vectors.
const COMPARED_NUMBERS: u64 = 1 << 15;
const COMPARED_MAX: u64 = 1 << 11;

/// Whether vectors have many partners, by a sample.
pub(crate) fn are_crowded(rules: &Rules, coordinates: &[f32], dims: usize) -> bool {
    let (rows, seed) = ((coordinates.len() / dims) as u64, random_seed());
    let enough = rules.tuning.crowd as u64;
    if rows <= enough {
        return false;
    }
    // The seed is random, so nobody who chooses the vectors can know the sample.
    let vector = |draw: u64| {
        let row = usize::try_from(split_mix(seed, draw) % rows).unwrap_or(0);
        &coordinates[row * dims..][..dims]
    };
    let most = (COMPARED_NUMBERS / dims as u64).clamp(32, COMPARED_MAX).min(rows);
    let compared: Vec<&[f32]> = (SAMPLED..SAMPLED + most).map(vector).collect();
    let near = |left: &[f32]| {
        let is_near = |right: &&&[f32]| square(left, right) <= rules.epsilon.square();
        compared.iter().filter(is_near).count() as u64
    };
    let found: u64 = (0..SAMPLED.min(rows)).map(|draw| near(vector(draw))).sum();
    found.saturating_mul(rows) > enough.saturating_mul(SAMPLED.min(rows) * most)
}
