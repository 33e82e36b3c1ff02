//! Sizes that are no parameters.

use crate::wave::DevicePrice;

/// Sizes of chunks and batches. Results do not depend on them; tests make them small.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tuning {
    /// Maximum pairs of a chunk.
    pub(crate) chunk_pairs: usize,
    /// Maximum parts of a join in a chunk, each of up to 256 vectors.
    pub(crate) chunk_parts: usize,
    /// Rows of a block of a nested loop.
    pub(crate) block_rows: usize,
    /// Maximum shift of a block on a device; an input has at most 2^27 vectors.
    pub(crate) block_shift_max: u32,
    /// Maximum units of a part of a block in flight.
    pub(crate) device_units: usize,
    /// Room for the pairs of a part.
    pub(crate) device_pairs: usize,
    /// Maximum pairs of a block, if the inputs are large enough; a block with more pairs is split
    /// into four.
    pub(crate) device_found: usize,
    pub(crate) device_price: DevicePrice,
    /// Vectors of the sample that is searched for copies.
    pub(crate) copies_sampled: usize,
    /// Number of copies in the sample from which on equal vectors are joined once.
    pub(crate) copies_min: usize,
    /// Mean number of partners of a vector from which on the output `first` looks each vector up
    /// until it has one partner.
    pub(crate) crowd: usize,
    /// Maximum vectors of a micro-batch of a stream.
    pub(crate) micro_batch: usize,
    /// Maximum coordinates that a task of a merge processes.
    pub(crate) merge_numbers: usize,
    /// Coordinates that merges process for each coordinate that arrives, while a merge is under
    /// way.
    pub(crate) merge_pace: usize,
    /// Maximum bytes of carried columns of a batch.
    pub(crate) carried_batch_bytes: usize,
    /// Maximum rows of a batch.
    pub(crate) batch_rows: usize,
}

impl Default for Tuning {
    fn default() -> Self {
        // A chunk of 16 parts takes about a millisecond; 16,384 pairs are 256 KiB.
        Self {
            chunk_pairs: 1 << 14,
            chunk_parts: 16,
            block_rows: 4_096,
            block_shift_max: 27,
            device_units: 1 << 16,
            // 8 MiB of pairs of a part, and 256 MiB of pairs of a block.
            device_pairs: 1 << 19,
            device_found: 1 << 24,
            device_price: DevicePrice::MEASURED,
            // Among 100,000 vectors, a group of 500 copies has about 20 vectors in the sample.
            copies_sampled: 4_096,
            copies_min: 8,
            // A look-up of a vector takes the time of about 100 pairs.
            crowd: 128,
            micro_batch: 4_096,
            // A task takes about a millisecond. A vector is merged about six times, each time in
            // three rounds.
            merge_numbers: 1 << 17,
            merge_pace: 32,
            carried_batch_bytes: 64 << 20,
            batch_rows: 1 << 14,
        }
    }
}
