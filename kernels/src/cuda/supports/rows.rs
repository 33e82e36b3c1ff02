//! Rows of bits on a device.

#![expect(unsafe_code, reason = "a kernel writes the rows")]

use std::sync::Arc;

use super::launch::{ROWS, launch_rows};
use super::lists::{BLOCK, TidBlocks};
use super::tile::TILE;
use crate::cuda::driver::{DeviceBuffer, DeviceError, DevicePointer, Event, Memory, Stream};
use crate::cuda::flights::{Kernels, Lane, Primitive};
use crate::memory::Plain;

/// Bits of a row in a panel of `warp_groups.cuh`. Zeros fill a row up to whole panels.
const PANEL: u32 = 1024;

/// Bits of a chunk, which a kernel copies at once.
const CHUNK: u32 = 128;

const _: () = assert!(PANEL.is_multiple_of(CHUNK) && BLOCK.is_multiple_of(PANEL));

/// A part of a row that kernels copy at once.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C, align(16))]
struct Chunk([u32; 4]);

// SAFETY: four `u32`, as `uint4` of the kernels, without padding.
unsafe impl Plain for Chunk {}

/// The largest lists from which rows are made.
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
    /// The limits that exactly fit the lists.
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

/// A row of bits for each item in a device's memory, with a bit for each transaction, for all
/// chunks of tiles that name the rows. Chunks wait on the device for rows that are being made.
///
/// # Cost
///
/// `transactions / 8` bytes for each item, rounded up to 128 bytes, and to a multiple of [`TILE`]
/// items; the lists, 2 bytes for each tid, stay on the device as room for the next lists.
#[derive(Debug)]
pub struct BitRows {
    store: Arc<Store>,
    items: u32,
    transactions: u32,
}

/// The buffers of rows, and the stream that fills them.
#[derive(Debug)]
struct Store {
    limits: RowLimits,
    offsets: DeviceBuffer<u32>,
    tids: DeviceBuffer<u16>,
    chunks: DeviceBuffer<Chunk>,
    build: Stream,
    /// The end of the last copy.
    sent: Event,
    /// The end of the last kernel.
    built: Event,
}

impl Drop for Store {
    fn drop(&mut self) {
        // Buffers are freed when no work uses them any more: `Sending::drop` has waited for copies,
        // and this call waits for kernels. A stream that fails has stopped.
        let _ = self.build.synchronize();
    }
}

/// The lists as an argument of the kernel: `TidLists` of `supports.cu`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct ListsArgument {
    offsets: DevicePointer<u32>,
    tids: DevicePointer<u16>,
    items: u32,
    transactions: u32,
}

/// The rows as an argument of kernels: `Rows` of `supports.cu`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(super) struct RowsArgument {
    chunks: DevicePointer<Chunk>,
    /// Chunks of a row.
    stride: u32,
    /// Number of rows, in whole tiles.
    len: u32,
}

/// Chunks of a row.
fn stride(transactions: u32) -> u32 {
    transactions.div_ceil(PANEL) * (PANEL / CHUNK)
}

/// Chunks of all rows, including the rows that fill up the last tile.
fn chunks(items: u32, transactions: u32) -> usize {
    stride(transactions) as usize * items.div_ceil(TILE) as usize * TILE as usize
}

impl BitRows {
    /// Room for the rows of any lists up to `limits`, without rows yet.
    ///
    /// # Errors
    ///
    /// If the room does not fit, or the driver fails.
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
        let store = Store {
            limits,
            offsets: memory.device_buffer(TidBlocks::offsets_len(items, transactions))?,
            tids: memory.device_buffer(tids)?,
            chunks: memory.device_buffer(chunks(items, transactions))?,
            build: Stream::new(memory.device())?,
            sent: Event::new(memory.device())?,
            built: Event::new(memory.device())?,
        };
        Ok(Self { store: Arc::new(store), items: 0, transactions: 0 })
    }

    /// Sends lists, makes their rows in place of the previous rows, and waits until the rows are
    /// made. `kernels` of [`TilePairs`](super::TilePairs) have the kernel that makes rows; `lane`
    /// copies.
    ///
    /// # Cost
    ///
    /// 2 bytes for each tid and 4 for each item and block of transactions over the bus; the copy is
    /// fast if the slices are of pinned buffers. The kernel reads the lists once and writes each
    /// row once.
    ///
    /// # Errors
    ///
    /// If the driver fails; there are then no rows.
    ///
    /// # Panics
    ///
    /// If the lists exceed the limits, `kernels` are of another primitive, or a chunk that names
    /// the previous rows is in flight.
    pub fn load<P: Primitive>(
        &mut self,
        kernels: &Kernels<P>,
        lane: &Lane,
        lists: &TidBlocks<'_>,
    ) -> Result<(), DeviceError> {
        self.load_in_parts(kernels, lane, lists, &[lists.items()], |_| Ok(()))?;
        self.store.build.synchronize().inspect_err(|_| self.items = 0)
    }

    /// Sends lists part by part, and makes the rows of a part while the next part is sent. The call
    /// gives the rows of all items up to the end of each part to `queued`, before the part has been
    /// sent: chunks over these rows that `queued` submits to the same `lane` run as soon as the
    /// rows are made, since their copies precede the copies of the next part. The call returns when
    /// all lists have been sent. `ends` are the numbers of items at the end of each part.
    ///
    /// # Cost
    ///
    /// As [`Self::load`]; the bus waits only for `queued`.
    ///
    /// # Errors
    ///
    /// If the driver or `queued` fails; there are then no rows.
    ///
    /// # Panics
    ///
    /// As [`Self::load`], and if `ends` do not ascend to the number of items by whole tiles.
    pub fn load_in_parts<P: Primitive>(
        &mut self,
        kernels: &Kernels<P>,
        lane: &Lane,
        lists: &TidBlocks<'_>,
        ends: &[u32],
        mut queued: impl FnMut(&Arc<Self>) -> Result<(), DeviceError>,
    ) -> Result<(), DeviceError> {
        let items = lists.items();
        check_ends(ends, items);
        let store = Arc::get_mut(&mut self.store).expect("no chunk of these rows is in flight");
        let (limits, wanted) = (store.limits, RowLimits::of(lists));
        let fits = wanted.items <= limits.items
            && wanted.transactions <= limits.transactions
            && wanted.tids <= limits.tids;
        assert!(fits, "{wanted:?} exceed {limits:?}");
        // There are no items until all lists have been sent: a load that fails leaves no rows.
        (self.items, self.transactions) = (0, lists.transactions());
        let sending = Sending { store: &self.store, copy: lane.to_device(), lists, kernels };
        sending.begin()?;
        let mut first = 0;
        for &end in ends {
            sending.part(first, end)?;
            first = end;
            let (store, transactions) = (Arc::clone(&self.store), self.transactions);
            queued(&Arc::new(Self { store, items: end, transactions }))?;
        }
        sending.finish()?;
        self.items = items;
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
        lane: &Lane,
        lists: &TidBlocks<'_>,
    ) -> Result<Arc<Self>, DeviceError> {
        let mut rows = Self::with_room(memory, RowLimits::of(lists))?;
        rows.load(kernels, lane, lists)?;
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

    /// The end of the kernels that make the rows.
    pub(super) fn built(&self) -> &Event {
        &self.store.built
    }

    pub(super) fn argument(&self) -> RowsArgument {
        self.store.argument(self.items, self.transactions)
    }
}

impl Store {
    fn argument(&self, items: u32, transactions: u32) -> RowsArgument {
        let (stride, len) = (stride(transactions), items.next_multiple_of(TILE));
        RowsArgument { chunks: self.chunks.pointer(), stride, len }
    }
}

/// Checks the ends of parts of items.
fn check_ends(ends: &[u32], items: u32) {
    let last = ends.last().copied();
    assert!(last == Some(items), "parts end at {last:?}, not at {items} items");
    let falls = ends.windows(2).find(|pair| pair[0] > pair[1] || !pair[0].is_multiple_of(TILE));
    assert!(falls.is_none(), "ends {falls:?} of parts: whole tiles, ascending");
}

/// Lists on the way to the device, which borrows them until they have been sent.
struct Sending<'a, P: Primitive> {
    store: &'a Store,
    copy: &'a Stream,
    lists: &'a TidBlocks<'a>,
    kernels: &'a Kernels<P>,
}

impl<P: Primitive> Sending<'_, P> {
    /// Queues the offsets.
    fn begin(&self) -> Result<(), DeviceError> {
        let (copy, Store { offsets, built, .. }) = (self.copy, self.store);
        // Earlier kernels may still read lists.
        copy.wait(built)?;
        // SAFETY: only kernels of this store use the buffer, and the next kernels wait for the
        // copy; the borrow of the lists lasts until the copy stream is idle (`drop`).
        unsafe { copy.copy_slice(self.lists.offsets(), offsets, 0) }
    }

    /// Queues the lists of the items from `first` to `end`, and the kernel that makes their rows.
    fn part(&self, first: u32, end: u32) -> Result<(), DeviceError> {
        let Self { store, copy, lists, kernels } = self;
        let Store { build, sent, built, .. } = store;
        let blocks = lists.transactions().div_ceil(BLOCK) as usize;
        let at = |item: u32| lists.offsets()[item as usize * blocks] as usize;
        // SAFETY: as in `begin`.
        unsafe { copy.copy_slice(&lists.tids()[at(first)..at(end)], &store.tids, at(first)) }?;
        sent.record(copy)?;
        build.wait(sent)?;
        let rows = store.argument(end, lists.transactions());
        let argument = ListsArgument {
            offsets: store.offsets.pointer(),
            tids: store.tids.pointer(),
            items: lists.items(),
            transactions: lists.transactions(),
        };
        let parts = (rows.len - first) * lists.transactions().div_ceil(BLOCK);
        let launch = launch_rows(ROWS, kernels.device().properties(), parts);
        // SAFETY: the arguments are of the kernel's types; the lists of these items are sent before
        // the kernel runs, their offsets are of their tids, and the kernel ignores tids past their
        // block; there is room for the rows of whole tiles. Chunks that use the rows wait for
        // `built`, or name rows that this kernel does not write. The store outlives the kernel.
        unsafe { kernels.queue(build, launch, (argument, rows, first)) }?;
        built.record(build)
    }

    /// Waits until the lists have been sent.
    fn finish(self) -> Result<(), DeviceError> {
        self.copy.synchronize()
    }
}

impl<P: Primitive> Drop for Sending<'_, P> {
    fn drop(&mut self) {
        // The borrow of the lists ends here, also when a step fails or panics.
        let _ = self.copy.synchronize();
    }
}
