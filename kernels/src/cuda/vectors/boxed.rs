//! Vectors of few dimensions in order, with boxes over 32, 256 and 8,192 vectors.
//!
//! ```text
//! values ─► sample ─► cells ─► keys ─► sort, three passes of 8 bits ─► rows, boxes ─► boxes of boxes
//! ```
//!
//! All steps are kernels on one stream (`kernels/cuda/vector_order.cuh`); the host waits for no
//! step.
//!
//! # The filter loses no pair
//!
//! Two boxes are compared by a float32 sum of squares of gaps, which is at most `bound` if a pair
//! of their vectors matches (`question.rs`): each gap is at most the difference of the coordinates,
//! and rounding is monotone.
//!
//! A frame is a box: the box of a sample of the right vectors, whose halves are made once, or,
//! where that box is too coarse for epsilon, the box of a warp's left vectors with 1.5 epsilon
//! around it. Let o be the centre of the frame, K half its width in each dimension, and s a power
//! of two that makes the largest K at most 32. A vector x becomes y = (x - o) s, clamped to K s.
//! The clamp is the projection to a convex set and s scales all dimensions alike, so the distance
//! of two such y is at most s times the distance of the vectors, even if o and K are not exact.
//! Then, with k the clamp as a half (float16):
//!
//! 1. `fma` rounds y once, and conversion to a half rounds it again; clamping afterwards gives the
//!    same, because rounding is monotone and k is a half. A coordinate moves by at most
//!    k (2^-11 + 2^-22) + 2^-24 = m: half a unit in the last place of a half is 2^-11 of the value,
//!    or 2^-25 below the least normal half. So the distance of two rounded vectors h exceeds the
//!    distance of the y by at most 2 M, where M^2 is the sum of all m^2.
//! 2. |h - g|^2 is the sum of h^2, of g^2 and of -2 h g. The products -2 h g are exact, and the sum
//!    of h^2 is rounded by less than 2^-20 of the sum of k^2. In the frame of the warp, each g^2 is
//!    rounded to a half, by at most 2^-11 k^2 + 2^-25. In the frame of the sample their sum has two
//!    halves, and the second half is rounded by at most 2^-22 of the sum, and 2^-25.
//! 3. Tensor cores add exact products. Their sums are off by less than 2^-18 of the sum of all
//!    absolute terms, which is at most four times the sum of k^2, and the threshold. (Tensor cores
//!    align terms to the largest term and cut off bits below 2^-23 of it or less: Fasi, Higham,
//!    Mikaitis, Pranesh, *Numerical Behavior of NVIDIA Tensor Cores*, PeerJ CS 2021. The bound has
//!    room for 32 times this error for each of 32 terms.)
//!
//! So the sum of a match is at most (reach s + 2 M)^2 (1 + 2^-14) and the sum of
//! k^2 (2^-11 + 2^-14) + 2^-23 in the frame of the warp, or of 2^-15 k^2 + 2^-23 in the frame of
//! the sample: the threshold. The threshold is subtracted at the start, so a negative sum, or a
//! negative infinity, says "maybe". Where s cannot be large enough, since values or epsilon are
//! tiny, terms of 2^-24 make the threshold pass more pairs, never fewer.

#![expect(unsafe_code, reason = "kernels that make the order")]

use std::sync::Arc;

use super::launch::{BOX_DIMS_MAX, LEAF, ORDER, PLAN};
use super::question::Question;
use crate::cuda::driver::{
    DeviceBuffer, DeviceError, DevicePointer, Launch, Memory, Properties, Stream,
};
use crate::cuda::flights::{Kernels, Primitive};

/// Vectors of a group, which a block arranges.
const GROUP: usize = 256;
const LEAVES: usize = GROUP / LEAF;
/// Groups of a super-group.
const GROUPS: usize = 32;
/// Keys that a block sorts, and their digits.
const SORT_TILE: usize = 4096;
const DIGITS: usize = 256;
/// Shifts of the passes over a key of 24 bits.
const SHIFTS: [u32; 3] = [0, 8, 16];
/// Words of `Plan` of `vector_order.cuh`.
const PLAN_WORDS: usize = 1 + 6 * BOX_DIMS_MAX;

/// Shared memory of kernels.
const PLAN_BYTES: u32 = 2 * 16 * 16 * 4;
const COUNT_BYTES: u32 = 256 * 4;
const SCAN_BYTES: u32 = 4 * 256 * 4;
const MOVE_BYTES: u32 = (2 + 8) * 256 * 4 + 4_096 * 8;

const _: () = assert!(BOX_DIMS_MAX == 16, "as the shared memory of `vectors_plan`");

/// Numbers of a row: whole steps of a product.
fn row_len(dims: usize) -> usize {
    dims.next_multiple_of(8)
}

/// Room for vectors in order.
#[derive(Debug)]
pub(super) struct BoxedRoom {
    rows: DeviceBuffer<f32>,
    /// Rows as halves, with norms: as many words as numbers.
    halves: DeviceBuffer<u32>,
    /// Keys and vectors, before and after a pass.
    keys: [DeviceBuffer<u32>; 2],
    ids: [DeviceBuffer<u32>; 2],
    counts: DeviceBuffer<u32>,
    totals: DeviceBuffer<u32>,
    plan: DeviceBuffer<u32>,
    boxes: [DeviceBuffer<f32>; 3],
}

/// The vectors and boxes as an argument of kernels: `Boxed` of `vector_order.cuh`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(super) struct BoxedArgument {
    rows: DevicePointer<f32>,
    halves: DevicePointer<u32>,
    plan: DevicePointer<u32>,
    ids: DevicePointer<u32>,
    leaf_boxes: DevicePointer<f32>,
    group_boxes: DevicePointer<f32>,
    super_boxes: DevicePointer<f32>,
    len: u32,
    groups: u32,
}

/// Keys and vectors as an argument of kernels: `Sorted` of `vector_order.cuh`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct SortedArgument {
    keys: DevicePointer<u32>,
    ids: DevicePointer<u32>,
}

/// Elements of the buffers for `len` vectors of `dims` dimensions: floats, then words.
fn elements(len: usize, dims: usize) -> ([usize; 4], [usize; 3]) {
    let len = len.max(1);
    let groups = len.div_ceil(GROUP);
    let ends = 2 * row_len(dims);
    let floats = [
        groups * GROUP * row_len(dims),
        groups * LEAVES * ends,
        groups * ends,
        groups.div_ceil(GROUPS) * ends,
    ];
    (floats, [len, len.div_ceil(SORT_TILE) * DIGITS, PLAN_WORDS])
}

impl BoxedRoom {
    pub(super) fn new(memory: &Arc<Memory>, len: usize, dims: usize) -> Result<Self, DeviceError> {
        let ([rows, leaves, groups, supers], [keys, counts, plan]) = elements(len, dims);
        let words = |len| memory.device_buffer(len);
        Ok(Self {
            rows: memory.device_buffer(rows)?,
            halves: words(rows)?,
            keys: [words(keys)?, words(keys)?],
            ids: [words(keys)?, words(keys)?],
            counts: words(counts)?,
            totals: words(DIGITS)?,
            plan: words(plan)?,
            boxes: [
                memory.device_buffer(leaves)?,
                memory.device_buffer(groups)?,
                memory.device_buffer(supers)?,
            ],
        })
    }

    /// The bytes of the room for `len` vectors of `dims` dimensions.
    pub(super) fn bytes(len: usize, dims: usize) -> usize {
        let (floats, [keys, counts, plan]) = elements(len, dims);
        let words = [floats[0], keys, keys, keys, keys, counts, DIGITS, plan];
        let all = floats.iter().chain(&words);
        all.map(|len| len * size_of::<u32>()).sum()
    }

    /// Queues all steps for `vectors`, which are on the device when the stream begins these steps.
    pub(super) fn queue<P: Primitive, V: Copy>(
        &self,
        kernels: &Kernels<P>,
        stream: &Stream,
        vectors: V,
        [len, dims]: [usize; 2],
        question: &Question,
    ) -> Result<(), DeviceError> {
        if len == 0 {
            return Ok(());
        }
        let steps = Steps { room: self, kernels, stream, len, dims };
        steps.make_keys(vectors, question)?;
        steps.sort()?;
        steps.arrange(vectors)
    }

    pub(super) fn argument(&self, len: usize) -> BoxedArgument {
        let [leaf_boxes, group_boxes, super_boxes] = self.boxes.each_ref().map(|b| b.pointer());
        BoxedArgument {
            rows: self.rows.pointer(),
            halves: self.halves.pointer(),
            plan: self.plan.pointer(),
            // Three passes end in the second buffer.
            ids: self.ids[1].pointer(),
            leaf_boxes,
            group_boxes,
            super_boxes,
            len: narrow(len),
            groups: narrow(len.div_ceil(GROUP)),
        }
    }
}

fn narrow(len: usize) -> u32 {
    u32::try_from(len).expect("at most 2^31 vectors")
}

/// The steps of an order, for a stream.
struct Steps<'a, P: Primitive> {
    room: &'a BoxedRoom,
    kernels: &'a Kernels<P>,
    stream: &'a Stream,
    len: usize,
    dims: usize,
}

impl<P: Primitive> Steps<'_, P> {
    fn device(&self) -> &Properties {
        self.kernels.device().properties()
    }

    /// A launch of exactly these blocks.
    fn launch(&self, kernel: &'static str, blocks: usize, shared_bytes: u32) -> Launch {
        Launch { kernel, blocks: narrow(blocks), threads: ORDER.threads(), shared_bytes }
    }

    fn make_keys<V: Copy>(&self, vectors: V, question: &Question) -> Result<(), DeviceError> {
        let (plan, keys) = (self.room.plan.pointer(), self.room.keys[0].pointer());
        let launch = PLAN.launch("vectors_plan", self.device(), 1, PLAN_BYTES);
        let arguments = (vectors, question.reach, plan);
        // SAFETY: the arguments are of the kernel's types, and the buffers of `room` are as long as
        // the vectors need; the caller keeps the buffers until the stream is done. The same holds
        // below.
        unsafe { self.kernels.queue(self.stream, launch, arguments) }?;
        let launch = self.launch("vectors_keys", self.len.div_ceil(GROUP), 0);
        // SAFETY: as above.
        unsafe { self.kernels.queue(self.stream, launch, (vectors, plan, keys)) }
    }

    fn sort(&self) -> Result<(), DeviceError> {
        let BoxedRoom { keys, ids, counts, totals, .. } = self.room;
        let (counts, totals, len) = (counts.pointer(), totals.pointer(), narrow(self.len));
        let tiles = self.len.div_ceil(SORT_TILE);
        for (pass, shift) in SHIFTS.into_iter().enumerate() {
            let [from, to] = [pass % 2, (pass + 1) % 2];
            let side = |side: usize| SortedArgument {
                keys: keys[side].pointer(),
                ids: ids[side].pointer(),
            };
            // The first pass reads vectors in their original order.
            let unsorted = SortedArgument { ids: DevicePointer::NULL, ..side(from) };
            let source = if pass == 0 { unsorted } else { side(from) };
            let launch = self.launch("vectors_count", tiles, COUNT_BYTES);
            // SAFETY: as in `make_keys`; there are counts for `tiles` tiles.
            unsafe { self.kernels.queue(self.stream, launch, (source.keys, len, shift, counts)) }?;
            let launch = self.launch("vectors_scan", DIGITS, SCAN_BYTES);
            // SAFETY: as above.
            unsafe { self.kernels.queue(self.stream, launch, (counts, narrow(tiles), totals)) }?;
            let launch = self.launch("vectors_move", tiles, MOVE_BYTES);
            let arguments = (source, side(to), len, shift, counts, totals);
            // SAFETY: as above; counts and totals have a place for each key.
            unsafe { self.kernels.queue(self.stream, launch, arguments) }?;
        }
        Ok(())
    }

    fn arrange<V: Copy>(&self, vectors: V) -> Result<(), DeviceError> {
        let row_len = row_len(self.dims);
        let name = if row_len == 8 { "vectors_arrange_8" } else { "vectors_arrange_16" };
        let groups = self.len.div_ceil(GROUP);
        let ends = narrow(2 * row_len);
        let boxed = self.room.argument(self.len);
        let launch = self.launch(name, groups, (ends * 8 + narrow(row_len * GROUP)) * 4);
        // SAFETY: as in `make_keys`; there is room for the rows of whole groups.
        unsafe { self.kernels.queue(self.stream, launch, (vectors, boxed)) }?;
        let warps = groups.div_ceil(GROUPS);
        let blocks = narrow(warps.div_ceil(8));
        let launch = ORDER.launch("vectors_supers", self.device(), blocks, 0);
        // SAFETY: as above.
        unsafe { self.kernels.queue(self.stream, launch, (boxed, ends)) }
    }
}
