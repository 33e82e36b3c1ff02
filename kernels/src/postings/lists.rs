//! Lists of postings.

/// The mark for no previous token, for the first token of a set: no token is as great.
pub const NO_TOKEN: u32 = u32::MAX;

/// The bit of [`Posting::set`] that tells the side of the set; all other bits are the number of the
/// set.
pub const SIDE_BIT: u32 = 1 << 31;

/// The maximum position that a posting can hold; it also stands for all greater positions.
pub const POSITION_MAX: u32 = 0xffff;

/// A set that has a token in its prefix.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Posting {
    /// The rank of the set's size, shifted by 16, and the position of the token in the set, or
    /// [`POSITION_MAX`] if the position is greater.
    pub place: u32,
    /// The number of the set, and its side.
    pub set: u32,
    /// The previous token of the set, or [`NO_TOKEN`].
    pub before: u32,
}

/// The postings of a range of tokens, and the signatures of all sets.
#[derive(Clone, Copy, Debug)]
pub struct Lists<'a> {
    /// The end of each list; a list begins at the end of the previous list, the first list at 0.
    pub ends: &'a [u32],
    /// The postings of all lists; within a list sets ascend, and so do their ranks.
    pub postings: &'a [Posting],
    /// Words of a signature: 0, 1, 2, 4 or 8.
    pub words: usize,
    /// The signature of each set, set after set.
    pub signatures: &'a [u64],
    /// Whether two sides are joined to each other, instead of one side to itself.
    pub is_two_sided: bool,
}

impl Lists<'_> {
    pub(super) fn check(&self) {
        let words = self.words;
        let is_width = matches!(words, 0 | 1 | 2 | 4 | 8);
        assert!(is_width, "signatures of {words} words; allowed are 0, 1, 2, 4 and 8");
        let (last, postings) = (self.ends.last().map_or(0, |end| *end), self.postings.len());
        assert!(last as usize <= postings, "lists up to {last} of {postings} postings");
    }
}
