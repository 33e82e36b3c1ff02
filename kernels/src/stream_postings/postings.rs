//! The arguments and the answer of a call.

/// The maximum size, and the maximum position, that a posting can hold; it also stands for all
/// greater sizes and positions.
pub const PLACE_MAX: u16 = u16::MAX;

/// A set that has a token in its prefix.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Posting {
    /// The number of the set.
    pub set: u32,
    /// The number of tokens of the set, at most [`PLACE_MAX`].
    pub size: u16,
    /// The position of the token in the set, at most [`PLACE_MAX`].
    pub position: u16,
    /// The signature of the set.
    pub signature: u64,
}

/// A probe of a list, with its bounds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LookUp {
    /// The first posting of the list.
    pub begin: u32,
    /// The number of postings of the list.
    pub len: u32,
    /// The signature of the probe.
    pub signature: u64,
    /// The maximum number of bits in which signatures may differ.
    pub distance_max: u32,
    /// The minimum size of a set.
    pub size_min: u16,
    /// The maximum size of a set, not below the minimum.
    pub size_max: u16,
}

impl LookUp {
    #[inline(always)]
    pub(super) fn passes(&self, posting: &Posting) -> bool {
        let distance = (posting.signature ^ self.signature).count_ones();
        // One comparison for both bounds: sizes below the minimum wrap to great numbers.
        let above = posting.size.wrapping_sub(self.size_min);
        (distance <= self.distance_max) & (above <= self.size_max - self.size_min)
    }
}

/// A posting that has passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hit {
    /// The index of the look-up.
    pub look_up: u32,
    /// The index of the posting.
    pub posting: u32,
}
