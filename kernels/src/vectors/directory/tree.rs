//! The kd tree of a sample: its buckets hold neighbours.

use super::order::{BUCKET_MAX, INDEX_MASK, Scratch};
use crate::Isa;
use crate::simd::{Base, RunOn, dispatch};
use crate::vectors::levels::{Filter, as_u32};
use crate::vectors::rows::{Vectors, by_dims};

/// Maximum levels of the tree of a sample, and maximum points of the sample.
const TREE_LEVELS_MAX: u32 = 12;
const SAMPLE_MAX: usize = 1 << 16;
const _: () = assert!(SAMPLE_MAX <= INDEX_MASK as usize + 1);
/// Points of a sample for each bucket; the size of buckets varies by the reciprocal of the root of
/// this number.
const SAMPLES_A_BUCKET: usize = 256;

/// A kd tree of splits, as a heap from index 1.
#[derive(Debug)]
pub(in crate::vectors) struct Tree {
    levels: u32,
    dims: Vec<u32>,
    splits: Vec<f32>,
}

impl Tree {
    /// The tree of a sample.
    pub(in crate::vectors) fn of(isa: Isa, vectors: Vectors<'_>) -> Self {
        let len = vectors.len();
        let levels = len.div_ceil(BUCKET_MAX).next_power_of_two().ilog2().min(TREE_LEVELS_MAX);
        let nodes = 1 << levels;
        let mut tree = Self { levels, dims: vec![0; nodes], splits: vec![0.0; nodes] };
        if levels > 0 {
            let samples = (nodes * SAMPLES_A_BUCKET).min(SAMPLE_MAX).min(len / 2);
            let step = len / samples;
            // Each stretch gives one row, at a changing place, since rows may be periodic.
            let row = |at: usize| at * step + (at.wrapping_mul(0x9E37_79B9) >> 16) % step;
            let rows: Vec<f32> =
                (0..samples).flat_map(|at| vectors.row(row(at))).copied().collect();
            let mut scratch = Scratch::new(vectors.dims());
            let (rows, dims, tree) = (&rows[..], vectors.dims(), &mut tree);
            dispatch::<Base, _>(isa, PlantTree { dims, rows, tree, scratch: &mut scratch });
        }
        tree
    }

    /// Number of buckets.
    pub(super) fn buckets(&self) -> usize {
        1 << self.levels
    }

    /// Finds the bucket of each row, and returns the number of rows of each bucket.
    pub(in crate::vectors) fn find(
        &self,
        isa: Isa,
        vectors: Vectors<'_>,
        buckets: &mut [u16],
    ) -> Vec<u32> {
        dispatch::<Base, _>(isa, FindBuckets { vectors, tree: self, buckets });
        let mut counts = vec![0; self.buckets()];
        for &bucket in &*buckets {
            counts[usize::from(bucket)] += 1;
        }
        counts
    }
}

/// Computes the splits of a tree from a sample.
struct PlantTree<'a> {
    dims: usize,
    rows: &'a [f32],
    tree: &'a mut Tree,
    scratch: &'a mut Scratch,
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
    let (nodes, splits) = (&call.tree.dims[..], &call.tree.splits[..call.tree.buckets()]);
    let nodes = &nodes[..splits.len()];
    // Several rows descend together, level by level, so that their loads overlap.
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
