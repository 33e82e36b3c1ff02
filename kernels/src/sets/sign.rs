//! Signatures: parities of hashed tokens.

use std::array;

use crate::Isa;
#[cfg(target_arch = "x86_64")]
use crate::simd::{Avx2, Avx512};
use crate::simd::{Base, Portable, RunOn, Scalar, dispatch};

/// Number of tokens that are hashed at a time, for signatures of one or two words.
const LANES: usize = 8;

/// Writes the signatures of sets, one after another, as [`sign`] writes each.
///
/// # Shapes
///
/// Set `i` is `tokens[offsets[i]..offsets[i + 1]]`; `signatures`: `words` words for each set,
/// overwritten.
///
/// # Examples
///
/// ```
/// use trommel_kernels::Isa;
/// use trommel_kernels::sets::{sign, sign_sets};
///
/// let (offsets, tokens) = ([0, 3, 5], [3, 8, 9, 5, 8]);
/// let mut signatures = [0; 2];
/// sign_sets(Isa::Scalar, &offsets, &tokens, 1, &mut signatures);
///
/// let mut signature = [0];
/// sign(&[5, 8], &mut signature);
/// assert_eq!(signatures[1], signature[0]);
/// // Each token that is in one of two sets only changes one bit at most.
/// assert!((signatures[0] ^ signatures[1]).count_ones() <= 3);
/// ```
///
/// # Cost
///
/// Reads 4 B for each token. With vector instructions, eight tokens cost about six instructions for
/// each word; with four words and more, a token costs four instructions for each register of words.
///
/// # Panics
///
/// If `isa` is not available, or a shape is not as above.
pub fn sign_sets(isa: Isa, offsets: &[u32], tokens: &[u32], words: usize, signatures: &mut [u64]) {
    let is_width = matches!(words, 1 | 2 | 4 | 8);
    assert!(is_width, "signatures of {words} words; allowed are 1, 2, 4 and 8");
    let (sets, len) = (offsets.len().saturating_sub(1), signatures.len());
    assert!(len == words * sets, "{sets} sets need {words} words each, not {len}");
    dispatch::<Base, _>(isa, SignSets { offsets, tokens, words, signatures });
}

/// Writes the signature of a set: bit `h` is the parity of the tokens with the hash `h`.
///
/// A signature of fewer words is the exclusive or of the words of a longer signature.
///
/// # Shapes
///
/// `tokens`: any; `signature`: 1, 2, 4 or 8 words, overwritten.
///
/// # Cost
///
/// A multiplication and a store for each token.
///
/// # Panics
///
/// If `signature` has another number of words.
#[inline]
pub fn sign(tokens: &[u32], signature: &mut [u64]) {
    match signature.len() {
        1 => signature.copy_from_slice(&sign_by_tokens::<1>(tokens)),
        2 => signature.copy_from_slice(&sign_by_tokens::<2>(tokens)),
        4 => signature.copy_from_slice(&sign_by_tokens::<4>(tokens)),
        8 => signature.copy_from_slice(&sign_by_tokens::<8>(tokens)),
        words => panic!("signatures of {words} words; allowed are 1, 2, 4 and 8"),
    }
}

/// The arguments of [`sign_sets`].
struct SignSets<'a> {
    offsets: &'a [u32],
    tokens: &'a [u32],
    words: usize,
    signatures: &'a mut [u64],
}

/// A level that signs.
trait SignLevel {
    /// Whether the level shifts each lane by a count of its own, in one instruction.
    const SHIFTS_LANES: bool;
}

impl SignLevel for Scalar {
    const SHIFTS_LANES: bool = false;
}

impl SignLevel for Portable {
    const SHIFTS_LANES: bool = false;
}

#[cfg(target_arch = "x86_64")]
impl SignLevel for Avx2 {
    const SHIFTS_LANES: bool = true;
}

#[cfg(target_arch = "x86_64")]
impl<E> SignLevel for Avx512<E> {
    const SHIFTS_LANES: bool = true;
}

/// The compiler vectorizes these loops for each level.
impl<L: SignLevel> RunOn<L> for SignSets<'_> {
    #[inline(always)]
    fn run_on(self, _: L) {
        match self.words {
            1 => self.of_words::<1, L>(),
            2 => self.of_words::<2, L>(),
            4 => self.of_words::<4, L>(),
            _ => self.of_words::<8, L>(),
        }
    }
}

impl SignSets<'_> {
    #[inline(always)]
    fn of_words<const WORDS: usize, L: SignLevel>(self) {
        let Self { offsets, tokens, signatures, .. } = self;
        let (signatures, _) = signatures.as_chunks_mut::<WORDS>();
        for (ends, signature) in offsets.windows(2).zip(signatures) {
            let set = &tokens[ends[0] as usize..ends[1] as usize];
            *signature = match WORDS {
                ..4 => sign_by_lanes(set),
                4.. if L::SHIFTS_LANES => sign_by_words(set),
                4.. => sign_by_tokens(set),
            };
        }
    }
}

/// Signs with the words of different tokens in each lane.
#[inline(always)]
fn sign_by_lanes<const WORDS: usize>(tokens: &[u32]) -> [u64; WORDS] {
    let (blocks, rest) = tokens.as_chunks::<LANES>();
    let mut lanes = [[0_u64; LANES]; WORDS];
    for block in blocks {
        for lane in 0..LANES {
            let hash = hash(block[lane]);
            for (word, lanes) in lanes.iter_mut().enumerate() {
                // Every word gets a shift, of 0 in all words but one: an index that depends on the
                // token would keep the words in memory.
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

/// Signs with a word of the signature in each lane.
#[inline(always)]
fn sign_by_words<const WORDS: usize>(tokens: &[u32]) -> [u64; WORDS] {
    let begins: [u64; WORDS] = array::from_fn(|word| 64 * word as u64);
    let mut signature = [0; WORDS];
    for token in tokens {
        let hash = u64::from(hash(*token)) % (64 * WORDS as u64);
        for (word, begin) in signature.iter_mut().zip(begins) {
            // The condition is the behaviour of the vector shift: it gives 0 in all words but one.
            let bit = hash.wrapping_sub(begin);
            *word ^= if bit < 64 { 1 << bit } else { 0 };
        }
    }
    signature
}

/// Signs with a store for each token.
#[inline(always)]
fn sign_by_tokens<const WORDS: usize>(tokens: &[u32]) -> [u64; WORDS] {
    let mut signature = [0; WORDS];
    tokens.iter().for_each(|token| add(&mut signature, *token));
    signature
}

#[inline(always)]
fn add<const WORDS: usize>(signature: &mut [u64; WORDS], token: u32) {
    let hash = hash(token);
    signature[(hash >> 6) as usize % WORDS] ^= 1 << (hash & 63);
}

/// Nine bits of a token: the highest bits of its product with a prime near 2^32 divided by the
/// golden ratio. These bits depend on all bits of the token.
#[inline(always)]
fn hash(token: u32) -> u32 {
    token.wrapping_mul(0x9E37_79B1) >> 23
}
