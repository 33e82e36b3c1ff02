//! The kd order of points: halves along the widest dimension, again and again, down to leaves.
//!
//! ```text
//! rows ─► sample, its kd tree ─► a bucket for each row ─► rows scattered into buckets
//!         (once)                 (one pass)               (one pass)        │
//!                    kd order of a bucket, in the cache, and rows moved ◄───┘
//! ```
//!
//! A bucket has at most [`BUCKET_MAX`] points, and splits inside of it are exact, so that all its
//! leaves but the last are full. Any order is correct; a bad one only costs time. So keys of
//! splits are coordinates in 15 bits of the extent of a node, and the extent is that of a sample.

use std::ops::Range;

use super::lanes::{Filter, LANES, as_u32};
use super::rows::{Vectors, by_dims};
use super::select::select;
use crate::Isa;
use crate::simd::{Base, Call, RunOn, dispatch};

/// Maximum points of a bucket, a power of two.
pub(super) const BUCKET_MAX: usize = 4096;
/// Maximum levels of the tree of a sample, and points of it.
const TREE_LEVELS_MAX: u32 = 12;
const SAMPLE_MAX: usize = 1 << 16;
/// Points of a sample for each bucket; buckets vary by the reciprocal of its root.
const SAMPLES_A_BUCKET: usize = 256;
/// Points of a node whose extent is taken.
const EXTENT_POINTS: usize = 32;
/// Bits of the number of a point in a bucket or a sample.
const INDEX_BITS: u32 = 16;
const INDEX_MASK: u32 = (1 << INDEX_BITS) - 1;
const _: () = assert!(BUCKET_MAX <= 1 << INDEX_BITS && SAMPLE_MAX <= 1 << INDEX_BITS);

/// The row of a position that has no point.
pub(super) const NO_ROW: u32 = u32::MAX;

/// Points in kd order. Buckets begin at multiples of sixteen; positions between them repeat the
/// last point.
#[derive(Debug)]
pub(super) struct Ordered {
    /// The row in the input of each position, or [`NO_ROW`].
    pub(super) order: Vec<u32>,
    /// The coordinates of each position.
    pub(super) rows: Vec<f32>,
    /// The first leaf of each bucket, and the number of leaves.
    pub(super) firsts: Vec<u32>,
}

/// Brings points into kd order.
pub(super) fn kd_order(isa: Isa, vectors: Vectors<'_>) -> Ordered {
    let (tree, buckets) = Tree::of(isa, vectors);
    let mut counts = vec![0_usize; 1 << tree.levels];
    for &bucket in &buckets {
        counts[bucket as usize] += 1;
    }
    let mut ends = Vec::with_capacity(counts.len());
    let mut positions = 0;
    for &count in &counts {
        ends.push(positions);
        positions += count.next_multiple_of(LANES);
    }
    let dims = vectors.dims();
    let mut order = vec![NO_ROW; positions];
    let mut rows = vec![0.0; positions * dims];
    let to = (&mut order[..], &mut rows[..]);
    dispatch::<Base, _>(isa, Scatter { vectors, buckets: &buckets, ends: &mut ends, to });
    drop(buckets);
    let mut firsts = Vec::with_capacity(counts.len() + 1);
    let mut scratch = Scratch::new(dims);
    for (&end, &count) in ends.iter().zip(&counts).filter(|&(_, &count)| count > 0) {
        let begin = end - count;
        let order = &mut order[begin..][..count.next_multiple_of(LANES)];
        let rows = &mut rows[begin * dims..][..order.len() * dims];
        if count > BUCKET_MAX {
            split_large(dims, &mut order[..count], rows);
        }
        for at in (0..count).step_by(BUCKET_MAX) {
            let count = (count - at).min(BUCKET_MAX);
            firsts.push(as_u32((begin + at) / LANES));
            let (order, rows) = (&mut order[at..][..count], &mut rows[at * dims..][..count * dims]);
            dispatch::<Base, _>(isa, OrderBucket { dims, order, rows, scratch: &mut scratch });
        }
        for position in count..order.len() {
            rows.copy_within((count - 1) * dims..count * dims, position * dims);
        }
    }
    firsts.push(as_u32(positions / LANES));
    Ordered { order, rows, firsts }
}

/// Moves rows into their buckets, of which `ends` are the ends so far.
struct Scatter<'a> {
    vectors: Vectors<'a>,
    buckets: &'a [u16],
    ends: &'a mut [usize],
    to: (&'a mut [u32], &'a mut [f32]),
}

impl Call for Scatter<'_> {
    type Output = ();
}

impl<L> RunOn<L> for Scatter<'_> {
    #[inline(always)]
    fn run_on(self, _: L) {
        by_dims!(self.vectors.dims(), scatter(self));
    }
}

#[inline(always)]
fn scatter<const D: usize>(call: Scatter<'_>) {
    let Scatter { vectors, buckets, ends, to: (order, rows) } = call;
    let dims = if D == 0 { vectors.dims() } else { D };
    let places = (0..).zip(buckets).zip(vectors.values().chunks_exact(dims));
    for ((row, &bucket), values) in places {
        let end = &mut ends[bucket as usize];
        order[*end] = row;
        rows[*end * dims..][..dims].copy_from_slice(values);
        *end += 1;
    }
}

/// A kd tree of splits, as a heap from index 1.
struct Tree {
    levels: u32,
    dims: Vec<u32>,
    splits: Vec<f32>,
}

impl Tree {
    /// The tree of a sample, and the bucket of each row.
    fn of(isa: Isa, vectors: Vectors<'_>) -> (Self, Vec<u16>) {
        let len = vectors.len();
        let levels = len.div_ceil(BUCKET_MAX).next_power_of_two().ilog2().min(TREE_LEVELS_MAX);
        let nodes = 1 << levels;
        let mut tree = Self { levels, dims: vec![0; nodes], splits: vec![0.0; nodes] };
        let mut buckets = vec![0; len];
        if levels > 0 {
            let samples = (nodes * SAMPLES_A_BUCKET).min(SAMPLE_MAX).min(len / 2);
            let step = len / samples;
            // One row of each stretch, not always the same one: rows may come in periods.
            let row = |at: usize| at * step + (at.wrapping_mul(0x9E37_79B9) >> 16) % step;
            let rows: Vec<f32> =
                (0..samples).flat_map(|at| vectors.row(row(at))).copied().collect();
            let mut scratch = Scratch::new(vectors.dims());
            let (rows, dims, tree) = (&rows[..], vectors.dims(), &mut tree);
            dispatch::<Base, _>(isa, PlantTree { dims, rows, tree, scratch: &mut scratch });
            dispatch::<Base, _>(isa, FindBuckets { vectors, tree, buckets: &mut buckets });
        }
        (tree, buckets)
    }
}

/// Computes the splits of a tree from a sample.
struct PlantTree<'a> {
    dims: usize,
    rows: &'a [f32],
    tree: &'a mut Tree,
    scratch: &'a mut Scratch,
}

impl Call for PlantTree<'_> {
    type Output = ();
}

impl<L: Filter> RunOn<L> for PlantTree<'_> {
    #[inline(always)]
    fn run_on(self, level: L) {
        let Self { dims, rows, tree, scratch } = self;
        let len = rows.len() / dims;
        scratch.number(len);
        // The points of each node of a level, in the order of the level.
        let mut nodes = Vec::from_iter(std::iter::once(0..len));
        for depth in 0..tree.levels {
            let mut children = Vec::with_capacity(2 * nodes.len());
            for (node, points) in ((1 << depth)..).zip(nodes) {
                let middle = points.start + points.len() / 2;
                if points.len() > 1
                    && let Some(dim) = scratch.split::<0>(level, dims, rows, points.clone(), middle)
                {
                    let keys = &scratch.keys[points.start..middle];
                    let greatest = keys.iter().max().expect("half of several points");
                    let row = (greatest & INDEX_MASK) as usize;
                    tree.dims[node] = as_u32(dim);
                    tree.splits[node] = rows[row * dims + dim];
                }
                children.extend([points.start..middle, middle..points.end]);
            }
            nodes = children;
        }
    }
}

/// Finds the bucket of each row.
struct FindBuckets<'a> {
    vectors: Vectors<'a>,
    tree: &'a Tree,
    buckets: &'a mut [u16],
}

impl Call for FindBuckets<'_> {
    type Output = ();
}

impl<L> RunOn<L> for FindBuckets<'_> {
    #[inline(always)]
    fn run_on(self, _: L) {
        by_dims!(self.vectors.dims(), find_buckets(self));
    }
}

#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "at most 12 levels")]
fn find_buckets<const D: usize>(call: FindBuckets<'_>) {
    let dims = if D == 0 { call.vectors.dims() } else { D };
    let (nodes, splits) = (&call.tree.dims[..], &call.tree.splits[..nodes_of(call.tree)]);
    let nodes = &nodes[..splits.len()];
    // Several rows at a time: each waits for its loads, level by level.
    const ROWS: usize = 8;
    let chunks = call.vectors.values().chunks(ROWS * dims);
    for (rows, buckets) in chunks.zip(call.buckets.chunks_mut(ROWS)) {
        let mut found = [1_usize; ROWS];
        for _ in 0..call.tree.levels {
            for (row, node) in found[..buckets.len()].iter_mut().enumerate() {
                let value = rows[row * dims + nodes[*node] as usize];
                *node = 2 * *node + usize::from(value > splits[*node]);
            }
        }
        for (bucket, node) in buckets.iter_mut().zip(found) {
            *bucket = (node - splits.len()) as u16;
        }
    }
}

fn nodes_of(tree: &Tree) -> usize {
    1 << tree.levels
}

/// Splits a bucket that is too large, exactly, until the parts are not.
fn split_large(dims: usize, order: &mut [u32], rows: &mut [f32]) {
    #[expect(clippy::cast_possible_truncation, reason = "the lower half is the number of a point")]
    let point = |key: u64| key as u32 as usize;
    let mut keys: Vec<u64> = (0..order.len() as u64).collect();
    let mut ranges = Vec::from_iter(std::iter::once(0..order.len()));
    while let Some(range) = ranges.pop() {
        if range.len() <= BUCKET_MAX {
            continue;
        }
        let middle = range.start + range.len().next_power_of_two() / 2;
        let keys = &mut keys[range.clone()];
        let (low, high) = extent(dims, rows, keys.iter().map(|&key| point(key)));
        let (dim, side) = widest(&low, &high);
        if side == 0.0 {
            continue;
        }
        for key in keys.iter_mut() {
            let bits = rows[point(*key) * dims + dim].to_bits();
            // As a number whose order is that of the float.
            let ordered = if bits >> 31 == 1 { !bits } else { bits | 1 << 31 };
            *key = *key & u64::from(u32::MAX) | u64::from(ordered) << 32;
        }
        keys.select_nth_unstable(middle - range.start);
        ranges.extend([range.start..middle, middle..range.end]);
    }
    let (from, from_rows) = (order.to_vec(), rows.to_vec());
    for (at, key) in keys.iter().enumerate() {
        let point = point(*key);
        order[at] = from[point];
        rows[at * dims..][..dims].copy_from_slice(&from_rows[point * dims..][..dims]);
    }
}

/// Brings the points of a bucket into kd order.
struct OrderBucket<'a> {
    dims: usize,
    order: &'a mut [u32],
    rows: &'a mut [f32],
    scratch: &'a mut Scratch,
}

impl Call for OrderBucket<'_> {
    type Output = ();
}

impl<L: Filter> RunOn<L> for OrderBucket<'_> {
    #[inline(always)]
    fn run_on(self, level: L) {
        by_dims!(self.dims, order_bucket(level, self));
    }
}

#[inline(always)]
fn order_bucket<const D: usize>(level: impl Filter, call: OrderBucket<'_>) {
    let OrderBucket { dims, order, rows, scratch } = call;
    let dims = if D == 0 { dims } else { D };
    scratch.number(order.len());
    let mut ranges = std::mem::take(&mut scratch.ranges);
    ranges.push(0..order.len());
    while let Some(range) = ranges.pop() {
        let leaves = range.len().div_ceil(LANES);
        if leaves > 1 {
            // The left part is a power of two of leaves, so that nodes of the directory are
            // nodes of this tree.
            let middle = range.start + leaves.next_power_of_two() / 2 * LANES;
            if scratch.split::<D>(level, dims, rows, range.clone(), middle).is_some() {
                ranges.extend([middle..range.end, range.start..middle]);
            }
        }
    }
    scratch.ranges = ranges;
    scratch.move_points(dims, order, rows);
}

/// Memory for the order of a bucket.
struct Scratch {
    /// The number of a point, and above it a coordinate.
    keys: Vec<u32>,
    /// For partitions.
    others: Vec<u32>,
    low: Vec<f32>,
    high: Vec<f32>,
    ranges: Vec<Range<usize>>,
    order: Vec<u32>,
    rows: Vec<f32>,
}

impl Scratch {
    fn new(dims: usize) -> Self {
        Self {
            keys: Vec::new(),
            others: Vec::new(),
            low: vec![0.0; dims],
            high: vec![0.0; dims],
            ranges: Vec::new(),
            order: Vec::new(),
            rows: Vec::new(),
        }
    }

    /// Numbers points in their order.
    fn number(&mut self, len: usize) {
        self.keys.clear();
        self.keys.extend(0..as_u32(len));
        self.others.resize(len + 4 * LANES, 0);
    }

    /// Reorders the points of a range so that the ones before `middle` are the smaller ones in the
    /// widest dimension, which is returned; none if all are equal.
    #[inline(always)]
    fn split<const D: usize>(
        &mut self,
        level: impl Filter,
        dims: usize,
        rows: &[f32],
        range: Range<usize>,
        middle: usize,
    ) -> Option<usize> {
        let rank = middle - range.start;
        let keys = &mut self.keys[range];
        let point = |key: u32| (key & INDEX_MASK) as usize;
        let step = (keys.len() / EXTENT_POINTS).max(1);
        let points = || keys.iter().step_by(step).map(|&key| point(key));
        let (low, high) = (&mut self.low[..dims], &mut self.high[..dims]);
        if D == 0 {
            low.fill(f32::MAX);
            high.fill(f32::MIN);
            widen(low, high, rows, points());
        } else {
            // In registers, as there are few dimensions.
            let (mut lows, mut highs) = ([f32::MAX; D], [f32::MIN; D]);
            widen(&mut lows, &mut highs, rows, points());
            low.copy_from_slice(&lows);
            high.copy_from_slice(&highs);
        }
        let (mut dim, mut side) = widest(low, high);
        if side == 0.0 && step > 1 {
            let (low, high) = extent(dims, rows, keys.iter().map(|&key| point(key)));
            (dim, side) = widest(&low, &high);
        }
        if side == 0.0 {
            return None;
        }
        // Halves, as the extent of float32 may exceed its greatest number.
        let (low, scale) = (low[dim] * 0.5, 32_767.0 / side);
        let (lines, rest) = keys.as_chunks_mut();
        for line in lines {
            let values = std::array::from_fn(
                #[inline(always)]
                |lane| rows[point(line[lane]) * dims + dim],
            );
            set_values(line, &values, low, scale);
        }
        let mut line = [0; LANES];
        line[..rest.len()].copy_from_slice(rest);
        let mut values = [0.0; LANES];
        for (value, &key) in values.iter_mut().zip(&*rest) {
            *value = rows[point(key) * dims + dim];
        }
        set_values(&mut line, &values, low, scale);
        rest.copy_from_slice(&line[..rest.len()]);
        select(level, keys, rank, &mut self.others);
        Some(dim)
    }

    /// Moves points to their places.
    #[inline(always)]
    fn move_points(&mut self, dims: usize, order: &mut [u32], rows: &mut [f32]) {
        self.order.clear();
        self.order.extend_from_slice(order);
        self.rows.clear();
        self.rows.extend_from_slice(rows);
        let places = order.iter_mut().zip(rows.chunks_exact_mut(dims));
        for ((row, values), &key) in places.zip(&self.keys) {
            let point = (key & INDEX_MASK) as usize;
            *row = self.order[point];
            values.copy_from_slice(&self.rows[point * dims..][..dims]);
        }
    }
}

/// Puts values, in 15 bits, above the numbers of points.
#[inline(always)]
fn set_values(keys: &mut [u32; LANES], values: &[f32; LANES], low: f32, scale: f32) {
    // Among floats from 2^23 to 2^24 on, the lower bits are a whole number: unlike a conversion, an
    // addition needs no test of numbers that do not fit.
    const WHOLE: f32 = 8_388_608.0;
    for lane in 0..LANES {
        let value = (values[lane] * 0.5 - low) * scale;
        // Comparisons that vectors have, and that make no number zero.
        let value = if value > 0.0 { value } else { 0.0 };
        let value = if value < 32_767.0 { value } else { 32_767.0 };
        let number = (value + WHOLE).to_bits() & 0x7fff;
        keys[lane] = number << INDEX_BITS | keys[lane] & INDEX_MASK;
    }
}

/// The extent of points.
fn extent(dims: usize, rows: &[f32], points: impl Iterator<Item = usize>) -> (Vec<f32>, Vec<f32>) {
    let (mut low, mut high) = (vec![f32::MAX; dims], vec![f32::MIN; dims]);
    widen(&mut low, &mut high, rows, points);
    (low, high)
}

/// Widens an extent to points.
#[inline(always)]
fn widen(low: &mut [f32], high: &mut [f32], rows: &[f32], points: impl Iterator<Item = usize>) {
    let dims = low.len();
    for point in points {
        let row = &rows[point * dims..][..dims];
        for dim in 0..dims {
            low[dim] = if row[dim] < low[dim] { row[dim] } else { low[dim] };
            high[dim] = if row[dim] > high[dim] { row[dim] } else { high[dim] };
        }
    }
}

/// The dimension of the longest side, and half of its length.
#[inline(always)]
fn widest(low: &[f32], high: &[f32]) -> (usize, f32) {
    let mut widest = (0, 0.0);
    for (dim, (low, high)) in low.iter().zip(high).enumerate() {
        let side = high * 0.5 - low * 0.5;
        if side > widest.1 {
            widest = (dim, side);
        }
    }
    widest
}
