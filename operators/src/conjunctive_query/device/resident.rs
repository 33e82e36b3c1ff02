//! Segments that stay in a device's memory.
//!
//! A segment is sent when a batch first needs it. A segment is released at the next batch after the
//! last index with that segment is gone, or when other segments need the room and no batch in
//! flight uses the segment.

use std::sync::{Arc, Weak};

use trommel_kernels::cuda::queries::DeviceIndex;
use trommel_kernels::cuda::{Device, DeviceError, Memory};

use crate::conjunctive_query::data::index::Index;
use crate::conjunctive_query::data::segments::IndexSegment;
use crate::wave::{Resident, Wanted};

/// The segments of an index, each with whether the segment stays on a device with room for `bytes`
/// bytes. A segment stays if it fits in addition to the earlier segments that stay.
pub(crate) fn are_resident(
    index: &Index,
    bytes: usize,
) -> impl Iterator<Item = (&Arc<IndexSegment>, bool)> {
    let mut left = bytes;
    index.segments().map(move |segment| {
        let rest = left.checked_sub(segment.lists.as_bytes().len());
        left = rest.unwrap_or(left);
        (segment, rest.is_some())
    })
}

/// The segments of an index on the device; `None` for each segment that does not stay on the
/// device.
pub(crate) type HeldLists = Vec<Option<Arc<DeviceIndex>>>;

/// Key of a segment; the segment itself may be gone.
#[derive(Debug)]
struct SegmentKey(Weak<IndexSegment>);

impl PartialEq for SegmentKey {
    fn eq(&self, other: &Self) -> bool {
        self.0.ptr_eq(&other.0)
    }
}

/// Segments on the device.
#[derive(Debug)]
pub(crate) struct ResidentSegments {
    memory: Arc<Memory>,
    bytes_max: usize,
    segments: Resident<SegmentKey, DeviceIndex>,
}

impl ResidentSegments {
    /// Room for `bytes_max` bytes of segments.
    pub(crate) fn new(device: &Device, bytes_max: usize) -> Self {
        let memory = Memory::new(device, bytes_max, 0);
        Self { memory, bytes_max, segments: Resident::new(bytes_max) }
    }

    /// The segments of `index` that stay.
    fn wanted(&self, index: &Index) -> Vec<Wanted<SegmentKey>> {
        let staying = are_resident(index, self.bytes_max).filter(|(_, stays)| *stays);
        let wanted = |(segment, _): (&Arc<IndexSegment>, _)| Wanted {
            key: SegmentKey(Arc::downgrade(segment)),
            bytes: segment.lists.as_bytes().len(),
        };
        staying.map(wanted).collect()
    }

    /// Whether the segments of `index` that stay have room in addition to the segments in flight;
    /// true if nothing is in flight.
    pub(crate) fn have_room(&self, index: &Index) -> bool {
        self.segments.has_room(&self.wanted(index))
    }

    /// The segments of `index` on the device, and the bytes that were sent.
    /// [`have_room`](Self::have_room) is true for `index`.
    ///
    /// # Errors
    /// If the device fails.
    pub(crate) fn hold(&mut self, index: &Index) -> Result<(HeldLists, u64), DeviceError> {
        self.segments.retain(|SegmentKey(segment)| segment.strong_count() > 0);
        let (wanted, memory) = (self.wanted(index), &self.memory);
        let (held, bytes) = self.segments.hold(wanted, |SegmentKey(segment), used| {
            // Frees the memory of the evicted segment first.
            drop(used);
            let segment = segment.upgrade().expect("the index names it");
            let lists = DeviceIndex::upload(memory, &segment.lists)?;
            let bytes = lists.bytes() as u64;
            Ok((lists, bytes))
        })?;
        let mut held = held.into_iter();
        let lists = are_resident(index, self.bytes_max);
        let lists = lists.map(|(_, stays)| if stays { held.next() } else { None });
        Ok((lists.collect(), bytes))
    }
}
