//! Chunks of work, and what they cost.

/// A chunk of regular work: the input of a kernel, and room for its answer.
///
/// Chunks are made once and travel in circles. A used chunk is emptied by
/// [`clear`](Self::clear) before it is filled again.
pub trait WaveChunk: Send + 'static {
    /// Number of items, for the report.
    fn items(&self) -> usize;

    /// Size in bytes, for the limits of queues.
    fn bytes(&self) -> usize;

    /// Removes all items, and limits the chunk to about `bytes_max` bytes from now on. Room that
    /// has been allocated is kept.
    fn clear(&mut self, bytes_max: usize);

    /// Modelled cost of this chunk, asked when it has been filled. [`Device::Auto`] goes by it.
    ///
    /// The provided method names no cost: with it, `auto` never opens a device.
    ///
    /// [`Device::Auto`]: super::Device::Auto
    fn cost(&self) -> Cost {
        Cost::default()
    }

    /// Whether the kernel may leave items unfinished, asked when the chunk has been filled. Prepare
    /// ends only when all such chunks have come back.
    fn may_be_unfinished(&self) -> bool {
        false
    }

    /// Keeps only the items that the kernel has left unfinished, because their answers did not fit
    /// the chunk; true if there are any. They are sent through the kernel again.
    fn retain_unfinished(&mut self) -> bool {
        false
    }

    /// Drops data that is shared with other chunks, as soon as the answer has been read. Not called
    /// for data that unfinished items need.
    fn release(&mut self) {}
}

/// Modelled cost of a chunk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Nanoseconds that a CPU needs for it.
    pub cpu_ns: u64,
    /// Names the data that a device has to hold for it. Chunks of equal names share one upload.
    pub data: [u64; 2],
    /// Bytes of that data.
    pub data_bytes: u64,
}

/// A chunk on its way from prepare through the kernel to collect, or back.
#[derive(Debug)]
pub(super) struct InWave<C> {
    pub(super) chunk: C,
    /// Whether a device pays for it.
    pub(super) device_pays: bool,
    /// Whether prepare waits for it at the end.
    pub(super) is_awaited: bool,
}
