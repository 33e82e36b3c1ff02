//! Vectors for epsilon joins, and a plain loop over all pairs.

use trommel_kernels::cuda::vectors::NearPair;

use super::cases::{Numbers, narrow};

/// Vectors and an epsilon.
#[derive(Clone, Debug)]
pub(crate) struct VectorCase {
    pub(crate) name: String,
    pub(crate) dims: usize,
    pub(crate) left: Vec<f32>,
    /// Without right vectors, the left vectors are joined with themselves.
    pub(crate) right: Option<Vec<f32>>,
    pub(crate) epsilon: f64,
}

/// A repeatable number from 0 to 1.
fn unit(numbers: &mut Numbers) -> f32 {
    numbers.below(1 << 24) as f32 / (1 << 24) as f32
}

/// Vectors in a cube of side 1.
fn uniform(len: usize, dims: usize, seed: u64) -> Vec<f32> {
    let mut numbers = Numbers::new(seed);
    (0..len * dims).map(|_| unit(&mut numbers)).collect()
}

/// Vectors around a few centres, at distances of about `spread`.
fn clusters(len: usize, dims: usize, count: u32, spread: f32) -> Vec<f32> {
    let centres = uniform(count as usize, dims, 77);
    let mut numbers = Numbers::new(78);
    let mut values = Vec::new();
    for _ in 0..len {
        let centre = numbers.below(count) as usize * dims;
        for d in 0..dims {
            values.push(centres[centre + d] + spread * (unit(&mut numbers) - 0.5));
        }
    }
    values
}

/// The square of a distance.
pub(crate) fn square(left: &[f32], right: &[f32]) -> f64 {
    let mut sum = 0.0;
    for (x, y) in left.iter().zip(right) {
        let difference = f64::from(*x) - f64::from(*y);
        sum += difference * difference;
    }
    sum
}

impl VectorCase {
    fn new(name: &str, dims: usize, left: Vec<f32>, epsilon: f64) -> Self {
        Self { name: name.to_owned(), dims, left, right: None, epsilon }
    }

    /// The same case with other right vectors.
    fn with(self, right: Vec<f32>) -> Self {
        Self { right: Some(right), name: self.name + ", two inputs", ..self }
    }

    /// The same case with all numbers and epsilon multiplied.
    fn scaled(&self, name: &str, scale: f32) -> Self {
        let left = self.left.iter().map(|value| value * scale).collect();
        Self {
            left,
            name: name.to_owned(),
            epsilon: self.epsilon * f64::from(scale),
            ..self.clone()
        }
    }

    fn row(&self, at: usize) -> &[f32] {
        &self.left[at * self.dims..][..self.dims]
    }

    /// All pairs, in order.
    pub(crate) fn expected(&self) -> Vec<NearPair> {
        let right = self.right.as_ref().unwrap_or(&self.left);
        let mut pairs = Vec::new();
        for (i, x) in self.left.chunks_exact(self.dims).enumerate() {
            let first = if self.right.is_some() { 0 } else { i + 1 };
            for (j, y) in right.chunks_exact(self.dims).enumerate().skip(first) {
                let square = square(x, y);
                if square.sqrt() <= self.epsilon {
                    pairs.push(NearPair { left: narrow(i), right: narrow(j), square });
                }
            }
        }
        pairs
    }
}

/// Cases with the distance of a pair as epsilon, and with the two numbers next to it.
fn borders(case: &VectorCase, pairs: &[[usize; 2]], cases: &mut Vec<VectorCase>) {
    for [i, j] in pairs {
        let distance = square(case.row(*i), case.row(*j)).sqrt();
        for epsilon in [distance.next_down(), distance, distance.next_up()] {
            let name = format!("{}, epsilon {epsilon:e}, that of {i} and {j}", case.name);
            cases.push(VectorCase { name, epsilon, ..case.clone() });
        }
    }
}

/// Points on a line, on a grid and twice: many distances are equal, up to rounding.
fn regular() -> Vec<VectorCase> {
    let line = (0..90).flat_map(|i| [0.1 * i as f32, 0.3 * i as f32, -0.7 * i as f32]).collect();
    let line = VectorCase::new("a line", 3, line, 0.0);
    let grid = (0..100).flat_map(|i| [0.1 * (i % 10) as f32, 0.1 * (i / 10) as f32]).collect();
    let grid = VectorCase::new("a grid", 2, grid, 0.0);
    let mut twice = uniform(40, 5, 3);
    twice.extend_from_within(..);
    let twice = VectorCase::new("each vector twice", 5, twice, 0.0);
    let mut cases = vec![twice.clone(), VectorCase { epsilon: 0.3, ..twice }];
    borders(&line, &[[3, 5], [40, 41]], &mut cases);
    borders(&grid, &[[0, 1], [12, 34]], &mut cases);
    cases.push(VectorCase::new("equal vectors", 6, vec![0.7; 6 * 70], 0.0));
    cases.push(VectorCase::new("zeros", 1, vec![0.0; 40], 1e-200));
    cases
}

/// Huge, tiny and mixed numbers.
fn scales() -> Vec<VectorCase> {
    let base = VectorCase::new("", 4, uniform(80, 4, 9), 0.35);
    let mut cases = vec![
        base.scaled("huge", 3.4e38),
        base.scaled("tiny", 1e-38),
        base.scaled("denormal", 2e-44),
        base.scaled("small", 1e-25),
    ];
    let ends = cases[0].left.iter().map(|value| value * 2.0 - 3.4e38).collect();
    cases.push(VectorCase::new("both ends", 4, ends, 2.5e38));
    let far = base.left.iter().map(|value| 1e30 + value * 1e24).collect();
    cases.push(VectorCase::new("far from the origin", 4, far, 2.5e23));
    let mut outlier = clusters(70, 4, 2, 0.01);
    outlier.extend([1e30, -1e30, 0.5, 3e38]);
    cases.push(VectorCase::new("an outlier", 4, outlier, 0.004));
    for (name, epsilon) in [
        ("epsilon 0", 0.0),
        ("epsilon 1e-30", 1e-30),
        ("epsilon 0.001", 0.001),
        ("epsilon 3", 3.0),
        ("epsilon 1e300", 1e300),
        ("epsilon infinite", f64::INFINITY),
    ] {
        cases.push(VectorCase { name: name.to_owned(), epsilon, ..base.clone() });
    }
    for case in &mut cases {
        case.epsilon = case.epsilon.abs();
    }
    cases
}

/// Cases of few vectors, for every method.
pub(crate) fn few() -> Vec<VectorCase> {
    let mut cases = Vec::new();
    for len in [0, 1, 2, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 129] {
        cases.push(VectorCase::new(&format!("{len} vectors"), 8, uniform(len, 8, 1), 0.6));
    }
    for dims in (1..=17).chain([31, 33, 64, 100, 129]) {
        let epsilon = 0.3 * (dims as f64).sqrt();
        let case =
            VectorCase::new(&format!("{dims} dimensions"), dims, uniform(70, dims, 2), epsilon);
        let mut around = Vec::new();
        borders(&case, &[[1, 69]], &mut around);
        cases.push(case.clone());
        cases.push(around.swap_remove(0));
        cases.push(case.with(uniform(41, dims, 5)));
    }
    cases.extend(regular());
    cases.extend(scales());
    let case = VectorCase::new("no right vectors", 3, uniform(9, 3, 1), 1.0);
    cases.push(case.clone().with(Vec::new()));
    cases.push(VectorCase { left: Vec::new(), ..case.clone().with(case.left) });
    cases
}

/// A case of several groups, and a case of a leaf that is wider than epsilon.
pub(crate) fn small() -> Vec<VectorCase> {
    vec![
        VectorCase::new("small", 3, clusters(280, 3, 5, 0.2), 0.03),
        VectorCase::new("wide leaves", 5, clusters(90, 5, 3, 0.4), 0.002),
        VectorCase::new("few", 3, uniform(33, 3, 1), 0.3).with(uniform(20, 3, 1)),
    ]
}

/// Cases of several panels of bytes and of several tiles.
pub(crate) fn wide() -> Vec<VectorCase> {
    let mut cases = Vec::new();
    for (len, dims) in [(300, 128), (140, 300), (260, 385), (70, 896)] {
        let name = format!("{dims} dimensions in clusters");
        let epsilon = 0.08 * (dims as f64).sqrt();
        cases.push(VectorCase::new(&name, dims, clusters(len, dims, 9, 0.3), epsilon));
    }
    cases
}

/// Cases of several groups.
pub(crate) fn many() -> Vec<VectorCase> {
    let mut cases = Vec::new();
    for len in [255, 256, 257, 600] {
        let name = format!("{len} vectors in clusters");
        cases.push(VectorCase::new(&name, 3, clusters(len, 3, 7, 0.2), 0.02));
    }
    cases.push(VectorCase::new("many pairs", 2, clusters(300, 2, 2, 0.1), 0.03));
    let case = VectorCase::new("uniform", 8, uniform(700, 8, 4), 0.4);
    cases.push(case.clone());
    cases.push(case.with(uniform(300, 8, 6)));
    cases.push(VectorCase::new("sixteen", 16, clusters(400, 16, 4, 0.3), 0.25));
    cases
}

/// Vectors of several super-groups, in two dimensions.
pub(crate) fn supers() -> VectorCase {
    VectorCase::new("several super-groups", 2, clusters(9_000, 2, 40, 0.4), 0.006)
}
