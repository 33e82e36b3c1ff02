//! A segment of an inverted index in a device's memory.

use std::sync::Arc;

use crate::cuda::driver::{DeviceBuffer, DeviceError, DevicePointer, Memory};
use crate::inverted::Segment;

/// A segment in a device's memory, for all batches of queries that name it.
///
/// # Cost
///
/// The bytes of the segment.
#[derive(Debug)]
pub struct DeviceIndex {
    words: DeviceBuffer<u32>,
    documents: u32,
    terms: u32,
    /// Number of ids of the longest list.
    longest: u32,
    /// Whether lists are plain ids.
    is_plain: bool,
}

/// A segment as an argument of kernels: `Segment` of `inverted.cuh`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(super) struct SegmentArgument {
    words: DevicePointer<u32>,
    documents: u32,
    terms: u32,
}

impl DeviceIndex {
    /// Sends the words of a segment to the device without a change, and waits until they have
    /// arrived.
    ///
    /// # Cost
    ///
    /// The bytes of the segment over the bus, and a pass over its table.
    ///
    /// # Errors
    ///
    /// If the segment does not fit, or the driver fails.
    pub fn upload<B: AsRef<[u8]>>(
        memory: &Arc<Memory>,
        segment: &Segment<B>,
    ) -> Result<Arc<Self>, DeviceError> {
        let (words, longest) = segment.words();
        Self::new(memory, segment, words, (longest, false))
    }

    /// Sends the same lists as plain ids of four bytes, in which a binary search finds ids: the
    /// index of the paper, for comparison.
    ///
    /// # Cost
    ///
    /// Decodes all lists on the calling thread; sends four bytes for each posting over the bus.
    ///
    /// # Errors
    ///
    /// As [`Self::upload`].
    pub fn upload_plain<B: AsRef<[u8]>>(
        memory: &Arc<Memory>,
        segment: &Segment<B>,
    ) -> Result<Arc<Self>, DeviceError> {
        let (_, longest) = segment.words();
        Self::new(memory, segment, &segment.to_plain_words(), (longest, true))
    }

    fn new<B: AsRef<[u8]>>(
        memory: &Arc<Memory>,
        segment: &Segment<B>,
        words: &[u32],
        (longest, is_plain): (u32, bool),
    ) -> Result<Arc<Self>, DeviceError> {
        let mut buffer = memory.device_buffer(words.len())?;
        buffer.upload(words)?;
        let (documents, terms) = (segment.documents(), segment.terms());
        Ok(Arc::new(Self { words: buffer, documents, terms, longest, is_plain }))
    }

    /// The number of documents.
    #[must_use]
    pub fn documents(&self) -> u32 {
        self.documents
    }

    /// Number of ids of the longest list: the maximum number of documents of a query.
    #[must_use]
    pub fn longest(&self) -> u32 {
        self.longest
    }

    /// Whether lists are plain ids.
    pub(super) fn is_plain(&self) -> bool {
        self.is_plain
    }

    /// The bytes in the device's memory.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.words.len() * size_of::<u32>()
    }

    pub(super) fn argument(&self) -> SegmentArgument {
        SegmentArgument::new(self.words.pointer(), self.documents, self.terms)
    }
}

impl SegmentArgument {
    /// The segment whose words begin at an address.
    pub(super) fn new(words: DevicePointer<u32>, documents: u32, terms: u32) -> Self {
        Self { words, documents, terms }
    }
}
