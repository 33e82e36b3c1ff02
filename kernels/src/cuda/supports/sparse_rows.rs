//! Transactions on a device, and the pieces of transactions that precede each item.

#![expect(unsafe_code, reason = "a struct that kernels read")]

use std::sync::Arc;

use crate::cuda::driver::{DeviceBuffer, DeviceError, DevicePointer, Memory};
use crate::memory::Plain;
use crate::sets::Sets;

/// Maximum items of a short piece: few lanes of a device share a short piece. The further items of
/// a transaction are a tail.
const PIECE: u32 = 256;

/// Items of a transaction: `begin..end` of the items of all transactions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
struct RowPiece {
    begin: u32,
    end: u32,
}

// SAFETY: two `u32` in the order of the kernels' struct (`repr(C)`).
unsafe impl Plain for RowPiece {}

/// Transactions, made from tid lists, and the pieces that precede each item: for each item and each
/// transaction with the item, the earlier items of the transaction. At most 256 items are a short
/// piece, and the further items a tail.
#[derive(Clone, Debug)]
struct Pieces {
    short: PieceLists,
    tails: PieceLists,
    /// The items of all transactions.
    items: Vec<u32>,
}

/// Pieces by the item that they precede.
#[derive(Clone, Debug, Default)]
struct PieceLists {
    /// The first piece of each item, and the end.
    offsets: Vec<u32>,
    pieces: Vec<RowPiece>,
}

impl PieceLists {
    fn begin_item(&mut self) {
        self.offsets.push(u32::try_from(self.pieces.len()).expect("one a tid at most"));
    }

    fn push(&mut self, begin: u32, end: u32) {
        if begin < end {
            self.pieces.push(RowPiece { begin, end });
        }
    }
}

impl Pieces {
    /// Cuts the `transactions` of items with the given tid lists.
    fn new(lists: Sets<'_>, transactions: u32) -> Self {
        let begins = begins(lists, transactions);
        let mut ends = begins.clone();
        let mut items = vec![0; lists.tokens().len()];
        let (mut short, mut tails) = (PieceLists::default(), PieceLists::default());
        short.pieces.reserve(items.len());
        for (item, list) in (0..).zip((0..lists.len()).map(|item| lists.set(item))) {
            short.begin_item();
            tails.begin_item();
            for &tid in list {
                let (begin, end) = (begins[tid as usize], &mut ends[tid as usize]);
                items[*end as usize] = item;
                let middle = begin.saturating_add(PIECE).min(*end);
                short.push(begin, middle);
                tails.push(middle, *end);
                *end += 1;
            }
        }
        short.begin_item();
        tails.begin_item();
        Self { short, tails, items }
    }
}

/// The place of the first item of each transaction.
fn begins(lists: Sets<'_>, transactions: u32) -> Vec<u32> {
    let mut begins = vec![0_u32; transactions as usize];
    for &tid in lists.tokens() {
        assert!(tid < transactions, "tid {tid} of {transactions} transactions");
        begins[tid as usize] += 1;
    }
    let mut sum = 0;
    for begin in &mut begins {
        (*begin, sum) = (sum, sum + *begin);
    }
    begins
}

/// Transactions in a device's memory, for all chunks of strips that name them.
///
/// # Cost
///
/// 4 bytes for each item of a transaction, and 8 for each piece.
#[derive(Debug)]
pub struct SparseRows {
    short: PiecesOnDevice,
    tails: PiecesOnDevice,
    tokens: DeviceBuffer<u32>,
    items: u32,
    /// Mean number of items of a transaction.
    mean: u32,
}

/// [`PieceLists`] in a device's memory.
#[derive(Debug)]
struct PiecesOnDevice {
    offsets: DeviceBuffer<u32>,
    pieces: DeviceBuffer<RowPiece>,
}

/// Pieces as an argument of kernels: `PieceLists` of `sparse.cu`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct PiecesArgument {
    offsets: DevicePointer<u32>,
    pieces: DevicePointer<RowPiece>,
}

/// The transactions as an argument of kernels: `SparseRows` of `sparse.cu`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(super) struct SparseArgument {
    short: PiecesArgument,
    tails: PiecesArgument,
    items: DevicePointer<u32>,
}

impl PiecesOnDevice {
    fn upload(memory: &Arc<Memory>, lists: &PieceLists) -> Result<Self, DeviceError> {
        let offsets = uploaded(memory, &lists.offsets)?;
        Ok(Self { offsets, pieces: uploaded(memory, &lists.pieces)? })
    }

    fn argument(&self) -> PiecesArgument {
        PiecesArgument { offsets: self.offsets.pointer(), pieces: self.pieces.pointer() }
    }
}

fn uploaded<T: Plain>(memory: &Arc<Memory>, values: &[T]) -> Result<DeviceBuffer<T>, DeviceError> {
    let mut buffer = memory.device_buffer(values.len())?;
    buffer.upload(values)?;
    Ok(buffer)
}

impl SparseRows {
    /// Makes transactions from the tid lists of items, and sends the transactions. The work of all
    /// strips together is the same in any order of items; if frequent items are first, the work of
    /// single strips differs least.
    ///
    /// # Cost
    ///
    /// Two passes over all lists on the calling thread, which access the transactions in any order;
    /// 12 bytes for each tid over the bus, and 8 more if 256 items precede the item in the
    /// transaction. The call waits for the copies.
    ///
    /// # Errors
    ///
    /// If the transactions do not fit, or the driver fails.
    ///
    /// # Panics
    ///
    /// If a tid is not below `transactions`.
    pub fn upload(
        memory: &Arc<Memory>,
        lists: Sets<'_>,
        transactions: u32,
    ) -> Result<Arc<Self>, DeviceError> {
        let Pieces { short, tails, items: tokens } = Pieces::new(lists, transactions);
        let items = u32::try_from(lists.len()).expect("items are numbered by 32 bits");
        let tids = u32::try_from(tokens.len()).expect("offsets of sets have 32 bits");
        Ok(Arc::new(Self {
            short: PiecesOnDevice::upload(memory, &short)?,
            tails: PiecesOnDevice::upload(memory, &tails)?,
            tokens: uploaded(memory, &tokens)?,
            items,
            mean: tids / transactions.max(1),
        }))
    }

    /// The maximum bytes of transactions in a device's memory, with `tids` tids of all items
    /// together.
    #[must_use]
    pub fn bytes_max(items: u32, tids: u64) -> u64 {
        2 * 4 * (u64::from(items) + 1) + 20 * tids
    }

    /// The number of items.
    #[must_use]
    pub fn items(&self) -> u32 {
        self.items
    }

    /// The bytes that were sent.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let of = |pieces: &PiecesOnDevice| {
            pieces.offsets.len() * size_of::<u32>() + pieces.pieces.len() * size_of::<RowPiece>()
        };
        of(&self.short) + of(&self.tails) + self.tokens.len() * size_of::<u32>()
    }

    /// Lanes of a device that share a short piece: about half as many as a mean piece has items, so
    /// that few lanes are idle.
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
            short: self.short.argument(),
            tails: self.tails.argument(),
            items: self.tokens.pointer(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_before_another_one_are_a_short_piece_and_a_tail() {
        // Transactions {0, 2}, {} and {0, 1, 2}.
        let pieces = Pieces::new(Sets::new(&[0, 2, 3, 5], &[0, 2, 2, 0, 2]), 3);
        assert_eq!(pieces.items, [0, 2, 0, 1, 2]);
        assert_eq!(pieces.short.offsets, [0, 0, 1, 3]);
        let piece = |begin, end| RowPiece { begin, end };
        assert_eq!(pieces.short.pieces, [piece(2, 3), piece(0, 1), piece(2, 4)]);
        assert!(pieces.tails.pieces.is_empty());

        let ends: Vec<u32> = (0..=300).collect();
        let pieces = Pieces::new(Sets::new(&ends, &[0; 300]), 1);
        let last = |lists: &PieceLists| (lists.pieces.len(), lists.pieces.last().copied());
        assert_eq!(last(&pieces.short), (299, Some(piece(0, 256))));
        assert_eq!(last(&pieces.tails), (43, Some(piece(256, 299))));
        assert_eq!(pieces.tails.offsets[256..260], [0, 0, 1, 2]);
    }

    #[test]
    #[should_panic(expected = "tid 2 of 2 transactions")]
    fn a_tid_past_the_transactions_is_refused() {
        drop(Pieces::new(Sets::new(&[0, 1], &[2]), 2));
    }
}
