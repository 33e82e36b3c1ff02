//! Sizes that are no parameters. Results do not depend on them, so tests make them small.

use crate::wave::DevicePrice;

/// Sizes of the parts of the work.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tuning {
    /// Number of terms of documents, counted with duplicates, that closes a block. A segment of
    /// this size is built in some 10 ms.
    pub(crate) block_terms: usize,
    /// Number of documents that closes a block.
    pub(crate) block_documents: usize,
    /// Minimum segments of a merge before the documents have ended.
    pub(crate) merge_segments: usize,
    /// Least number of postings and documents of a task of a merge, if there are several kernels: a
    /// task takes some milliseconds.
    pub(crate) merge_postings: u64,
    /// Number of documents, estimated by the shortest lists of the queries, that closes a batch: 16
    /// MiB of answers.
    pub(crate) answer_documents: u64,
    /// Room for the documents of a batch of queries on a device: 16 MiB.
    pub(crate) device_documents: usize,
    /// Maximum words of the lists that a batch of queries sends to a device: 64 MiB.
    pub(crate) device_list_words: usize,
    pub(crate) device_price: DevicePrice,
    /// Maximum documents of a batch of rows; a query with more documents has a batch of its own.
    pub(crate) batch_documents: usize,
    /// Rows of a batch.
    pub(crate) batch_rows: usize,
    /// Number of batches of queries that wait for the segments of earlier documents, from which on
    /// no input is taken until segments land.
    pub(crate) waiting_batches: usize,
}

impl Default for Tuning {
    fn default() -> Self {
        Self {
            block_terms: 1 << 20,
            block_documents: 1 << 18,
            merge_segments: 4,
            merge_postings: 1 << 17,
            answer_documents: 1 << 22,
            device_documents: 1 << 22,
            device_list_words: 1 << 24,
            device_price: DevicePrice::MEASURED,
            batch_documents: 1 << 18,
            batch_rows: crate::shared::parameters::BATCH_ITEMS,
            waiting_batches: 64,
        }
    }
}

#[cfg(test)]
impl Tuning {
    /// Sizes at which every limit is reached by few documents.
    pub(crate) const SMALL: Self = Self {
        block_terms: 20,
        block_documents: 7,
        merge_segments: 2,
        merge_postings: 5,
        answer_documents: 10,
        device_documents: 400,
        device_list_words: 1 << 10,
        device_price: DevicePrice::FREE,
        batch_documents: 3,
        batch_rows: 2,
        waiting_batches: 2,
    };
}
