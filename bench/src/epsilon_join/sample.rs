//! Check of pairs against a plain loop, for some vectors.

use std::thread;

use super::data::Workload;

/// Checks the pairs of `samples` vectors with all others, by a `number` of the square of their
/// distance, and that no pair comes twice.
///
/// # Panics
/// If a pair is missing, comes twice, or is no pair.
pub(super) fn check(
    values: &[f32],
    workload: Workload,
    pairs: impl Iterator<Item = (u32, u32, f64)>,
    samples: usize,
    number: fn(f64) -> f64,
) {
    let Workload { len, dims, epsilon, .. } = workload;
    let (limit, step) = (epsilon * epsilon, (len / samples.max(1)).max(1));
    let row = |at: usize| &values[at * dims..][..dims];
    // A pair of two samples is there for each of them.
    let (mut keys, mut found) = (Vec::new(), Vec::new());
    for (left, right, found_number) in pairs {
        keys.push(u64::from(left) << 32 | u64::from(right));
        let (left, right) = (left as usize, right as usize);
        for (sample, other) in [(left, right), (right, left)] {
            if sample.is_multiple_of(step) {
                found.push((sample, other, found_number.to_bits()));
            }
        }
    }
    keys.sort_unstable();
    assert!(keys.windows(2).all(|pair| pair[0] < pair[1]), "a pair is there twice");
    found.sort_unstable();
    let found = &found[..];
    let cores = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for core in 0..cores {
            scope.spawn(move || {
                for sample in (0..len).step_by(step).skip(core).step_by(cores) {
                    let others = (0..len).filter(|other| *other != sample);
                    let squares = others.map(|other| (other, square(row(sample), row(other))));
                    let near = squares.filter(|(_, square)| *square <= limit);
                    let near =
                        near.map(|(other, square)| (sample, other, number(square).to_bits()));
                    let begin = found.partition_point(|pair| pair.0 < sample);
                    let end = found.partition_point(|pair| pair.0 <= sample);
                    assert!(near.eq(found[begin..end].iter().copied()), "pairs of {sample}");
                }
            });
        }
    });
}

/// The square of a distance, as the pairs have it.
fn square(left: &[f32], right: &[f32]) -> f64 {
    let mut sum = 0.0;
    for (x, y) in left.iter().zip(right) {
        let difference = f64::from(*x) - f64::from(*y);
        sum += difference * difference;
    }
    sum
}
