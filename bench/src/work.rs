//! Work of the stages of the measured pipelines, an item at a time. The program of the peers
//! compiles this file, too, so that all engines call the same functions.

/// Slots of the table of [`Sink::Hash`]: 512 KiB, more than the first-level cache.
const SLOTS: usize = 1 << 16;

/// Map of one item.
#[inline]
#[must_use]
pub fn mix(item: u64) -> u64 {
    item.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ (item >> 7)
}

/// True if the filter passes an item: three of four pass, in an order that no processor predicts.
#[inline]
#[must_use]
pub fn passes(item: u64) -> bool {
    item >> 40 & 3 != 0
}

/// Work of the last stage.
#[derive(Debug, Clone)]
pub enum Sink {
    /// Adds items up.
    Light(u64),
    /// Counts items in a hash table.
    Hash(Vec<u64>),
}

impl Sink {
    /// A sink that adds up.
    #[must_use]
    pub fn light() -> Self {
        Self::Light(0)
    }

    /// A sink that counts in a table.
    #[must_use]
    pub fn hash() -> Self {
        Self::Hash(vec![0; SLOTS])
    }

    /// Takes a batch.
    #[inline(never)]
    pub fn take_batch(&mut self, items: &[u64]) {
        match self {
            Self::Light(sum) => {
                *sum = items.iter().fold(*sum, |sum, &item| sum.wrapping_add(item));
            }
            Self::Hash(table) => items.iter().for_each(|&item| table[slot(item)] += 1),
        }
    }

    /// Checksum of all items taken.
    #[must_use]
    pub fn answer(&self) -> u64 {
        match self {
            Self::Light(sum) => *sum,
            Self::Hash(table) => (1..)
                .zip(table)
                .fold(0_u64, |sum, (slot, &count)| sum.wrapping_add(count.wrapping_mul(slot))),
        }
    }
}

/// Slot of an item in the table of [`Sink::Hash`].
///
/// # Panics
/// Never: 16 bits fit a `usize`.
#[inline]
#[must_use]
pub fn slot(item: u64) -> usize {
    usize::try_from(item.wrapping_mul(0xD6E8_FEB8_6659_FD93) >> 48).expect("16 bits") % SLOTS
}
