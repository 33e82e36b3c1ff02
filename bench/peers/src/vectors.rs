//! The peer kiddo: a query for each vector, in Morton order, which keeps its caches warm. Its join
//! of two trees takes 10 times longer.

use std::error::Error;
use std::hint;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use kiddo::{ImmutableKdTree, SquaredEuclidean};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::numbers::{read_f32, write_u32};

/// Bits of a coordinate in the order of the queries.
const BITS_MAX: usize = 16;

/// A join of the vectors of a file.
#[derive(Debug, Deserialize)]
pub(crate) struct Job {
    vectors: PathBuf,
    dims: usize,
    epsilon: f64,
    rounds: usize,
    /// File for the pairs of rows, smaller one first.
    pairs: PathBuf,
}

/// Times and answers.
struct Measured {
    build: Duration,
    /// Time of all queries, of the fastest round.
    queries: Duration,
    /// Pairs, each as the smaller and the larger row.
    pairs: Vec<(u32, u32)>,
}

impl Job {
    pub(crate) fn run(&self) -> Result<Value, Box<dyn Error>> {
        let values = read_f32(&self.vectors)?;
        // kiddo has the number of dimensions as a constant.
        let measured = match self.dims {
            2 => of::<2>(&values, self.epsilon, self.rounds),
            3 => of::<3>(&values, self.epsilon, self.rounds),
            8 => of::<8>(&values, self.epsilon, self.rounds),
            _ => return Ok(json!([])),
        };
        let Measured { build, queries, pairs } = measured;
        write_u32(&self.pairs, pairs.into_iter().flat_map(<[u32; 2]>::from))?;
        let (build, join) = (build.as_secs_f64(), queries.as_secs_f64());
        Ok(json!([{ "name": "kiddo", "build": build, "join": join, "pairs": self.pairs }]))
    }
}

#[expect(clippy::cast_possible_truncation, reason = "kiddo decides in float32")]
fn of<const DIMS: usize>(values: &[f32], epsilon: f64, rounds: usize) -> Measured {
    let points = values.as_chunks::<DIMS>().0;
    let queries = in_morton_order(points);
    let begin = Instant::now();
    let tree = ImmutableKdTree::<f32, DIMS>::new_from_slice(points).expect("kiddo builds a tree");
    let build = begin.elapsed();
    let square = (epsilon * epsilon) as f32;
    let ask = |query: &[f32; DIMS]| {
        let within = tree.query(query).within::<SquaredEuclidean<f32>>(square);
        within.unsorted().with_result_capacity(16).execute()
    };
    let mut best = Duration::MAX;
    for _ in 0..=rounds {
        let begin = Instant::now();
        let found: usize = queries.iter().map(|(_, query)| ask(query).len()).sum();
        best = best.min(begin.elapsed());
        hint::black_box(found);
    }
    let mut pairs = Vec::new();
    for &(row, ref query) in &queries {
        let found = ask(query).into_iter().map(|near| near.item);
        // Each vector finds itself, and each pair is found from both of its sides.
        pairs.extend(found.filter(|other| row < *other).map(|other| (row, other)));
    }
    Measured { build, queries: best, pairs }
}

/// The rows and points by the bits of their coordinates, interleaved.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "an order, in which errors do no harm"
)]
fn in_morton_order<const DIMS: usize>(points: &[[f32; DIMS]]) -> Vec<(u32, [f32; DIMS])> {
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
    let rows = (0_u32..).zip(points);
    let mut keyed: Vec<_> = rows.map(|(row, point)| (key(point), row, *point)).collect();
    keyed.sort_unstable_by_key(|(key, ..)| *key);
    keyed.into_iter().map(|(_, row, point)| (row, point)).collect()
}
