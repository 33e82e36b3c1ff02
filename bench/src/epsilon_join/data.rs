//! Vectors to be joined: the three distributions of the paper, and embeddings of topics.

use std::f64::consts::TAU;
use std::fmt;
use std::str::FromStr;

use trommel_kernels::vectors::{Epsilon, Vectors};

/// Distribution of vectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// DS1: uniform in a cube of side 1.
    Uniform,
    /// DS2: clusters with the same deviation in each dimension, five if no number is given.
    Clusters(u32),
    /// DS3: five clusters, each along directions of its own.
    Correlated,
    /// Unit vectors around 100 topics; every third one is close to the one before it.
    Topics,
}

/// Vectors and the largest distance of a pair: `SHAPE:LEN:DIMS:EPSILON`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Workload {
    pub(crate) shape: Shape,
    pub(crate) len: usize,
    pub(crate) dims: usize,
    pub(crate) epsilon: f64,
}

impl FromStr for Workload {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wanted = || {
            format!(
                "{text:?}: needed is SHAPE:LEN:DIMS:EPSILON, SHAPE is uniform, clusters, clusters-COUNT, correlated or topics"
            )
        };
        let [shape, len, dims, epsilon] =
            text.split(':').collect::<Vec<_>>().try_into().map_err(|_| wanted())?;
        let shape = match shape {
            "uniform" => Shape::Uniform,
            "clusters" => Shape::Clusters(CLUSTERS),
            "correlated" => Shape::Correlated,
            "topics" => Shape::Topics,
            _ => match shape.strip_prefix("clusters-").and_then(|count| count.parse().ok()) {
                Some(count) if count > 0 => Shape::Clusters(count),
                _ => return Err(wanted()),
            },
        };
        let number = |text: &str| text.parse().map_err(|_| wanted());
        let epsilon = epsilon.parse().map_err(|_| wanted())?;
        let (len, dims) = (number(len)?, number(dims)?);
        let dims_max = Vectors::DIMS_MAX;
        if len == 0 || !(1..=dims_max).contains(&dims) || Epsilon::new(epsilon).is_none() {
            return Err(format!(
                "{text:?}: LEN is at least 1, DIMS 1 to {dims_max}, EPSILON a number from 0"
            ));
        }
        Ok(Self { shape, len, dims, epsilon })
    }
}

impl fmt::Display for Workload {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { shape, len, dims, epsilon } = self;
        match shape {
            Shape::Uniform => write!(formatter, "uniform")?,
            Shape::Clusters(count) => write!(formatter, "{count} clusters")?,
            Shape::Correlated => write!(formatter, "{CLUSTERS} correlated clusters")?,
            Shape::Topics => write!(formatter, "topics")?,
        }
        write!(formatter, ", {len} x {dims}, epsilon {epsilon}")
    }
}

/// Deviations of a correlated cluster along its directions.
const DEVIATIONS: [f64; 8] = [0.1, 0.072, 0.052, 0.037, 0.027, 0.019, 0.014, 0.01];
/// Clusters of the paper.
const CLUSTERS: u32 = 5;
const TOPICS: u64 = 100;

/// Repeatable numbers (splitmix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    fn unit(&mut self) -> f64 {
        ((self.next() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    }

    fn normal(&mut self) -> f64 {
        (-2.0 * self.unit().ln()).sqrt() * (TAU * self.unit()).cos()
    }

    fn below(&mut self, end: u64) -> usize {
        usize::try_from(self.next() % end).expect("a small number")
    }
}

impl Workload {
    /// The vectors, one after the other.
    pub(crate) fn values(&self) -> Vec<f32> {
        let mut values = vec![0.0; self.len * self.dims];
        self.fill(&mut values);
        values
    }

    /// Writes the vectors one after the other.
    #[expect(clippy::cast_possible_truncation, reason = "coordinates are float32")]
    pub(super) fn fill(&self, values: &mut [f32]) {
        let mut random = Random(5);
        match self.shape {
            Shape::Uniform => values.fill_with(|| random.unit() as f32),
            Shape::Clusters(count) => self.fill_clusters(&mut random, count, values),
            Shape::Correlated => self.fill_clusters(&mut random, CLUSTERS, values),
            Shape::Topics => self.fill_topics(&mut random, values),
        }
    }

    #[expect(clippy::cast_possible_truncation, reason = "coordinates are float32")]
    fn fill_clusters(&self, random: &mut Random, clusters: u32, values: &mut [f32]) {
        let dims = self.dims;
        let centres: Vec<f64> =
            (0..clusters as usize * dims).map(|_| 0.15 + 0.7 * random.unit()).collect();
        // Three mirrors turn the axes of a cluster.
        let mirrors: Vec<f64> =
            (0..clusters as usize * 3 * dims).map(|_| random.normal()).collect();
        let mut point = vec![0.0; dims];
        for row in values.chunks_exact_mut(dims) {
            let cluster = random.below(clusters.into());
            for (d, value) in point.iter_mut().enumerate() {
                let correlated = self.shape == Shape::Correlated;
                let deviation = if correlated { DEVIATIONS[d % 8] } else { 0.05 };
                *value = deviation * random.normal();
            }
            if self.shape == Shape::Correlated {
                for mirror in mirrors[cluster * 3 * dims..][..3 * dims].chunks_exact(dims) {
                    let dot: f64 = point.iter().zip(mirror).map(|(x, m)| x * m).sum();
                    let square: f64 = mirror.iter().map(|m| m * m).sum();
                    let axes = point.iter_mut().zip(mirror);
                    axes.for_each(|(x, m)| *x -= 2.0 * dot / square * m);
                }
            }
            for (d, value) in row.iter_mut().enumerate() {
                *value = (centres[cluster * dims + d] + point[d]) as f32;
            }
        }
    }

    #[expect(clippy::cast_possible_truncation, reason = "coordinates are float32")]
    fn fill_topics(&self, random: &mut Random, values: &mut [f32]) {
        let dims = self.dims;
        let topics: Vec<f64> = (0..TOPICS as usize * dims).map(|_| random.normal()).collect();
        let mut point = vec![0.0; dims];
        for (at, row) in values.chunks_exact_mut(dims).enumerate() {
            let topic = random.below(TOPICS) * dims;
            let away = 0.012 * random.normal().abs();
            for (d, value) in point.iter_mut().enumerate() {
                // The spectrum decays.
                let deviation = 1.0 / (1.0 + d as f64).sqrt();
                *value = if at % 3 == 2 {
                    *value + away * random.normal()
                } else {
                    (topics[topic + d] + 0.6 * random.normal()) * deviation
                };
            }
            let norm = point.iter().map(|x| x * x).sum::<f64>().sqrt();
            point.iter_mut().for_each(|x| *x /= norm);
            row.iter_mut().zip(&point).for_each(|(value, x)| *value = *x as f32);
        }
    }
}
