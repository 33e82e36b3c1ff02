//! Repeatable random numbers.

/// Linear congruential generator, of which the upper bits are used.
pub(crate) struct Numbers(u64);

impl Default for Numbers {
    fn default() -> Self {
        Self(1)
    }
}

impl Numbers {
    /// Random number less than `end`.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let wide = u128::from(self.0 >> 16) * end as u128;
        usize::try_from(wide >> 48).expect("below `end`")
    }

    /// Random token less than `alphabet`: half of them from a tenth of the alphabet, and so on
    /// within it.
    pub(crate) fn token(&mut self, alphabet: usize) -> u32 {
        let mut end = alphabet;
        while end > 100 && self.below(2) == 0 {
            end /= 10;
        }
        u32::try_from(self.below(end)).expect("alphabets are below 2^32")
    }
}

/// The bytes of numbers, little-endian, as other programs read them.
pub(crate) fn bytes(numbers: impl IntoIterator<Item = u32>) -> Vec<u8> {
    numbers.into_iter().flat_map(u32::to_le_bytes).collect()
}
