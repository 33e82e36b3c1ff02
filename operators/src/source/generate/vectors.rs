//! Random vectors: uniform, in clusters, or in clusters whose dimensions are correlated.
//!
//! The three distributions of Böhm, Noll, Plant, Zherdin, *Index-supported Similarity Join on
//! Graphics Processors*, BTW 2009, §6 (DS1, DS2, DS3), which leaves the parameters open:
//!
//! ```text
//! uniform      each coordinate from 0 to 1
//! clusters     a centre within 0.15..0.85 plus normal deviations of 0.05
//! correlated   a centre plus deviations of 0.1 down to 0.01, reflected at three random planes
//! ```
//!
//! Normal deviations are sums of twelve uniform numbers (Irwin, Hall), which every machine rounds
//! alike. Logarithms are not rounded alike.

use std::iter::zip;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, UInt32Array};
use arrow_buffer::ScalarBuffer;
use arrow_schema::SchemaRef;
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::Rng;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;
use trommel_engine::operator::{OperatorError, Output, Source, SourceFlow};

use super::Quota;
use super::zipf::SplitMix;
use crate::shared::columns::{vector_array, vectors_schema};
use crate::shared::parameters::BATCH_BYTES;

/// Key that makes the shape of clusters independent of their vectors.
const SHAPE_KEY: u64 = 0x7368_6170;
/// Planes at which a correlated cluster is reflected.
const PLANES: usize = 3;
/// Uniform numbers in a normal deviation: their sum has a variance of 1.
const UNIFORM_NUMBERS: usize = 12;
/// Standard deviation of a coordinate of `clusters`.
const DEVIATION: f64 = 0.05;
/// Standard deviations of the first and of the last dimension of `correlated`.
const DEVIATIONS: [f64; 2] = [0.1, 0.01];

/// Distribution of random vectors.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum VectorDistribution {
    /// Each coordinate uniform from 0 to 1.
    #[default]
    Uniform,
    /// Normal clusters with a deviation of 0.05 in each dimension.
    Clusters,
    /// Normal clusters with deviations of 0.1 to 0.01 along axes that are not those of the space.
    Correlated,
}

/// More vectors were requested than ids exist.
#[derive(Debug, Error)]
#[error("more than 2^32 vectors; their ids have 32 bits")]
struct TooManyVectors;

/// Generator of vectors.
pub(super) struct RandomVectors {
    dims: usize,
    distribution: VectorDistribution,
    clusters: Vec<Cluster>,
    /// Standard deviation of each dimension, before reflections.
    deviations: Vec<f64>,
    random: Pcg64Mcg,
    /// The coordinates of the vector that is drawn.
    drawn: Vec<f64>,
}

struct Cluster {
    centre: Vec<f64>,
    /// Unit vectors across the planes at which deviations are reflected.
    planes: Vec<Vec<f64>>,
}

impl RandomVectors {
    /// Vectors of `dims` coordinates (at least 1), in `clusters` clusters (at least 1).
    pub(super) fn new(
        dims: u32,
        distribution: VectorDistribution,
        clusters: u32,
        seed: u64,
    ) -> Self {
        let generator = |key| {
            let mut words = SplitMix(seed ^ key);
            Pcg64Mcg::new(u128::from(words.next()) << 64 | u128::from(words.next()))
        };
        let mut shape = generator(SHAPE_KEY);
        let dims = dims as usize;
        let clusters = match distribution {
            VectorDistribution::Uniform => Vec::new(),
            _ => (0..clusters).map(|_| Cluster::new(&mut shape, dims, distribution)).collect(),
        };
        let deviations = deviations(distribution, dims);
        Self {
            dims,
            distribution,
            clusters,
            deviations,
            random: generator(0),
            drawn: vec![0.0; dims],
        }
    }

    /// Appends the coordinates of the next vector.
    #[expect(clippy::cast_possible_truncation, reason = "vectors have 32 bits a coordinate")]
    fn append(&mut self, coordinates: &mut Vec<f32>) {
        let Self { random, drawn, .. } = self;
        if self.distribution == VectorDistribution::Uniform {
            drawn.iter_mut().for_each(|x| *x = unit(random));
        } else {
            let cluster = &self.clusters[below(random, self.clusters.len())];
            for (x, deviation) in zip(&mut *drawn, &self.deviations) {
                *x = deviation * normal(random);
            }
            cluster.planes.iter().for_each(|plane| reflect(drawn, plane));
            zip(&mut *drawn, &cluster.centre).for_each(|(x, centre)| *x += centre);
        }
        coordinates.extend(drawn.iter().map(|&x| x as f32));
    }
}

impl Cluster {
    fn new(random: &mut Pcg64Mcg, dims: usize, distribution: VectorDistribution) -> Self {
        let centre = (0..dims).map(|_| 0.15 + 0.7 * unit(random)).collect();
        let planes = match distribution {
            VectorDistribution::Correlated => PLANES,
            _ => 0,
        };
        Self { centre, planes: (0..planes).map(|_| direction(random, dims)).collect() }
    }
}

/// Standard deviation of each dimension: equal, or falling by a constant factor.
fn deviations(distribution: VectorDistribution, dims: usize) -> Vec<f64> {
    if distribution != VectorDistribution::Correlated {
        return vec![DEVIATION; dims];
    }
    let steps = (dims - 1).max(1);
    // Roots are found by bisection, since platforms round library roots in different ways.
    let [first, last] = DEVIATIONS;
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..64 {
        let middle = (low + high) / 2.0;
        let falls_too_fast = (0..steps).fold(first, |value, _| value * middle) < last;
        *(if falls_too_fast { &mut low } else { &mut high }) = middle;
    }
    std::iter::successors(Some(first), |value| Some(value * high)).take(dims).collect()
}

/// A uniform number from 0 to 1, without 1.
#[expect(clippy::cast_precision_loss, reason = "53 bits are exact")]
fn unit(random: &mut Pcg64Mcg) -> f64 {
    (random.next_u64() >> 11) as f64 / 9_007_199_254_740_992.0
}

/// A uniform number below `end`.
fn below(random: &mut Pcg64Mcg, end: usize) -> usize {
    usize::try_from(((random.next_u64() >> 32) * end as u64) >> 32).expect("below an index")
}

/// A deviation with a mean of 0 and a variance of 1.
fn normal(random: &mut Pcg64Mcg) -> f64 {
    /// Numbers of 16 bits in a random word.
    const PER_WORD: usize = 4;
    let mut sum = 0;
    for _ in 0..UNIFORM_NUMBERS / PER_WORD {
        let word = random.next_u64();
        sum += (0..PER_WORD).map(|number| word >> (16 * number) & 0xFFFF).sum::<u64>();
    }
    // Each number is the lower end of an interval of 2^-16; the middle is 2^-17 higher.
    let sum = u32::try_from(sum).expect("twelve numbers of 16 bits");
    (f64::from(sum) + 6.0) / 65_536.0 - 6.0
}

/// A unit vector in a random direction.
fn direction(random: &mut Pcg64Mcg, dims: usize) -> Vec<f64> {
    loop {
        let mut vector: Vec<f64> = (0..dims).map(|_| normal(random)).collect();
        let norm = vector.iter().map(|x| x * x).sum::<f64>().sqrt();
        // The norm is zero only if all deviations are zero.
        if norm > 0.0 {
            vector.iter_mut().for_each(|x| *x /= norm);
            return vector;
        }
    }
}

/// Reflects `vector` at the plane across the unit vector `across`.
fn reflect(vector: &mut [f64], across: &[f64]) {
    let product: f64 = zip(&*vector, across).map(|(x, a)| x * a).sum();
    zip(vector, across).for_each(|(x, a)| *x -= 2.0 * product * a);
}

/// Source of vectors.
pub(super) struct VectorSource {
    vectors: RandomVectors,
    schema: SchemaRef,
    quota: Quota,
    /// Vectors that the quota has granted and that have not been sent.
    due: usize,
    next_id: u64,
}

impl VectorSource {
    pub(super) fn new(vectors: RandomVectors, quota: Quota) -> Self {
        let dims = u32::try_from(vectors.dims).expect("made of 32 bits");
        Self { vectors, schema: vectors_schema(dims), quota, due: 0, next_id: 0 }
    }

    pub(super) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The next `rows` vectors, with ids from `begin` on.
    fn batch(&mut self, begin: u32, rows: usize) -> RecordBatch {
        let dims = self.vectors.dims;
        let mut coordinates = Vec::with_capacity(rows * dims);
        (0..rows).for_each(|_| self.vectors.append(&mut coordinates));
        let ids = UInt32Array::from_iter_values((begin..=u32::MAX).take(rows));
        let dims = u32::try_from(dims).expect("made of 32 bits");
        let columns: Vec<ArrayRef> =
            vec![Arc::new(ids), vector_array(dims, ScalarBuffer::from(coordinates))];
        RecordBatch::try_new(SchemaRef::clone(&self.schema), columns).expect("of this schema")
    }
}

impl Source for VectorSource {
    fn next(&mut self, out: &mut Output) -> Result<SourceFlow, OperatorError> {
        if self.due == 0 {
            self.due = match self.quota.take() {
                Ok(count) => count,
                Err(flow) => return Ok(flow),
            };
        }
        // Long vectors fill a batch by bytes before the batch has its number of rows.
        let rows_max = (BATCH_BYTES / (self.vectors.dims * size_of::<f32>())).max(1);
        let rows = self.due.min(rows_max);
        let end = self.next_id + rows as u64;
        if end > 1 << 32 {
            return Err(Box::new(TooManyVectors));
        }
        let begin = u32::try_from(self.next_id).expect("checked with the end");
        (self.next_id, self.due) = (end, self.due - rows);
        out.send(self.batch(begin, rows));
        Ok(SourceFlow::HaveOutput)
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::cast::AsArray;
    use arrow_array::types::{Float32Type, UInt32Type};

    use super::super::Generate;
    use super::*;
    use crate::testing::{bind, bind_source, drain_source};

    fn run(spec: Generate) -> Vec<Vec<f32>> {
        let mut rows = Vec::new();
        for batch in drain_source(&mut *bind_source(spec)).unwrap() {
            let ids = batch.column(0).as_primitive::<UInt32Type>().values();
            for (id, vector) in zip(ids, batch.column(1).as_fixed_size_list().iter().flatten()) {
                assert_eq!(*id as usize, rows.len());
                rows.push(vector.as_primitive::<Float32Type>().values().to_vec());
            }
        }
        rows
    }

    fn mean_and_deviation(values: &[f64]) -> (f64, f64) {
        let count = f64::from(u32::try_from(values.len()).unwrap());
        let mean = values.iter().sum::<f64>() / count;
        let square = values.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / count;
        (mean, square.sqrt())
    }

    #[test]
    fn the_stream_does_not_depend_on_the_batch_size() {
        let spec = || Generate::vectors(5, VectorDistribution::Correlated).items(3000);
        let expected = run(spec());
        assert_eq!(expected.len(), 3000);
        for batch in [1, 100, 5000] {
            assert_eq!(run(spec().batch(batch)), expected);
        }
        assert_ne!(run(spec().seed(2)), expected);
    }

    #[test]
    fn distributions_are_as_described() {
        let rows = run(Generate::vectors(3, VectorDistribution::Uniform).items(20_000));
        for dim in 0..3 {
            let values: Vec<f64> = rows.iter().map(|row| f64::from(row[dim])).collect();
            assert!(values.iter().all(|x| (0.0..=1.0).contains(x)));
            let (mean, deviation) = mean_and_deviation(&values);
            assert!((mean - 0.5).abs() < 0.01 && (deviation - 0.2887).abs() < 0.01);
        }
        let one = |distribution| run(Generate::vectors(4, distribution).clusters(1).items(20_000));
        let deviations = |rows: &[Vec<f32>]| -> Vec<f64> {
            let of = |dim: usize| rows.iter().map(|row| f64::from(row[dim])).collect::<Vec<_>>();
            (0..4).map(|dim| mean_and_deviation(&of(dim)).1).collect()
        };
        let equal = deviations(&one(VectorDistribution::Clusters));
        assert!(equal.iter().all(|d| (d - 0.05).abs() < 0.002), "{equal:?}");
        // A reflection turns the axes and keeps the sum of the variances.
        let turned = deviations(&one(VectorDistribution::Correlated));
        let variance: f64 = turned.iter().map(|d| d * d).sum();
        let ratio = 0.1_f64.powf(1.0 / 3.0);
        let expected: f64 = (0..4).map(|dim| (0.1 * ratio.powi(dim)).powi(2)).sum();
        assert!((variance / expected - 1.0).abs() < 0.05, "{variance} {expected}");
        assert!(turned[3] > 0.015, "{turned:?}");
    }

    #[test]
    fn one_dimension_and_long_vectors_are_generated() {
        let rows = run(Generate::vectors(1, VectorDistribution::Correlated).items(100));
        assert!(rows.len() == 100 && rows.iter().all(|row| row.len() == 1));
        let spec = Generate::vectors(4_096, VectorDistribution::Clusters).items(200);
        let batches = drain_source(&mut *bind_source(spec)).unwrap();
        assert!(batches.iter().all(|batch| batch.num_rows() <= 64));
        assert_eq!(batches.iter().map(RecordBatch::num_rows).sum::<usize>(), 200);
    }

    #[test]
    fn parameters_that_do_not_fit_are_named() {
        let blamed = |spec: Generate| bind(spec, &[]).unwrap_err().parameter.unwrap();
        let uniform = |dims| Generate::vectors(dims, VectorDistribution::Uniform);
        assert_eq!(blamed(uniform(0)), "dims");
        assert_eq!(blamed(uniform(4_097)), "dims");
        assert_eq!(blamed(uniform(2).clusters(5)), "clusters");
        assert_eq!(
            blamed(Generate::vectors(2, VectorDistribution::Clusters).clusters(0)),
            "clusters"
        );
        assert_eq!(blamed(uniform(2).duplicates(0.5)), "duplicates");
        assert_eq!(blamed(Generate::zipf(5, 1.0).clusters(5)), "clusters");
    }
}
