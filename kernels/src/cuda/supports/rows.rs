//! Rows of bits on a device.

#![expect(unsafe_code, reason = "a kernel writes the rows")]

use std::sync::Arc;

use super::launch::{ROWS, launch_rows};
use super::lists::{BLOCK, TidBlocks};
use super::tile::TILE;
use crate::cuda::error::DeviceError;
use crate::cuda::kernels::Kernels;
use crate::cuda::memory::{DeviceBuffer, DevicePointer, Memory, Plain};
use crate::cuda::primitive::Primitive;

/// Bits of a stage of `supports.cu`. A row is filled up to whole stages with zeros.
const STAGE: u32 = 512;

/// Bits of a chunk, which a kernel copies at once.
const CHUNK: u32 = 128;

const _: () = assert!(STAGE.is_multiple_of(CHUNK) && BLOCK.is_multiple_of(STAGE));

/// A part of a row that kernels copy at once.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C, align(16))]
struct Chunk([u32; 4]);

// SAFETY: four `u32`, as `uint4` of the kernels, without padding.
unsafe impl Plain for Chunk {}

/// The largest lists that rows are made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowLimits {
    /// Items.
    pub items: u32,
    /// Transactions.
    pub transactions: u32,
    /// Tids of all items together.
    pub tids: usize,
}

impl RowLimits {
    /// Exactly the lists.
    #[must_use]
    pub fn of(lists: &TidBlocks<'_>) -> Self {
        let (items, transactions) = (lists.items(), lists.transactions());
        Self { items, transactions, tids: lists.tids().len() }
    }

    /// The bytes of lists and rows in the device's memory.
    ///
    /// # Panics
    ///
    /// As [`TidBlocks::offsets_len`].
    #[must_use]
    pub fn bytes(&self) -> usize {
        let Self { items, transactions, tids } = *self;
        let offsets = TidBlocks::offsets_len(items, transactions) * size_of::<u32>();
        let tids = (tids * size_of::<u16>()).max(1);
        offsets + tids + (chunks(items, transactions) * size_of::<Chunk>()).max(1)
    }
}

/// A row of bits for each item in a device's memory, with a bit a transaction, for all chunks of
/// tiles that name it.
///
/// # Cost
///
/// `transactions / 8` bytes an item, filled up to 64, and to a multiple of [`TILE`] items; the
/// lists, 2 bytes a tid, stay on the device as room for the next ones.
#[derive(Debug)]
pub struct BitRows {
    limits: RowLimits,
    offsets: DeviceBuffer<u32>,
    tids: DeviceBuffer<u16>,
    chunks: DeviceBuffer<Chunk>,
    items: u32,
    transactions: u32,
}

/// The lists as the kernel takes them: `TidLists` of `supports.cu`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct ListsArgument {
    offsets: DevicePointer<u32>,
    tids: DevicePointer<u16>,
    items: u32,
    transactions: u32,
}

/// The rows as kernels take them: `Rows` of `supports.cu`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(super) struct RowsArgument {
    chunks: DevicePointer<Chunk>,
    /// Chunks of a row.
    stride: u32,
    /// Rows, of whole tiles.
    len: u32,
}

/// Chunks of a row.
fn stride(transactions: u32) -> u32 {
    transactions.div_ceil(STAGE) * (STAGE / CHUNK)
}

/// Chunks of all rows, with the rows that fill up the last tile.
fn chunks(items: u32, transactions: u32) -> usize {
    stride(transactions) as usize * items.div_ceil(TILE) as usize * TILE as usize
}

impl BitRows {
    /// Room for the rows of any lists up to `limits`; holds no row.
    ///
    /// # Errors
    ///
    /// If it does not fit, or the driver fails.
    ///
    /// # Panics
    ///
    /// If there are more than 2^31 rows, or parts of rows of a block of transactions.
    pub fn with_room(memory: &Arc<Memory>, limits: RowLimits) -> Result<Self, DeviceError> {
        let RowLimits { items, transactions, tids } = limits;
        // Numbers of rows, and of the parts of rows that the kernel makes, have 32 bits.
        let full = items.checked_next_multiple_of(TILE).filter(|items| *items <= 1 << 31);
        let full = full.unwrap_or_else(|| panic!("{items} items exceed 2147483648"));
        let parts = full as usize * transactions.div_ceil(BLOCK) as usize;
        assert!(parts <= 1 << 31, "{parts} parts of rows exceed 2147483648");
        Ok(Self {
            limits,
            offsets: memory.device_buffer(TidBlocks::offsets_len(items, transactions))?,
            tids: memory.device_buffer(tids)?,
            chunks: memory.device_buffer(chunks(items, transactions))?,
            items: 0,
            transactions: 0,
        })
    }

    /// Sends lists and makes their rows in place of the ones before; waits for them. `kernels` of
    /// [`TilePairs`](super::TilePairs) have the kernel that makes rows.
    ///
    /// # Cost
    ///
    /// 2 bytes a tid and 4 an item and block of transactions over the bus, which is fast if the
    /// slices are of pinned buffers; the kernel reads them once and writes each row once.
    ///
    /// # Errors
    ///
    /// If the driver fails; there are then no rows.
    ///
    /// # Panics
    ///
    /// If the lists exceed the limits, or `kernels` are of another primitive.
    pub fn load<P: Primitive>(
        &mut self,
        kernels: &Kernels<P>,
        lists: &TidBlocks<'_>,
    ) -> Result<(), DeviceError> {
        let (limits, wanted) = (self.limits, RowLimits::of(lists));
        let fits = wanted.items <= limits.items
            && wanted.transactions <= limits.transactions
            && wanted.tids <= limits.tids;
        assert!(fits, "{wanted:?} exceed {limits:?}");
        self.items = 0;
        self.offsets.upload(lists.offsets())?;
        self.tids.upload(lists.tids())?;
        self.transactions = lists.transactions();
        let rows = RowsArgument { len: lists.items().next_multiple_of(TILE), ..self.argument() };
        let argument = ListsArgument {
            offsets: self.offsets.pointer(),
            tids: self.tids.pointer(),
            items: lists.items(),
            transactions: lists.transactions(),
        };
        let parts = rows.len * lists.transactions().div_ceil(BLOCK);
        let launch = launch_rows(ROWS, kernels.device().properties(), parts);
        // SAFETY: the arguments are of the kernel's types; the lists have been sent, their offsets
        // are of their tids, and the kernel leaves out tids past their block; there is room for the
        // rows of whole tiles. The borrow says that nobody else uses the buffers, and they stay
        // until the kernel is done, which is waited for.
        unsafe { kernels.run(launch, (argument, rows)) }?;
        self.items = lists.items();
        Ok(())
    }

    /// Makes room for lists, sends them and makes their rows.
    ///
    /// # Errors
    ///
    /// As [`Self::with_room`] and [`Self::load`].
    ///
    /// # Panics
    ///
    /// As [`Self::with_room`].
    pub fn upload<P: Primitive>(
        memory: &Arc<Memory>,
        kernels: &Kernels<P>,
        lists: &TidBlocks<'_>,
    ) -> Result<Arc<Self>, DeviceError> {
        let mut rows = Self::with_room(memory, RowLimits::of(lists))?;
        rows.load(kernels, lists)?;
        Ok(Arc::new(rows))
    }

    /// The number of items.
    #[must_use]
    pub fn items(&self) -> u32 {
        self.items
    }

    /// The number of transactions.
    #[must_use]
    pub fn transactions(&self) -> u32 {
        self.transactions
    }

    pub(super) fn argument(&self) -> RowsArgument {
        let (stride, len) = (stride(self.transactions), self.items.next_multiple_of(TILE));
        RowsArgument { chunks: self.chunks.pointer(), stride, len }
    }
}
