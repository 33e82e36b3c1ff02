//! All levels against the definitions of the standard library.

use proptest::prelude::*;

use super::*;

/// Kinds and lower case, byte by byte.
fn naive(text: &[u8]) -> (Vec<ByteKinds>, Vec<u8>) {
    let mask = |block: &[u8], is: fn(u8) -> bool| {
        (0..).zip(block).map(|(place, &byte)| u64::from(is(byte)) << place).sum()
    };
    let kinds = text.chunks(TEXT_BLOCK).map(|block| ByteKinds {
        letters: mask(block, |byte| byte.is_ascii_alphabetic()),
        digits: mask(block, |byte| byte.is_ascii_digit()),
        underscores: mask(block, |byte| byte == b'_'),
        join_letters: mask(block, |byte| b".':".contains(&byte)),
        join_digits: mask(block, |byte| b".',;".contains(&byte)),
        wide: mask(block, |byte| !byte.is_ascii()),
        leads: mask(block, |byte| byte >> 6 == 0b11),
        // Zeros follow the end of the text.
        ideographs: (0..block.len()).fold(0, |bits, place| {
            let next =
                if place + 1 < TEXT_BLOCK { block.get(place + 1).unwrap_or(&0) } else { &0xb7 };
            let is = matches!((block[place], next), (0xe5..=0xe9, _) | (0xe4, ..=0xb6 | 0xb8..));
            bits | u64::from(is) << place
        }),
    });
    let kinds: Vec<ByteKinds> = kinds.collect();
    let mut lower = text.to_ascii_lowercase();
    lower.resize(kinds.len() * TEXT_BLOCK, 0);
    (kinds, lower)
}

fn check(text: &[u8]) {
    let expected = naive(text);
    for isa in Isa::available() {
        // Both outputs are full of other values, which the call has to overwrite.
        let letters = ByteKinds { letters: u64::MAX, ..ByteKinds::default() };
        let (mut kinds, mut lower) = (vec![letters; expected.0.len()], expected.1.clone());
        lower.fill(b'?');
        byte_kinds(isa, text, &mut kinds, &mut lower);
        assert!((kinds, lower) == expected, "{isa}: {text:?}");
    }
}

#[test]
fn each_byte_has_its_kinds_in_each_place() {
    let all: Vec<u8> = (0..=u8::MAX).chain(0..=u8::MAX).collect();
    for begin in 0..=256 {
        check(&all[begin..begin + 256]);
    }
}

#[test]
#[should_panic(expected = "2 blocks need as many kinds, not 1")]
fn kinds_of_another_length_are_refused() {
    byte_kinds(Isa::Scalar, &[0; 65], &mut [ByteKinds::default()], &mut [0; 128]);
}

#[test]
#[should_panic(expected = "2 blocks need as many for the lower case, not 1")]
fn a_lower_case_of_another_length_is_refused() {
    byte_kinds(Isa::Scalar, &[0; 65], &mut [ByteKinds::default(); 2], &mut [0; 127]);
}

proptest! {
    #[test]
    fn texts_of_any_length_have_the_kinds_of_their_bytes(
        text in proptest::collection::vec(any::<u8>(), 0..200),
    ) {
        check(&text);
    }
}
