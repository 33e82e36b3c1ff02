//! Random tid lists, for the kernels alone.

use trommel_kernels::sets::Sets;

use crate::runner::numbers::Numbers;

/// Tid lists of some items.
pub(super) struct Lists {
    offsets: Vec<u32>,
    tids: Vec<u32>,
}

impl Lists {
    /// Lists of `items` items. Each item is in each of `transactions` transactions with a
    /// probability of `percent` percent.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of 2^32")]
    pub(super) fn random(items: u32, transactions: u32, percent: f64) -> Self {
        let (mut offsets, mut tids) = (vec![0], Vec::new());
        let mut numbers = Numbers::default();
        let limit = (percent / 100.0 * f64::from(u32::MAX)) as usize;
        for _ in 0..items {
            tids.extend((0..transactions).filter(|_| numbers.below(1 << 32) < limit));
            offsets.push(u32::try_from(tids.len()).expect("fewer than 2^32"));
        }
        Self { offsets, tids }
    }

    pub(super) fn sets(&self) -> Sets<'_> {
        Sets::new(&self.offsets, &self.tids)
    }

    /// Number of items in all transactions together.
    pub(super) fn len(&self) -> usize {
        self.tids.len()
    }

    /// The sum of the supports of all pairs. An array of `transactions` marks holds the
    /// transactions of an item, and the tids of each later item are looked up in the array.
    pub(super) fn by_hand(&self, transactions: u32) -> u64 {
        let sets = self.sets();
        let mut sum = 0;
        for left in 0..sets.len() {
            let mut marks = vec![false; transactions as usize];
            sets.set(left).iter().for_each(|&tid| marks[tid as usize] = true);
            for right in left + 1..sets.len() {
                sum += sets.set(right).iter().filter(|&&tid| marks[tid as usize]).count() as u64;
            }
        }
        sum
    }
}
