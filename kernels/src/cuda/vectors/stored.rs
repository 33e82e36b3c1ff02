//! Vectors in a device's memory, prepared for a method.

#![expect(unsafe_code, reason = "copies that go on while the host does")]

use std::sync::Arc;

use super::DIMS_MAX;
use super::boxed::{BoxedArgument, BoxedRoom};
use super::launch::{LEAF, LEAVES_OF_SUPER, Method, Policy, WARP_LEN, tile_len};
use super::pair::JoinUnit;
use super::published::{Directory, DirectoryArgument, DirectoryRoom};
use super::question::{Answer, Question};
use super::tiled::{self, TiledArgument, TiledRoom};
use crate::cuda::driver::{DeviceBuffer, DeviceError, DevicePointer, Event, Memory, Stream};
use crate::cuda::flights::{Kernels, Primitive};

/// Positions have 32 bits.
const LEN_MAX: usize = 1 << 31;

/// The largest number of vectors, their dimensions, and the method for which they are prepared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VectorLimits {
    /// Vectors.
    pub len: usize,
    /// Dimensions of each vector, 1 to [`DIMS_MAX`].
    pub dims: usize,
    /// The method.
    pub method: Method,
}

impl VectorLimits {
    /// The bytes of the vectors and of all data that the device makes from them, in the device's
    /// memory.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let Self { len, dims, method } = *self;
        let values = (len * dims).max(1) * size_of::<f32>();
        values
            + match method {
                Method::NestedLoop => 0,
                Method::Directory => DirectoryRoom::bytes(len) + len.max(1) * size_of::<u32>(),
                Method::Boxes => BoxedRoom::bytes(len, dims),
                Method::Tiles => TiledRoom::bytes(len, dims),
            }
    }

    fn check(&self) {
        let Self { len, dims, method } = *self;
        assert!((1..=DIMS_MAX).contains(&dims), "{dims} dimensions; needed are 1 to {DIMS_MAX}");
        assert!(method.takes(dims), "{method} cannot join vectors of {dims} dimensions");
        assert!(len <= LEN_MAX, "{len} vectors exceed {LEN_MAX}");
    }
}

/// Vectors in a device's memory, for all joins that name them. Joins wait on the device for vectors
/// that are being prepared.
#[derive(Debug)]
pub struct DeviceVectors {
    limits: VectorLimits,
    len: usize,
    /// Added to the numbers of the vectors.
    base: u32,
    /// The epsilon for which the vectors are prepared.
    epsilon: f64,
    values: DeviceBuffer<f32>,
    prepared: Prepared,
    copy: Stream,
    build: Stream,
    sent: Event,
    built: Event,
}

/// The part that depends on the method.
#[derive(Debug)]
enum Prepared {
    Nothing,
    Directory { room: DirectoryRoom, ids: DeviceBuffer<u32> },
    Boxes(BoxedRoom),
    Tiles(TiledRoom),
}

/// Vectors as an argument of kernels: `Vectors` of `vectors.cuh`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(super) struct VectorsArgument {
    rows: DevicePointer<f32>,
    ids: DevicePointer<u32>,
    len: u32,
    dims: u32,
}

impl Drop for DeviceVectors {
    fn drop(&mut self) {
        // Buffers are freed when no work uses them any more; a stream that fails has stopped.
        let _ = self.copy.synchronize();
        let _ = self.build.synchronize();
    }
}

impl DeviceVectors {
    /// Room for any vectors up to `limits`, without vectors yet.
    ///
    /// # Errors
    ///
    /// If the room does not fit, or the driver fails.
    ///
    /// # Panics
    ///
    /// If the method does not take the dimensions, or there are more than 2^31 vectors.
    pub fn with_room(memory: &Arc<Memory>, limits: VectorLimits) -> Result<Self, DeviceError> {
        limits.check();
        let VectorLimits { len, dims, method } = limits;
        let device = memory.device();
        Ok(Self {
            limits,
            len: 0,
            base: 0,
            epsilon: 0.0,
            values: memory.device_buffer((len * dims).max(1))?,
            prepared: match method {
                Method::NestedLoop => Prepared::Nothing,
                Method::Directory => Prepared::Directory {
                    room: DirectoryRoom::new(memory, len)?,
                    ids: memory.device_buffer(len.max(1))?,
                },
                Method::Boxes => Prepared::Boxes(BoxedRoom::new(memory, len, dims)?),
                Method::Tiles => Prepared::Tiles(TiledRoom::new(memory, len, dims)?),
            },
            copy: Stream::new(device)?,
            build: Stream::new(device)?,
            sent: Event::new(device)?,
            built: Event::new(device)?,
        })
    }

    /// Sends vectors in place of the previous vectors, and prepares them for joins by about
    /// `epsilon`. A join by another epsilon only has another speed, except with [`Method::Tiles`],
    /// which joins by this epsilon. Pairs name the vectors by numbers from `base` on. The call
    /// returns when all vectors have been sent; kernels may go on. `kernels` of
    /// [`VectorJoin`](super::VectorJoin) have the kernels that prepare vectors.
    ///
    /// All numbers must be finite: the pairs of a vector with another number are unspecified.
    ///
    /// # Cost
    ///
    /// The vectors go over the bus once; the copy is fast if the slice is of a pinned buffer. The
    /// host sorts the vectors for [`Method::Directory`] only.
    ///
    /// # Errors
    ///
    /// If the driver fails; there are then no vectors.
    ///
    /// # Panics
    ///
    /// If the values exceed the limits or are no whole vectors, the numbers of vectors exceed 32
    /// bits, `epsilon` is negative or no number, or `kernels` are of another primitive.
    pub fn load<P: Primitive>(
        &mut self,
        kernels: &Kernels<P>,
        values: &[f32],
        base: u32,
        epsilon: f64,
    ) -> Result<(), DeviceError> {
        if let Prepared::Directory { .. } = &self.prepared {
            return self.load_directory(values, base, epsilon);
        }
        self.load_parts(kernels, &[values], base, epsilon)
    }

    /// As [`load`](Self::load), for vectors in several slices, one after another. The call does not
    /// serve [`Method::Directory`].
    ///
    /// # Errors
    ///
    /// As `load`.
    ///
    /// # Panics
    ///
    /// As `load`, or if the method is [`Method::Directory`].
    pub fn load_parts<P: Primitive>(
        &mut self,
        kernels: &Kernels<P>,
        parts: &[&[f32]],
        base: u32,
        epsilon: f64,
    ) -> Result<(), DeviceError> {
        let VectorLimits { dims, method, .. } = self.limits;
        assert!(method != Method::Directory, "a directory is made of one slice");
        let len = self.begin_load(parts.iter().map(|part| part.len()).sum(), base);
        let question = Question::new(epsilon, dims, true, Answer::Pairs);
        Sending(self).send(kernels, parts, len, &question)?;
        (self.len, self.base, self.epsilon) = (len, base, epsilon);
        Ok(())
    }

    /// Forgets the vectors, and checks that `numbers` numbers have room; returns the number of
    /// vectors in these numbers.
    fn begin_load(&mut self, numbers: usize, base: u32) -> usize {
        let VectorLimits { len: most, dims, .. } = self.limits;
        let len = numbers / dims;
        assert!(numbers == len * dims, "{numbers} numbers in rows of {dims}");
        assert!(len <= most, "{len} vectors exceed {most}");
        let last = u32::try_from(len).ok().and_then(|len| base.checked_add(len));
        assert!(last.is_some(), "{len} vectors from number {base} on exceed 32 bits");
        self.len = 0;
        len
    }

    /// Sends vectors in the order of a directory, and the directory.
    fn load_directory(
        &mut self,
        values: &[f32],
        base: u32,
        epsilon: f64,
    ) -> Result<(), DeviceError> {
        let len = self.begin_load(values.len(), base);
        let dims = self.limits.dims;
        let Prepared::Directory { room, ids } = &mut self.prepared else { return Ok(()) };
        let directory = Directory::new(values, dims);
        let rows = directory.order.iter().map(|at| *at as usize * dims);
        let sorted: Vec<f32> = rows.flat_map(|at| &values[at..at + dims]).copied().collect();
        self.values.upload(&sorted)?;
        ids.upload(&directory.order)?;
        room.upload(&directory)?;
        (self.len, self.base, self.epsilon) = (len, base, epsilon);
        Ok(())
    }

    /// Waits until the vectors are prepared.
    ///
    /// # Errors
    ///
    /// If the driver fails.
    pub fn wait(&self) -> Result<(), DeviceError> {
        self.build.synchronize()
    }

    /// The limits.
    #[must_use]
    pub fn limits(&self) -> VectorLimits {
        self.limits
    }

    /// The number of vectors.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no vector.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// All units of the join of these vectors with themselves, or with the vectors `right`.
    #[must_use]
    pub fn units(&self, right: Option<&Self>, policy: &Policy) -> Vec<JoinUnit> {
        let (dims, is_self) = (self.limits.dims, right.is_none());
        if right.unwrap_or(self).len == 0 {
            return Vec::new();
        }
        if self.limits.method == Method::Tiles {
            return tiled::strips(self.len, dims);
        }
        let (tile, per_super) = (narrow(tile_len(dims)), narrow(LEAF * LEAVES_OF_SUPER));
        let unit_len = narrow(self.unit_len(policy));
        // A self-join begins at the first vector of the unit.
        let first = |left: u32| match &self.prepared {
            Prepared::Directory { room, .. } => room.first_page(left),
            Prepared::Boxes(_) => left * unit_len / per_super,
            _ => left * unit_len / tile * tile,
        };
        let at = |left: u32| if is_self { first(left) } else { 0 };
        let units = narrow(self.unit_count(policy));
        (0..units).map(|left| JoinUnit { left, at: at(left), skip: 0 }).collect()
    }

    /// Units of the join of the first `split` vectors with all later vectors, under
    /// [`Method::Tiles`]. The units also have pairs of vectors on the same side, and the caller
    /// drops these pairs.
    ///
    /// # Panics
    ///
    /// If the vectors have another method, or there are fewer vectors than `split`.
    #[must_use]
    pub fn units_across(&self, split: usize) -> Vec<JoinUnit> {
        let VectorLimits { dims, method, .. } = self.limits;
        assert!(method == Method::Tiles, "{method} has no units across");
        assert!(split <= self.len, "{split} of {} vectors", self.len);
        tiled::strips_of(split, split..self.len, dims)
    }

    /// Whether a unit belongs to a join of these left vectors.
    pub(super) fn has_unit(&self, unit: &JoinUnit, policy: &Policy) -> bool {
        if self.limits.method == Method::Tiles {
            return tiled::is_unit(unit, self.len, self.limits.dims);
        }
        (unit.left as usize) < self.unit_count(policy)
    }

    fn unit_count(&self, policy: &Policy) -> usize {
        self.len.div_ceil(self.unit_len(policy))
    }

    /// Left vectors of a unit.
    fn unit_len(&self, policy: &Policy) -> usize {
        match self.limits.method {
            Method::Boxes => policy.leaves_of_unit(self.limits.dims) * LEAF,
            _ => WARP_LEN,
        }
    }

    /// The epsilon that the vectors are prepared for.
    pub(super) fn epsilon(&self) -> f64 {
        self.epsilon
    }

    pub(super) fn base(&self) -> u32 {
        self.base
    }

    /// The end of the kernels that prepare the vectors.
    pub(super) fn built(&self) -> &Event {
        &self.built
    }

    pub(super) fn argument(&self) -> VectorsArgument {
        self.argument_of(self.len)
    }

    fn argument_of(&self, len: usize) -> VectorsArgument {
        let ids = match &self.prepared {
            Prepared::Directory { ids, .. } => ids.pointer(),
            _ => DevicePointer::NULL,
        };
        let (len, dims) = (narrow(len), narrow(self.limits.dims));
        VectorsArgument { rows: self.values.pointer(), ids, len, dims }
    }

    /// The directory, if the method is [`Method::Directory`].
    pub(super) fn directory(&self) -> Option<DirectoryArgument> {
        match &self.prepared {
            Prepared::Directory { room, .. } => Some(room.argument()),
            _ => None,
        }
    }

    /// The vectors in order with their boxes, if the method is [`Method::Boxes`].
    pub(super) fn boxed(&self) -> Option<BoxedArgument> {
        match &self.prepared {
            Prepared::Boxes(room) => Some(room.argument(self.len)),
            _ => None,
        }
    }
}

impl DeviceVectors {
    /// The rows of bytes, if the method is [`Method::Tiles`].
    pub(super) fn tiled(&self) -> Option<TiledArgument> {
        match &self.prepared {
            Prepared::Tiles(room) => {
                Some(room.argument(self.values.pointer(), self.len, self.limits.dims))
            }
            _ => None,
        }
    }
}

fn narrow(len: usize) -> u32 {
    u32::try_from(len).expect("at most 2^31 vectors")
}

/// Vectors on the way to the device, which borrows them until they have been sent.
struct Sending<'a>(&'a DeviceVectors);

impl Sending<'_> {
    /// Queues the copy and the kernels, and waits for the copy.
    fn send<P: Primitive>(
        self,
        kernels: &Kernels<P>,
        parts: &[&[f32]],
        len: usize,
        question: &Question,
    ) -> Result<(), DeviceError> {
        let DeviceVectors { limits, copy, build, sent, built, .. } = self.0;
        // Earlier kernels may still read vectors.
        copy.wait(built)?;
        let mut at = 0;
        for part in parts {
            // SAFETY: only kernels of this store use the buffer, and the next kernels wait for the
            // copy; the borrow of the values lasts until the copy stream is idle (`drop`).
            unsafe { copy.copy_slice(part, &self.0.values, at) }?;
            at += part.len();
        }
        sent.record(copy)?;
        build.wait(sent)?;
        let shape = [len, limits.dims];
        match &self.0.prepared {
            Prepared::Boxes(room) => {
                room.queue(kernels, build, self.0.argument_of(len), shape, question)?;
            }
            Prepared::Tiles(room) => {
                room.queue(kernels, build, self.0.values.pointer(), shape, question)?;
            }
            Prepared::Nothing | Prepared::Directory { .. } => {}
        }
        built.record(build)?;
        copy.synchronize()
    }
}

impl Drop for Sending<'_> {
    fn drop(&mut self) {
        // The borrow of the values ends here, also when a step fails or panics.
        let _ = self.0.copy.synchronize();
    }
}
