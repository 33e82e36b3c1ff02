//! Tid lists by blocks of transactions, the form that goes over the bus.

use crate::sets::Sets;

/// Transactions of a block: a tid inside a block has 16 bits. `supports.cu` has the same number.
pub const BLOCK: u32 = 1 << 16;

/// Lists on a device are numbered by 31 bits.
const LISTS_MAX: usize = 1 << 31;

/// The tid lists of items, each cut into blocks of [`BLOCK`] transactions.
///
/// # Shapes
///
/// `offsets: u32[items * blocks + 1]` ascending, from 0 to `tids.len()`, where `blocks` is
/// `transactions / BLOCK` rounded up: the list of an item and a block is at `item * blocks +
/// block`. `tids: u16[]`, the transactions of the list, less the first transaction of its block;
/// each tid is below the transactions of the block, and a tid that is not is ignored. The order of
/// tids inside a list does not matter.
///
/// # Examples
///
/// ```
/// use trommel_kernels::cuda::supports::{BLOCK, TidBlocks};
/// use trommel_kernels::sets::Sets;
///
/// // Items 0 and 1 are in the transactions {1, 65,537} and {65,536}.
/// let lists = Sets::new(&[0, 2, 3], &[1, BLOCK + 1, BLOCK]);
/// let (mut offsets, mut tids) = (vec![0; TidBlocks::offsets_len(2, BLOCK + 2)], vec![0; 3]);
/// TidBlocks::cut(lists, BLOCK + 2, &mut offsets, &mut tids);
/// assert_eq!((&offsets[..], &tids[..]), (&[0, 1, 2, 2, 3][..], &[1, 1, 0][..]));
/// let blocks = TidBlocks::new(2, BLOCK + 2, &offsets, &tids);
/// assert_eq!((blocks.items(), blocks.transactions()), (2, BLOCK + 2));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct TidBlocks<'a> {
    items: u32,
    transactions: u32,
    offsets: &'a [u32],
    tids: &'a [u16],
}

impl<'a> TidBlocks<'a> {
    /// The lists of `items` items, of transactions below `transactions`.
    ///
    /// # Panics
    ///
    /// If the offsets are not as above, or there are more than 2^31 lists.
    #[must_use]
    pub fn new(items: u32, transactions: u32, offsets: &'a [u32], tids: &'a [u16]) -> Self {
        let (expected, found) = (Self::offsets_len(items, transactions), offsets.len());
        assert!(
            expected == found,
            "{items} items of {transactions} transactions need {expected} offsets, not {found}"
        );
        let ends = [offsets[0] as usize, offsets[found - 1] as usize];
        let len = tids.len();
        assert!(ends == [0, len], "offsets from {} to {} of {len} tids", ends[0], ends[1]);
        let falls = offsets.windows(2).position(|ends| ends[0] > ends[1]);
        assert!(falls.is_none(), "offsets fall after {:?}", falls.unwrap_or_default());
        Self { items, transactions, offsets, tids }
    }

    /// The number of offsets for `items` items and `transactions` transactions.
    ///
    /// # Panics
    ///
    /// If there are more than 2^31 lists.
    #[must_use]
    pub fn offsets_len(items: u32, transactions: u32) -> usize {
        let lists = items as usize * transactions.div_ceil(BLOCK) as usize;
        assert!(lists <= LISTS_MAX, "{lists} lists of an item and a block exceed {LISTS_MAX}");
        lists + 1
    }

    /// Cuts whole tid lists into blocks.
    ///
    /// # Shapes
    ///
    /// `lists`: ascending, tokens below `transactions`. `offsets: u32[Self::offsets_len(..)]` and
    /// `tids: u16[lists.tokens().len()]`, overwritten.
    ///
    /// # Panics
    ///
    /// If a shape is not as above.
    pub fn cut(lists: Sets<'_>, transactions: u32, offsets: &mut [u32], tids: &mut [u16]) {
        let items = u32::try_from(lists.len()).expect("items are numbered by 32 bits");
        let (expected, found) = (Self::offsets_len(items, transactions), offsets.len());
        assert!(expected == found, "{items} items need {expected} offsets, not {found}");
        let (given, room) = (lists.tokens().len(), tids.len());
        assert!(given == room, "{given} transactions need as many tids, not {room}");
        let (mut at, mut list) = (0, 0);
        for item in 0..lists.len() {
            let mut rest = lists.set(item);
            let last = rest.last().copied().unwrap_or(0);
            let is_inside = rest.is_empty() || last < transactions;
            assert!(is_inside, "transaction {last} of item {item} is not below {transactions}");
            for block in 0..transactions.div_ceil(BLOCK) {
                offsets[list] = at;
                list += 1;
                let (own, after) = rest.split_at(rest.partition_point(|tid| tid / BLOCK == block));
                for (&tid, place) in own.iter().zip(&mut tids[at as usize..]) {
                    *place = in_block(tid);
                }
                at += u32::try_from(own.len()).expect("offsets of sets have 32 bits");
                rest = after;
            }
        }
        offsets[list] = at;
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

    pub(super) fn offsets(&self) -> &'a [u32] {
        self.offsets
    }

    pub(super) fn tids(&self) -> &'a [u16] {
        self.tids
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the lower half of a transaction")]
fn in_block(tid: u32) -> u16 {
    tid as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[should_panic(expected = "2 items of 65537 transactions need 5 offsets, not 3")]
    fn offsets_for_each_block_are_demanded() {
        let _ = TidBlocks::new(2, BLOCK + 1, &[0, 1, 1], &[0]);
    }

    #[test]
    #[should_panic(expected = "offsets from 0 to 1 of 2 tids")]
    fn offsets_end_at_the_last_tid() {
        let _ = TidBlocks::new(1, 5, &[0, 1], &[0, 1]);
    }

    #[test]
    #[should_panic(expected = "offsets fall after 1")]
    fn offsets_ascend() {
        let _ = TidBlocks::new(3, 5, &[0, 2, 1, 2], &[0, 1]);
    }

    #[test]
    #[should_panic(expected = "transaction 7 of item 0 is not below 7")]
    fn transactions_are_below_their_number() {
        TidBlocks::cut(Sets::new(&[0, 1], &[7]), 7, &mut [0; 2], &mut [0]);
    }

    #[test]
    #[should_panic(expected = "lists of an item and a block exceed 2147483648")]
    fn more_lists_than_a_device_numbers_are_refused() {
        let _ = TidBlocks::offsets_len(u32::MAX, BLOCK + 1);
    }
}
