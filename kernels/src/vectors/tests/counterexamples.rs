//! A search for counterexamples of the bounds of [`Form`]: pairs that join although their sum is
//! above the upper limit, and pairs that do not join although their sum is within the lower limit.
//!
//! Epsilon is the distance of the pair, or just below it. A walk changes a coordinate at a time,
//! and keeps changes after which rounding uses more of the slack of the bounds. So the walk finds
//! the worst pairs, which random pairs do not reach.

use super::super::epsilon::{Epsilon, square};
use super::Random;
use crate::Isa;
use crate::vectors::filters::{Extent, Form};
use crate::vectors::levels::{LANES, Line};

const STEPS: usize = 4_000;
/// Number of walks for each number of dimensions, each in another extent.
const WALKS: usize = 6;

/// A pair of points, one after another.
struct Pair<'a> {
    form: &'a Form,
    dims: usize,
    values: Vec<f32>,
}

impl Pair<'_> {
    /// The share of the slack of the limit `which` that rounding uses up.
    ///
    /// # Panics
    ///
    /// If the pair is a counterexample of any limit.
    fn share(&self, which: usize) -> f64 {
        let (left, right) = self.values.split_at(self.dims);
        let exact = square(left, right);
        if exact == 0.0 {
            return 0.0;
        }
        let mut joins = exact.sqrt().next_down().next_down();
        while joins * joins < exact {
            joins = joins.next_up();
        }
        let limits = [joins, joins.next_down()].map(|epsilon| {
            let epsilon = Epsilon::new(epsilon).unwrap();
            self.form.limits(self.dims, epsilon.reach(), epsilon.core())
        });
        let [within, inside] = [limits[0].within, limits[1].inside].map(|bits| self.number(bits));
        let (stored, are_exact) = self.stored();
        // A point, and a box that is the other point.
        let are_exact =
            are_exact && stored.iter().any(|lines| self.form.is_straight(lines, lines, 0));
        let stored = stored.map(|lines| lines.iter().map(|line| line.0[0]).collect());
        let sum = self.sum(&stored);
        assert!(sum <= within, "lost: {:?}, {sum} of {within}", self.values);
        assert!(!are_exact || sum > inside, "joined: {:?}, {sum} of {inside}", self.values);
        let (Form::Short { scale, .. } | Form::Float { scale, .. }) = self.form;
        let distance = exact.sqrt() * scale;
        match which {
            0 => (sum.sqrt() - distance) / (within.sqrt() - distance),
            _ if inside > 0.0 => (distance - sum.sqrt()) / (distance - inside.sqrt()),
            _ => 0.0,
        }
    }

    /// The words of both points, and whether both are exact.
    fn stored(&self) -> ([Vec<Line>; 2], bool) {
        let words = self.form.words(self.dims);
        let mut are_exact = true;
        let (left, right) = self.values.split_at(self.dims);
        let stored = [left, right].map(|row| {
            let mut lines = vec![Line([0; LANES]); words];
            are_exact &= self.form.store(Isa::Scalar, row, self.dims, words, &mut lines);
            lines
        });
        (stored, are_exact)
    }

    fn sum(&self, [left, right]: &[Vec<u32>; 2]) -> f64 {
        let words = left.iter().zip(right);
        match self.form {
            Form::Short { .. } => words
                .flat_map(|(left, right)| {
                    [left & 0xffff, left >> 16].into_iter().zip([right & 0xffff, right >> 16])
                })
                .map(|(left, right)| (f64::from(left) - f64::from(right)).powi(2))
                .sum(),
            Form::Float { .. } => words
                .map(|(&left, &right)| f32::from_bits(left) - f32::from_bits(right))
                .fold(0.0, |sum, difference| sum + difference * difference)
                .into(),
        }
    }

    fn number(&self, bits: u32) -> f64 {
        match self.form {
            Form::Short { .. } => bits.cast_signed().into(),
            Form::Float { .. } => f32::from_bits(bits).into(),
        }
    }
}

/// Walks from a random pair; returns the share of the slack at its end.
fn walk(random: &mut Random, form: &Form, extent: &Extent, which: usize) -> f64 {
    let dims = extent.low.len();
    let at = |dim: usize, share: f32| {
        let (low, high) = (extent.low[dim], extent.high[dim]);
        (low + share * (high - low)).clamp(low, high)
    };
    let near = 2_f32.powi(-5 - (random.next() % 8) as i32);
    let shares: Vec<f32> = (0..dims).map(|_| random.unit() * 0.9).collect();
    let left = (0..dims).map(|dim| at(dim, shares[dim]));
    let right: Vec<f32> =
        (0..dims).map(|dim| at(dim, shares[dim] + near * random.unit())).collect();
    let mut pair = Pair { form, dims, values: left.chain(right).collect() };
    let mut share = pair.share(which);
    for _ in 0..STEPS {
        let place = usize::try_from(random.next() % (2 * dims as u64)).unwrap();
        let (dim, before) = (place % dims, pair.values[place]);
        let step = (random.unit() - 0.5) * 2_f32.powi(-4 - (random.next() % 20) as i32);
        let moved = before + step * (extent.high[dim] - extent.low[dim]);
        pair.values[place] = moved.clamp(extent.low[dim], extent.high[dim]);
        let after = pair.share(which);
        if after >= share {
            share = after;
        } else {
            pair.values[place] = before;
        }
    }
    share
}

/// Walks in some extents, with forms for a distance; returns the largest share of each slack.
fn search(dims: usize, form_of: fn(&Extent, f64) -> Form) -> [f64; 2] {
    let mut random = Random(dims as u64);
    let mut shares = [0.0_f64; 2];
    for _ in 0..WALKS {
        let size = 10_f32.powi((random.next() % 9) as i32 - 4);
        let low: Vec<f32> = (0..dims).map(|_| (random.unit() - 0.5) * size).collect();
        let high = low.iter().map(|low| low + (0.2 + random.unit()) * size).collect();
        let extent = Extent { low, high };
        let form = form_of(&extent, f64::from(size) * 2.0 * (dims as f64).sqrt());
        for (which, share) in shares.iter_mut().enumerate() {
            *share = share.max(walk(&mut random, &form, &extent, which));
        }
    }
    shares
}

#[test]
fn no_bound_of_whole_numbers_has_a_counterexample() {
    for dims in [1, 2, 3, 5, 8, 16, 31] {
        let shares = search(dims, |extent, _| Form::short(extent));
        // The search is sharp: it uses most of the slack.
        assert!(shares.iter().all(|&share| share > 0.8), "{dims} dimensions: {shares:?}");
    }
}

#[test]
fn no_bound_of_floats_has_a_counterexample() {
    for dims in [1, 2, 3, 5, 8, 16, 31] {
        let shares = search(dims, Form::float);
        assert!(shares.iter().all(|&share| share > 0.05), "{dims} dimensions: {shares:?}");
    }
}

/// A form for points with a coordinate that is a mark of missing data.
fn bent(extent: &Extent, reach: f64) -> Form {
    let mut extent = extent.clone();
    extent.high[0] = f32::MAX;
    let form = Form::float(&extent, reach);
    assert!(reach > 4096.0 || matches!(form, Form::Float { bend: Some(_), .. }));
    form
}

#[test]
fn no_bound_of_bent_floats_has_a_counterexample() {
    for dims in [1, 2, 3, 5, 8, 16, 31] {
        let shares = search(dims, bent);
        assert!(shares.iter().all(|&share| share > 0.05), "{dims} dimensions: {shares:?}");
    }
}

/// Numbers about the border of a bend and far beyond it, in pairs of neighbours.
#[test]
fn bends_keep_neighbours_in_order_and_apart_from_each_other() {
    let extent = Extent { low: vec![-f32::MAX], high: vec![f32::MAX] };
    for reach in [0.0, 1e-40, 1e-5, 0.01, 1.0] {
        let form = Form::float(&extent, reach);
        let limit = f32::from_bits(form.limits(1, reach, reach).within);
        let twice = |size: &f32| Some(size * 2.0).filter(|size| size.is_finite());
        let sizes = std::iter::successors(Some(f32::from_bits(1)), twice);
        let mut values: Vec<f32> = sizes
            .flat_map(|value| {
                [value.next_down(), value, value.next_up(), (value * 1.3).min(f32::MAX)]
            })
            .flat_map(|value| [value, -value])
            .chain([f32::MAX, -f32::MAX])
            .collect();
        values.sort_by(f32::total_cmp);
        let stored: Vec<f32> = values
            .iter()
            .map(|&value| {
                let mut lines = [Line([0; LANES])];
                form.store(Isa::Scalar, &[value], 1, 1, &mut lines);
                f32::from_bits(lines[0].0[0])
            })
            .collect();
        assert!(stored.is_sorted(), "{reach}");
        // At most seven neighbours have near images, and numbers that may join have near images.
        for (values, stored) in values.windows(8).zip(stored.windows(8)) {
            let is_near = f64::from(values[7]) - f64::from(values[0]) <= 1.01 * reach;
            assert!(is_near || (stored[7] - stored[0]).powi(2) > limit, "{reach}: {values:?}");
        }
    }
}
