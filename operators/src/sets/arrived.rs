//! Sets in the order of arrival.

use super::side::Side;

/// Sets of one side in the order of arrival.
#[derive(Debug, Default)]
pub(super) struct ArrivedBlock {
    pub(super) side: Side,
    pub(super) ids: Vec<u32>,
    /// Start of each set among the tokens, and the end of the last one.
    pub(super) offsets: Vec<u32>,
    pub(super) tokens: Vec<u32>,
}

impl ArrivedBlock {
    /// A block without sets, with memory for the tokens that are expected.
    pub(super) fn with_capacity(side: Side, tokens: usize) -> Self {
        Self { side, offsets: vec![0], tokens: Vec::with_capacity(tokens), ..Self::default() }
    }

    pub(super) fn push(&mut self, id: u32, tokens: &[u32]) {
        self.ids.push(id);
        self.tokens.extend_from_slice(tokens);
        self.offsets.push(u32::try_from(self.tokens.len()).expect("at most 2^31 tokens"));
    }

    pub(super) fn set(&self, index: usize) -> &[u32] {
        &self.tokens[self.offsets[index] as usize..self.offsets[index + 1] as usize]
    }
}
