//! Places of a byte in a text, and of the bits of masks.

use super::{Block, TEXT_BLOCK};
use crate::Isa;
use crate::simd::{Base, RunOn, dispatch};

/// Number of elements that `places` needs in addition to the places that are asked for: all places
/// of a block are written, even if fewer are asked for.
pub const PLACES_SLACK: usize = TEXT_BLOCK - 1;

/// Writes the places at which `text` has `byte`, in their order, and returns their number.
///
/// The length of `places` without [`PLACES_SLACK`] is the number of places that are asked for. The
/// call ends when it has found that many places or more.
///
/// # Shapes
///
/// `text`: less than 2^32 bytes; `places`: as many elements as places are asked for, and
/// [`PLACES_SLACK`]; elements past the places found may be overwritten.
///
/// # Examples
///
/// ```
/// use trommel_kernels::Isa;
/// use trommel_kernels::text::{PLACES_SLACK, places_of};
///
/// let mut places = [0; 10 + PLACES_SLACK];
/// let found = places_of(Isa::selected()?, b'\n', b"one\ntwo\n", &mut places);
/// assert_eq!(places[..found], [3, 7]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Cost
///
/// One comparison for the bytes of a register, and a few instructions for each place. A block of 64
/// bytes has a branch that depends on its places, and a second branch if it has more than 8 places.
///
/// # Panics
///
/// If `isa` is not available, or a shape is not as above.
pub fn places_of(isa: Isa, byte: u8, text: &[u8], places: &mut [u32]) -> usize {
    let (bytes, room) = (text.len(), places.len());
    assert!(u32::try_from(bytes).is_ok(), "{bytes} bytes: places have 32 bits");
    assert!(room >= PLACES_SLACK, "places need room for {PLACES_SLACK} more, not for {room}");
    dispatch::<Base, _>(isa, Places { byte, text, places })
}

/// Writes the places of the bits of `masks` that are set, in their order, and returns their number.
/// Bit `i` of mask `n` has the place `64 n + i`.
///
/// # Shapes
///
/// `places`: as many elements as bits are set, and [`TEXT_BLOCK`]; elements past the places found
/// may be overwritten.
///
/// # Examples
///
/// ```
/// use trommel_kernels::Isa;
/// use trommel_kernels::text::{TEXT_BLOCK, places_of_bits};
///
/// let mut places = [0; 3 + TEXT_BLOCK];
/// let found = places_of_bits(Isa::selected()?, &[0b101, 1 << 63], &mut places);
/// assert_eq!(places[..found], [0, 2, 127]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Cost
///
/// Some 30 instructions for each mask with AVX-512, and 60 without; no branch depends on a bit.
///
/// # Panics
///
/// If `isa` is not available, places have no room, or there are 2^26 masks or more.
pub fn places_of_bits(isa: Isa, masks: &[u64], places: &mut [u32]) -> usize {
    let bits = u32::try_from(masks.len() * TEXT_BLOCK);
    assert!(bits.is_ok(), "{} masks: places have 32 bits", masks.len());
    dispatch::<Base, _>(isa, PlacesOfBits { masks, places })
}

/// The arguments of [`places_of_bits`].
struct PlacesOfBits<'a> {
    masks: &'a [u64],
    places: &'a mut [u32],
}

impl<L: MatchBlock> RunOn<L, usize> for PlacesOfBits<'_> {
    #[inline(always)]
    fn run_on(self, level: L) -> usize {
        let Self { masks, places } = self;
        let mut found = 0;
        for (&bits, begin) in masks.iter().zip((0..).step_by(TEXT_BLOCK)) {
            let places = places[found..].first_chunk_mut().expect("room for a mask more");
            found += level.write_places(bits, begin, places);
        }
        found
    }
}

/// The arguments of [`places_of`].
struct Places<'a> {
    byte: u8,
    text: &'a [u8],
    places: &'a mut [u32],
}

/// The code of a level.
pub(super) trait MatchBlock: Copy {
    /// A bit for each byte of the block that is `byte`.
    fn matches(self, block: &Block, byte: u8) -> u64;

    /// Writes the places of the bits, where the lowest bit has the place `begin`; returns their
    /// number. Elements past the places may be overwritten.
    #[inline(always)]
    fn write_places(self, bits: u64, begin: u32, places: &mut [u32; TEXT_BLOCK]) -> usize {
        let mut found = 0;
        // Every block takes the same number of steps: no branch predictor knows the end of a loop
        // over the bits.
        for (byte, shift) in bits.to_le_bytes().into_iter().zip((0..).step_by(BITS)) {
            let OfByte { bits, count } = &OF_BYTES[usize::from(byte)];
            // `found` is at most the number of bits of the earlier bytes.
            let to: &mut [u32; BITS] = places[found..].first_chunk_mut().expect("a byte of bits");
            *to = bits.map(|bit| begin + shift + bit);
            found += count;
        }
        found
    }
}

/// The bits of a byte that are set, and their number.
#[derive(Clone, Copy)]
struct OfByte {
    bits: [u32; BITS],
    count: usize,
}

/// Bits of a byte.
const BITS: usize = u8::BITS as usize;

/// The bits of every byte value.
static OF_BYTES: [OfByte; 256] = {
    let mut all = [OfByte { bits: [0; BITS], count: 0 }; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut bit = 0;
        while bit < u8::BITS {
            if byte >> bit & 1 == 1 {
                all[byte].bits[all[byte].count] = bit;
                all[byte].count += 1;
            }
            bit += 1;
        }
        byte += 1;
    }
    all
};

impl<L: MatchBlock> RunOn<L, usize> for Places<'_> {
    #[inline(always)]
    fn run_on(self, level: L) -> usize {
        let Self { byte, text, places } = self;
        let (blocks, rest) = text.as_chunks();
        let mut found = 0;
        for (block, begin) in blocks.iter().zip((0..).step_by(TEXT_BLOCK)) {
            let Some(places) = places[found..].first_chunk_mut() else { return found };
            found += level.write_places(level.matches(block, byte), begin, places);
        }
        let Some(places) = places[found..].first_chunk_mut() else { return found };
        let mut last = [0; TEXT_BLOCK];
        last[..rest.len()].copy_from_slice(rest);
        let within = (1_u64 << rest.len()) - 1;
        let begin = u32::try_from(text.len() - rest.len()).expect("checked by `places_of`");
        found + level.write_places(level.matches(&last, byte) & within, begin, places)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Asks for `asked` places, again and again until the text ends.
    fn check(text: &[u8], byte: u8, asked: usize) {
        let all: Vec<u32> =
            (0..).zip(text).filter(|&(_, &other)| other == byte).map(|(place, _)| place).collect();
        for isa in Isa::available() {
            let mut places = vec![u32::MAX; asked + PLACES_SLACK];
            let found = places_of(isa, byte, text, &mut places);
            assert!(found >= asked.min(all.len()), "{isa}: {found} of {asked}");
            assert_eq!(places[..found], all[..found], "{isa}");
        }
    }

    #[test]
    fn every_number_of_places_in_a_block_is_written() {
        for places in 0..=TEXT_BLOCK {
            for shift in [0, 1, 63] {
                let mut text = vec![b'a'; shift];
                text.extend((0..TEXT_BLOCK).map(|place| if place < places { b'b' } else { b'c' }));
                (0..70).for_each(|asked| check(&text, b'b', asked));
            }
        }
    }

    #[test]
    fn the_zeros_after_the_text_are_not_found() {
        (0..130).for_each(|len| check(&vec![0; len], 0, 200));
        (0..130).for_each(|len| check(&vec![7; len], 0, 200));
    }

    #[test]
    fn bits_have_the_places_of_bytes() {
        for masks in [&[][..], &[0], &[u64::MAX, 0, u64::MAX, 1], &[0x8000_0000_0000_0001; 9]] {
            let is_set = |place: &u32| masks[*place as usize / 64] >> (place % 64) & 1 == 1;
            let end = u32::try_from(64 * masks.len()).unwrap();
            let expected: Vec<u32> = (0..end).filter(is_set).collect();
            for isa in Isa::available() {
                let mut places = vec![u32::MAX; expected.len() + TEXT_BLOCK];
                let found = places_of_bits(isa, masks, &mut places);
                assert_eq!(places[..found], expected, "{isa}");
            }
        }
    }

    #[test]
    #[should_panic(expected = "places need room for 63 more, not for 62")]
    fn places_without_slack_are_refused() {
        let _ = places_of(Isa::Scalar, 0, &[], &mut [0; 62]);
    }

    proptest! {
        #[test]
        fn levels_find_the_bytes_of_a_loop(
            text in prop::collection::vec(prop_oneof![any::<u8>(), 0..4_u8], 0..300),
            byte in prop_oneof![any::<u8>(), 0..4_u8],
            asked in 0..100_usize,
        ) {
            check(&text, byte, asked);
        }
    }
}
