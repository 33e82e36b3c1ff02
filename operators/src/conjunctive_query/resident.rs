//! Segments that stay in a device's memory.
//!
//! A segment is sent when a batch first needs it. It is released when no index names it any more,
//! at the next batch, or when its room is needed and no batch in flight uses it.

use std::sync::{Arc, Weak};

use trommel_kernels::cuda::queries::DeviceIndex;
use trommel_kernels::cuda::{Device, DeviceError, Memory};

use super::index::Index;
use super::segments::IndexSegment;

/// The segments of an index, and whether each stays on a device with room for `bytes` bytes: if it
/// fits beside the segments before it that do.
pub(super) fn are_resident(
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

/// The segments of an index on the device; `None` for each that does not stay there.
pub(super) type HeldLists = Vec<Option<Arc<DeviceIndex>>>;

/// A segment on the device.
#[derive(Debug)]
struct Resident {
    segment: Weak<IndexSegment>,
    lists: Arc<DeviceIndex>,
}

impl Resident {
    fn is_of(&self, segment: &Arc<IndexSegment>) -> bool {
        std::ptr::eq(self.segment.as_ptr(), Arc::as_ptr(segment))
    }

    /// Whether no batch in flight uses it.
    fn is_idle(&self) -> bool {
        Arc::strong_count(&self.lists) == 1
    }
}

/// Segments on the device, the one that was used last at the end.
#[derive(Debug)]
pub(super) struct Residents {
    memory: Arc<Memory>,
    bytes_max: usize,
    residents: Vec<Resident>,
}

impl Residents {
    /// Room for `bytes_max` bytes of segments.
    pub(super) fn new(device: &Device, bytes_max: usize) -> Self {
        let memory = Memory::new(device, bytes_max, 0);
        Self { memory, bytes_max, residents: Vec::new() }
    }

    /// Whether the segments of `index` that stay have room beside the segments in flight. They
    /// have if nothing is in flight.
    pub(super) fn have_room(&self, index: &Index) -> bool {
        let wanted = |resident: &Resident| {
            let mut staying = are_resident(index, self.bytes_max);
            staying.any(|(segment, stays)| stays && resident.is_of(segment))
        };
        let bytes = |resident: &Resident| resident.lists.bytes();
        let released = self.residents.iter().filter(|one| one.is_idle() && !wanted(one));
        let released: usize = released.map(bytes).sum();
        let missing = are_resident(index, self.bytes_max).filter(|(segment, stays)| {
            *stays && !self.residents.iter().any(|one| one.is_of(segment))
        });
        let missing: usize = missing.map(|(segment, _)| segment.lists.as_bytes().len()).sum();
        self.memory.used_bytes().0 - released + missing <= self.bytes_max
    }

    /// The segments of `index`, for which there is [room](Self::have_room), and the bytes that were
    /// sent.
    ///
    /// # Errors
    /// If the device fails.
    pub(super) fn hold(&mut self, index: &Index) -> Result<(HeldLists, u64), DeviceError> {
        self.residents.retain(|one| one.segment.strong_count() > 0);
        let bytes_max = self.bytes_max;
        // Held before any is sent, so that none of them is released for another one.
        let mut held: HeldLists = are_resident(index, bytes_max)
            .map(|(segment, stays)| if stays { self.find(segment) } else { None })
            .collect();
        let mut sent = 0;
        for (held, (segment, stays)) in held.iter_mut().zip(are_resident(index, bytes_max)) {
            if stays && held.is_none() {
                let lists = self.send(segment)?;
                sent += lists.bytes() as u64;
                *held = Some(lists);
            }
        }
        Ok((held, sent))
    }

    /// A segment that is there; it becomes the one that was used last.
    fn find(&mut self, segment: &Arc<IndexSegment>) -> Option<Arc<DeviceIndex>> {
        let place = self.residents.iter().position(|one| one.is_of(segment))?;
        self.residents[place..].rotate_left(1);
        self.residents.last().map(|one| Arc::clone(&one.lists))
    }

    fn send(&mut self, segment: &Arc<IndexSegment>) -> Result<Arc<DeviceIndex>, DeviceError> {
        let bytes = segment.lists.as_bytes().len();
        while self.memory.used_bytes().0 + bytes > self.bytes_max
            && let Some(oldest) = self.residents.iter().position(Resident::is_idle)
        {
            self.residents.remove(oldest);
        }
        let lists = DeviceIndex::upload(&self.memory, &segment.lists)?;
        let segment = Arc::downgrade(segment);
        self.residents.push(Resident { segment, lists: Arc::clone(&lists) });
        Ok(lists)
    }
}
