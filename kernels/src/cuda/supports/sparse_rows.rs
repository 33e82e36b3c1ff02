//! Transactions on a device, and the pieces of them that follow each item.

#![expect(unsafe_code, reason = "a struct that kernels read")]

use std::sync::Arc;

use crate::cuda::error::DeviceError;
use crate::cuda::memory::{DeviceBuffer, DevicePointer, Memory, Plain};
use crate::sets::Sets;

/// Items of a piece at most: a long transaction is cut, so that it holds up no lanes of a device.
const PIECE: u32 = 256;

/// Items of a transaction: `begin..end` of the items of all transactions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Piece {
    begin: u32,
    end: u32,
}

// SAFETY: two `u32` in the order of the kernels' struct (`repr(C)`).
unsafe impl Plain for Piece {}

/// The pieces of transactions that follow each item: for each item and each transaction with it,
/// the items after it, in pieces.
///
/// # Examples
///
/// ```
/// use trommel_kernels::cuda::supports::Pieces;
/// use trommel_kernels::sets::Sets;
///
/// // Transactions {0, 2, 3} and {2, 3}: one piece after item 0, two after item 2.
/// let pieces = Pieces::new(4, Sets::new(&[0, 3, 5], &[0, 2, 3, 2, 3]));
/// assert_eq!(pieces.len(), 3);
/// ```
#[derive(Clone, Debug)]
pub struct Pieces {
    offsets: Vec<u32>,
    pieces: Vec<Piece>,
}

impl Pieces {
    /// Cuts transactions of `items` items, each strictly ascending.
    ///
    /// # Cost
    ///
    /// Two passes over all transactions; 8 bytes a piece, of which a transaction of `n` items has
    /// at most `n * (n / 256 + 1)`.
    ///
    /// # Panics
    ///
    /// If an item is not below `items`, items of a transaction do not ascend, or there are more
    /// than 2^32 pieces.
    #[must_use]
    pub fn new(items: u32, transactions: Sets<'_>) -> Self {
        let mut offsets = vec![0_u32; items as usize + 1];
        for_each_place(transactions, |item, begin, end| {
            assert!(item < items, "item {item} of {items}");
            let pieces = &mut offsets[item as usize];
            let all = pieces.checked_add((end - begin).div_ceil(PIECE));
            *pieces = all.expect("pieces are numbered by 32 bits");
        });
        let mut sum = 0_u32;
        for count in &mut offsets {
            let end = sum.checked_add(*count).expect("pieces are numbered by 32 bits");
            (*count, sum) = (sum, end);
        }
        let mut cursors = offsets.clone();
        let mut pieces = vec![Piece::default(); sum as usize];
        for_each_place(transactions, |item, begin, end| {
            for first in (begin..end).step_by(PIECE as usize) {
                let cursor = &mut cursors[item as usize];
                let piece = Piece { begin: first, end: end.min(first.saturating_add(PIECE)) };
                pieces[*cursor as usize] = piece;
                *cursor += 1;
            }
        });
        Self { offsets, pieces }
    }

    /// The number of pieces.
    #[must_use]
    pub fn len(&self) -> usize {
        self.pieces.len()
    }

    /// Whether no item follows another one.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }
}

/// Calls `place` with each item of each transaction and the range of the items after it.
fn for_each_place(transactions: Sets<'_>, mut place: impl FnMut(u32, u32, u32)) {
    let mut begin = 0_u32;
    for transaction in 0..transactions.len() {
        let held = transactions.set(transaction);
        let falls = held.windows(2).find(|pair| pair[0] >= pair[1]);
        assert!(falls.is_none(), "items {falls:?} of transaction {transaction} do not ascend");
        let end = begin + u32::try_from(held.len()).expect("offsets of sets have 32 bits");
        for (&item, after) in held.iter().zip(begin + 1..) {
            place(item, after, end);
        }
        begin = end;
    }
}

/// Transactions in a device's memory, for all chunks of strips that name them.
///
/// # Cost
///
/// 4 bytes an item of a transaction and 8 a piece.
#[derive(Debug)]
pub struct SparseRows {
    offsets: DeviceBuffer<u32>,
    pieces: DeviceBuffer<Piece>,
    tokens: DeviceBuffer<u32>,
    items: u32,
    /// Items of a transaction.
    mean: usize,
}

/// The transactions as kernels take them: `SparseRows` of `sparse.cu`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(super) struct SparseArgument {
    offsets: DevicePointer<u32>,
    pieces: DevicePointer<Piece>,
    items: DevicePointer<u32>,
}

impl SparseRows {
    /// Sends transactions of `items` items, numbered so that frequent ones come last: an item is
    /// counted once for each item before it. Waits for them.
    ///
    /// # Errors
    ///
    /// If they do not fit, or the driver fails.
    ///
    /// # Panics
    ///
    /// As [`Pieces::new`].
    pub fn upload(
        memory: &Arc<Memory>,
        items: u32,
        transactions: Sets<'_>,
    ) -> Result<Arc<Self>, DeviceError> {
        let Pieces { offsets: ends, pieces: cut } = Pieces::new(items, transactions);
        let mut offsets = memory.device_buffer(ends.len())?;
        let mut pieces = memory.device_buffer(cut.len())?;
        let mut tokens = memory.device_buffer(transactions.tokens().len())?;
        offsets.upload(&ends)?;
        pieces.upload(&cut)?;
        tokens.upload(transactions.tokens())?;
        let mean = transactions.tokens().len() / transactions.len().max(1);
        Ok(Arc::new(Self { offsets, pieces, tokens, items, mean }))
    }

    /// The number of items.
    #[must_use]
    pub fn items(&self) -> u32 {
        self.items
    }

    /// Lanes of a device that share a piece: about half as many as a mean piece has items, so that
    /// few lanes have nothing to do.
    pub(super) fn lanes(&self) -> u32 {
        match self.mean {
            0..12 => 4,
            12..60 => 8,
            60..120 => 16,
            _ => 32,
        }
    }

    pub(super) fn argument(&self) -> SparseArgument {
        SparseArgument {
            offsets: self.offsets.pointer(),
            pieces: self.pieces.pointer(),
            items: self.tokens.pointer(),
        }
    }
}
