//! A block of slots in registers, as a trait that each level implements.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod portable;
pub(super) mod scalar;

use super::map::Block;
use super::slot::{codes, flags};

/// The bits that are compared in a table, in each byte.
#[derive(Clone, Copy)]
pub(super) struct Compared<V> {
    /// Bits that must be equal in all slots: the code.
    pub(super) codes: V,
    /// Flags: each must be set in one slot at least.
    pub(super) flags: V,
    /// The codes and the flags.
    pub(super) all: V,
    /// The number 1, which is added to a count.
    pub(super) one: V,
}

/// A level that compares blocks of slots.
pub(super) trait Slots: Copy {
    /// A block, or a count for each slot.
    type Bytes: Copy;

    /// The block with `byte` in each slot.
    fn splat(self, byte: u8) -> Self::Bytes;

    /// Loads a block.
    fn load(self, block: &Block) -> Self::Bytes;

    /// Adds one to the counts of the slots in which two sets have a common element that is
    /// counted in the table.
    fn count_pair(
        self,
        counts: Self::Bytes,
        slots: [Self::Bytes; 2],
        compared: Compared<Self::Bytes>,
    ) -> Self::Bytes;

    /// As [`Self::count_pair`] for three sets. In the last table an odd number of slots must have
    /// each flag.
    fn count_triple<const IS_LAST: bool>(
        self,
        counts: Self::Bytes,
        slots: [Self::Bytes; 3],
        compared: Compared<Self::Bytes>,
    ) -> Self::Bytes;

    /// The sum of all counts.
    fn sum(self, counts: Self::Bytes) -> u32;
}

impl<V> Compared<V> {
    /// The bits of a table.
    #[inline(always)]
    pub(super) fn of<const D: usize, S: Slots<Bytes = V>>(level: S, table: usize) -> Self {
        let (codes, flags) = (codes::<D>(), flags::<D>(table));
        Self {
            codes: level.splat(codes),
            flags: level.splat(flags),
            all: level.splat(codes | flags),
            // The number is opaque to the optimizer, which would turn the masked addition of a
            // known 1 into two instructions: the mask as a vector, and a subtraction.
            one: level.splat(std::hint::black_box(1)),
        }
    }
}
