//! The queries of a batch on a device, and its units of work.

#![expect(unsafe_code, reason = "a struct that kernels write")]

use std::sync::Arc;

use super::index::{DeviceIndex, SegmentArgument};
use super::launch::Policy;
use crate::cuda::driver::{DeviceBuffer, DeviceError, DevicePointer, Memory};
use crate::cuda::flights::CopyIn;
use crate::cuda::mirrored::MirroredBuffer;
use crate::inverted::QueryBatch;
use crate::memory::Plain;

/// Positions in buffers have 32 bits.
pub(super) const COUNT_MAX: usize = 1 << 31;

/// Words before the offsets of a batch: the count of its listed units, zero at the start.
const COUNTER: usize = 2;

/// A unit of work: `Unit` of `queries.cuh`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct Unit {
    query: u32,
    begin: u32,
}

// SAFETY: two `u32` in the order of the kernels' struct (`repr(C)`).
unsafe impl Plain for Unit {}

/// The largest batch of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueryLimits {
    /// Queries.
    pub queries: usize,
    /// Terms of all queries.
    pub terms: usize,
    /// Units of work in the list, in addition to the first unit of each query; a unit is 256 ids of
    /// a shortest list. The warp of a query takes its units without room one after another: the
    /// answer is correct, but slow.
    pub units: usize,
}

impl QueryLimits {
    /// The bytes of the buffers in the device's memory; pinned memory has fewer.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let Self { queries, terms, units } = *self;
        let words = COUNTER + queries + 1 + 2 * terms.max(1) + queries.max(1);
        words * size_of::<u32>() + units.max(1) * size_of::<Unit>()
    }
}

/// A batch of queries over an index on the device.
#[derive(Clone, Debug)]
pub struct QueryJob<'a> {
    /// The queries, over all documents: the batch is not restricted to a set of documents.
    pub queries: QueryBatch<'a>,
    /// The lists.
    pub index: &'a Arc<DeviceIndex>,
    /// The way to count.
    pub policy: Policy,
}

/// Buffers of the queries of a batch.
#[derive(Debug)]
pub(super) struct QueryBuffers {
    /// The counter of listed units, the offsets and the terms, in one buffer for one copy.
    batch: MirroredBuffer<u32>,
    ordered: DeviceBuffer<u32>,
    units: DeviceBuffer<Unit>,
    queries: u32,
}

/// Queries as an argument of kernels: `Queries` of `queries.cuh`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(super) struct QueriesArgument {
    segment: SegmentArgument,
    offsets: DevicePointer<u32>,
    terms: DevicePointer<u32>,
    ordered: DevicePointer<u32>,
    unit_count: DevicePointer<u32>,
    units: DevicePointer<Unit>,
    found: DevicePointer<u32>,
    query_count: u32,
    unit_room: u32,
}

impl QueryBuffers {
    pub(super) fn new(memory: &Arc<Memory>, limits: QueryLimits) -> Result<Self, DeviceError> {
        let QueryLimits { queries, terms, units } = limits;
        let most = queries.max(terms).max(units);
        assert!(most < COUNT_MAX, "{limits:?}: each is below {COUNT_MAX}");
        Ok(Self {
            batch: MirroredBuffer::new(memory, COUNTER + queries + 1 + terms.max(1))?,
            ordered: memory.device_buffer(terms.max(1))?,
            units: memory.device_buffer(units.max(1))?,
            queries: 0,
        })
    }

    /// Checks a batch against the limits.
    pub(super) fn check(limits: QueryLimits, batch: QueryBatch<'_>) {
        let (offsets, terms) = batch.parts();
        let (queries, max) = (batch.len(), limits.queries);
        assert!(queries <= max, "a batch of {queries} queries exceeds {max}");
        let (terms, max) = (terms.len() - offsets[0] as usize, limits.terms);
        assert!(terms <= max, "a batch of {terms} terms exceeds {max}");
        assert!(!batch.is_within(), "a device answers queries over all documents");
    }

    pub(super) fn fill(&mut self, batch: QueryBatch<'_>) {
        let (offsets, terms) = batch.parts();
        let begin = offsets[0];
        let terms = &terms[begin as usize..];
        self.queries = u32::try_from(batch.len()).expect("within the slot's limits");
        self.batch.fill_from(COUNTER + offsets.len() + terms.len(), |words| {
            words[..COUNTER].fill(0);
            let (head, tail) = words[COUNTER..].split_at_mut(offsets.len());
            for (place, offset) in head.iter_mut().zip(offsets) {
                *place = offset - begin;
            }
            tail.copy_from_slice(terms);
        });
    }

    pub(super) fn copy_in(&self, step: &mut CopyIn<'_>) -> Result<(), DeviceError> {
        step.send(&self.batch)
    }

    /// The number of queries of the batch.
    pub(super) fn queries(&self) -> u32 {
        self.queries
    }

    /// The queries of the batch, with a place for numbers of documents.
    pub(super) fn argument(
        &self,
        segment: SegmentArgument,
        found: DevicePointer<u32>,
    ) -> QueriesArgument {
        let batch = self.batch.pointer();
        let offsets = batch.at(COUNTER as u64);
        QueriesArgument {
            segment,
            offsets,
            terms: offsets.at(u64::from(self.queries) + 1),
            ordered: self.ordered.pointer(),
            unit_count: batch,
            units: self.units.pointer(),
            found,
            query_count: self.queries,
            unit_room: u32::try_from(self.units.len()).expect("within the slot's limits"),
        }
    }
}
