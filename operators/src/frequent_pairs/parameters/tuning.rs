//! Sizes that are no parameters. Results do not depend on them, so tests make them small.

use trommel_kernels::supports::Pair;

use crate::wave::DevicePrice;

/// Sizes of the parts of the work.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tuning {
    /// Items of a block of transactions: few enough for the second-level cache while the block is
    /// transposed.
    pub(crate) block_items: usize,
    /// Least number of transactions in the lists of a task that joins lists, if there are several
    /// kernels.
    pub(crate) join_tids: u32,
    /// Pairs after which a chunk is answered.
    pub(crate) chunk_pairs: usize,
    /// Least modelled cost of a task, if there are several kernels.
    pub(crate) task_ns_min: f64,
    /// Maximum number of tiles of a task for a device.
    pub(crate) task_tiles: usize,
    /// Room for the pairs of a task on a device; at least the pairs of one tile.
    pub(crate) device_pairs: usize,
    pub(crate) device_price: DevicePrice,
    /// Rows of a batch.
    pub(crate) batch_rows: usize,
    /// With windows: number of known items, in addition to twice the items that were kept last, at
    /// which the items of expired transactions are forgotten.
    pub(crate) items_min: usize,
}

impl Default for Tuning {
    fn default() -> Self {
        Self {
            block_items: 1 << 20,
            join_tids: 1 << 18,
            chunk_pairs: (1 << 20) / size_of::<Pair>(),
            task_ns_min: 1e6,
            task_tiles: 1 << 13,
            device_pairs: 1 << 18,
            device_price: DevicePrice::MEASURED,
            batch_rows: crate::shared::parameters::BATCH_ITEMS,
            items_min: 1 << 16,
        }
    }
}

#[cfg(test)]
impl Tuning {
    /// Sizes at which every limit is reached by few transactions.
    pub(crate) const SMALL: Self = Self {
        block_items: 20,
        join_tids: 8,
        chunk_pairs: 3,
        task_ns_min: 10.0,
        task_tiles: 2,
        device_pairs: 0,
        device_price: DevicePrice::FREE,
        batch_rows: 2,
        items_min: 4,
    };
}
