//! Signatures: parities of hashed tokens.

use super::registers::{Kernel, Registers};

/// Tokens that are hashed at a time.
const LANES: usize = 8;

/// The arguments of [`sign_sets`](super::sign_sets).
pub(super) struct SignSets<'a> {
    pub(super) offsets: &'a [u32],
    pub(super) tokens: &'a [u32],
    pub(super) words: usize,
    pub(super) signatures: &'a mut [u64],
}

impl Kernel for SignSets<'_> {
    type Output = ();

    #[inline(always)]
    fn run<R: Registers>(self, _: R) {
        match self.words {
            1 => self.of_words::<1>(),
            2 => self.of_words::<2>(),
            4 => self.of_words::<4>(),
            _ => self.of_words::<8>(),
        }
    }
}

impl SignSets<'_> {
    #[inline(always)]
    fn of_words<const WORDS: usize>(self) {
        let Self { offsets, tokens, signatures, .. } = self;
        let (signatures, _) = signatures.as_chunks_mut::<WORDS>();
        for (ends, signature) in offsets.windows(2).zip(signatures) {
            *signature = sign_by_lanes(&tokens[ends[0] as usize..ends[1] as usize]);
        }
    }
}

#[inline(always)]
fn sign_by_lanes<const WORDS: usize>(tokens: &[u32]) -> [u64; WORDS] {
    let (blocks, rest) = tokens.as_chunks::<LANES>();
    let mut lanes = [[0_u64; LANES]; WORDS];
    for block in blocks {
        for lane in 0..LANES {
            let hash = hash(block[lane]);
            for (word, lanes) in lanes.iter_mut().enumerate() {
                let is_in = (hash >> 6) as usize % WORDS == word;
                lanes[lane] ^= u64::from(is_in) << (hash & 63);
            }
        }
    }
    let mut signature = lanes.map(|lanes| lanes.into_iter().fold(0, |all, lane| all ^ lane));
    for token in rest {
        add(&mut signature, *token);
    }
    signature
}

/// Writes the signature of one set.
#[inline(always)]
pub(super) fn sign_words<const WORDS: usize>(tokens: &[u32], signature: &mut [u64]) {
    let mut words = [0_u64; WORDS];
    tokens.iter().for_each(|token| add(&mut words, *token));
    signature.copy_from_slice(&words);
}

#[inline(always)]
fn add<const WORDS: usize>(signature: &mut [u64; WORDS], token: u32) {
    let hash = hash(token);
    signature[(hash >> 6) as usize % WORDS] ^= 1 << (hash & 63);
}

/// Nine bits of a token.
#[inline(always)]
fn hash(token: u32) -> u32 {
    token.wrapping_mul(0x9E37_79B1) >> 23
}
