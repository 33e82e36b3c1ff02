//! The kd order of points: halves along the widest dimension, again and again, down to leaves.
//!
//! ```text
//! rows ─► sample, its kd tree ─► a bucket for each row ─► rows scattered into buckets
//!         (once)                 (one pass)               (one pass)        │
//!                    kd order of a bucket, in the cache, and rows moved ◄───┘
//! ```
//!
//! A bucket has at most [`BUCKET_MAX`] points, and splits inside a bucket are exact, so that all
//! its leaves but the last are full. Any order is correct; a bad order only costs time. So the keys
//! of splits are coordinates in 15 bits of the extent of a node, and the extent is the extent of a
//! sample. Buckets are independent of each other: one thread orders a run of buckets.

use std::ops::Range;

use super::select::select;
use crate::Isa;
use crate::simd::{Base, RunOn, dispatch};
use crate::vectors::levels::{Filter, LANES, as_u32};
use crate::vectors::rows::{Vectors, by_dims};

/// Maximum points of a bucket, a power of two.
pub(super) const BUCKET_MAX: usize = 4096;
/// Number of points of a node whose extent is taken.
const EXTENT_POINTS: usize = 32;
/// Bits of the number of a point in a bucket or a sample.
const INDEX_BITS: u32 = 16;
pub(super) const INDEX_MASK: u32 = (1 << INDEX_BITS) - 1;
const _: () = assert!(BUCKET_MAX <= 1 << INDEX_BITS);
/// Rows whose buckets are looked at before they are moved.
const SCATTERED: usize = 1024;

/// The row of a position that has no point.
pub(in crate::vectors) const NO_ROW: u32 = u32::MAX;

/// Consecutive buckets whose points are to be brought into kd order. Buckets begin at multiples of
/// sixteen; positions after the points of a bucket repeat its last point.
pub(in crate::vectors) struct Run<'a> {
    /// All rows, and the bucket of each.
    pub(in crate::vectors) vectors: Vectors<'a>,
    pub(in crate::vectors) buckets: &'a [u16],
    /// The first bucket of the run, and the number of points of each bucket.
    pub(in crate::vectors) first: u16,
    pub(in crate::vectors) counts: &'a [u32],
    /// The row in the input of each position, or [`NO_ROW`].
    pub(in crate::vectors) order: &'a mut [u32],
    /// The coordinates of each position.
    pub(in crate::vectors) rows: &'a mut [f32],
}

/// Positions of a bucket of `count` points.
pub(in crate::vectors) fn positions_of(count: u32) -> usize {
    (count as usize).next_multiple_of(LANES)
}

impl Run<'_> {
    /// Brings the points of all buckets into order. Returns the first leaf of each bucket, counted
    /// from the first leaf of the run; a bucket that was too large is now several buckets.
    pub(in crate::vectors) fn order(self, isa: Isa) -> Vec<u32> {
        let Run { vectors, buckets, first, counts, order, rows } = self;
        let dims = vectors.dims();
        let mut ends = Vec::with_capacity(counts.len());
        let mut positions = 0;
        for &count in counts {
            ends.push(positions);
            positions += positions_of(count);
        }
        order.fill(NO_ROW);
        let to = (&mut order[..], &mut rows[..]);
        dispatch::<Base, _>(isa, Scatter { vectors, buckets, first, ends: &mut ends, to });
        let mut firsts = Vec::with_capacity(counts.len());
        let mut scratch = Scratch::new(dims);
        for (&end, &count) in ends.iter().zip(counts).filter(|&(_, &count)| count > 0) {
            let (begin, positions) = (end - count as usize, positions_of(count));
            let count = count as usize;
            let order = &mut order[begin..][..positions];
            let rows = &mut rows[begin * dims..][..positions * dims];
            if count > BUCKET_MAX {
                split_large(dims, &mut order[..count], rows);
            }
            for at in (0..count).step_by(BUCKET_MAX) {
                let count = (count - at).min(BUCKET_MAX);
                firsts.push(as_u32((begin + at) / LANES));
                let order = &mut order[at..][..count];
                let rows = &mut rows[at * dims..][..count * dims];
                dispatch::<Base, _>(isa, OrderBucket { dims, order, rows, scratch: &mut scratch });
            }
            for position in count..positions {
                rows.copy_within((count - 1) * dims..count * dims, position * dims);
            }
        }
        firsts
    }
}

/// Moves rows of a run into their buckets; `ends` are the ends of the buckets so far.
struct Scatter<'a> {
    vectors: Vectors<'a>,
    buckets: &'a [u16],
    first: u16,
    ends: &'a mut [usize],
    to: (&'a mut [u32], &'a mut [f32]),
}

impl<L> RunOn<L> for Scatter<'_> {
    #[inline(always)]
    fn run_on(self, _: L) {
        by_dims!(self.vectors.dims(), scatter(self));
    }
}

#[inline(always)]
fn scatter<const D: usize>(call: Scatter<'_>) {
    let Scatter { vectors, buckets, first, ends, to: (order, rows) } = call;
    let dims = if D == 0 { vectors.dims() } else { D };
    let mut chosen = [0; SCATTERED];
    let blocks = buckets.chunks(SCATTERED).zip(vectors.values().chunks(SCATTERED * dims));
    for (begin, (buckets, values)) in (0..).step_by(SCATTERED).zip(blocks) {
        // Rows are chosen without a branch, since the processor could not predict it.
        let mut len = 0;
        for (at, bucket) in buckets.iter().enumerate() {
            chosen[len] = at;
            len += usize::from(usize::from(bucket.wrapping_sub(first)) < ends.len());
        }
        for &at in &chosen[..len] {
            let end = &mut ends[usize::from(buckets[at] - first)];
            order[*end] = begin + as_u32(at);
            rows[*end * dims..][..dims].copy_from_slice(&values[at * dims..][..dims]);
            *end += 1;
        }
    }
}

/// Splits a bucket that is too large, exactly, until no part is too large.
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
            // The bits become a number that sorts as the float does.
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
pub(super) struct Scratch {
    /// The number of a point in the low bits, and a coordinate in the high bits.
    pub(super) keys: Vec<u32>,
    /// For partitions.
    others: Vec<u32>,
    low: Vec<f32>,
    high: Vec<f32>,
    ranges: Vec<Range<usize>>,
    order: Vec<u32>,
    rows: Vec<f32>,
}

impl Scratch {
    pub(in crate::vectors) fn new(dims: usize) -> Self {
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
    pub(super) fn number(&mut self, len: usize) {
        self.keys.clear();
        self.keys.extend(0..as_u32(len));
        self.others.resize(len + 4 * LANES, 0);
    }

    /// Reorders the points of a range so that the points before `middle` are smaller in the widest
    /// dimension. Returns that dimension, or none if all points are equal.
    #[inline(always)]
    pub(super) fn split<const D: usize>(
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
            // A few dimensions stay in registers.
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
        // Coordinates are halved, as the extent of float32 may exceed the greatest float32.
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
        // These comparisons are vector instructions, and turn a NaN into zero.
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
