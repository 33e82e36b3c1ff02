//! The peer kiddo: a query for each vector, in Morton order, which keeps its caches warm.

use std::time::{Duration, Instant};

use kiddo::{ImmutableKdTree, SquaredEuclidean};

use super::data::Workload;

/// Bits of a coordinate in the order of the queries.
const BITS_MAX: usize = 16;

/// Times of building and of all queries, and the number of pairs; `None` for dimensions that are
/// not measured, since kiddo has them as a constant.
pub(super) fn measure(
    values: &[f32],
    workload: Workload,
    rounds: usize,
) -> Option<(Duration, Duration, u64)> {
    match workload.dims {
        2 => Some(of::<2>(values, workload.epsilon, rounds)),
        3 => Some(of::<3>(values, workload.epsilon, rounds)),
        8 => Some(of::<8>(values, workload.epsilon, rounds)),
        _ => None,
    }
}

#[expect(clippy::cast_possible_truncation, reason = "kiddo decides in float32")]
fn of<const DIMS: usize>(values: &[f32], epsilon: f64, rounds: usize) -> (Duration, Duration, u64) {
    let points = values.as_chunks::<DIMS>().0;
    let queries = in_morton_order(points);
    let begin = Instant::now();
    let tree = ImmutableKdTree::<f32, DIMS>::new_from_slice(points).expect("kiddo builds a tree");
    let build = begin.elapsed();
    let square = (epsilon * epsilon) as f32;
    let mut best = Duration::MAX;
    let mut found = 0;
    for _ in 0..=rounds {
        let begin = Instant::now();
        found = 0;
        for query in &queries {
            let within = tree.query(query).within::<SquaredEuclidean<f32>>(square);
            let within = within.unsorted().with_result_capacity(16).execute();
            // Each point finds itself.
            found += within.len() as u64 - 1;
        }
        best = best.min(begin.elapsed());
    }
    (build, best, found / 2)
}

/// The points by the bits of their coordinates, interleaved.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "an order, in which errors do no harm"
)]
fn in_morton_order<const DIMS: usize>(points: &[[f32; DIMS]]) -> Vec<[f32; DIMS]> {
    let (mut low, mut high) = ([f32::MAX; DIMS], [f32::MIN; DIMS]);
    for point in points {
        for (dim, &x) in point.iter().enumerate() {
            (low[dim], high[dim]) = (low[dim].min(x), high[dim].max(x));
        }
    }
    let bits = (60 / DIMS).min(BITS_MAX);
    let cells = ((1_u32 << bits) - 1) as f32;
    let key = |point: &[f32; DIMS]| {
        let mut key = 0_u64;
        for bit in (0..bits).rev() {
            for (dim, &x) in point.iter().enumerate() {
                let cell = ((x - low[dim]) / (high[dim] - low[dim]) * cells) as u64;
                key = key << 1 | (cell >> bit & 1);
            }
        }
        key
    };
    let mut keyed: Vec<(u64, [f32; DIMS])> =
        points.iter().map(|point| (key(point), *point)).collect();
    keyed.sort_unstable_by_key(|(key, _)| *key);
    keyed.into_iter().map(|(_, point)| point).collect()
}
