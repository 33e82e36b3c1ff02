//! Texts that are parts of a larger text: their bytes one after another, and their keys.
//!
//! A short part is read at once, as a register, whatever its length, and the bytes after it are
//! masked out or overwritten: the processor cannot predict the lengths of words, so a loop over
//! their bytes would mispredict its end.

#![expect(
    unsafe_code,
    reason = "all ranges are checked at once: checks of each take as long as a copy"
)]

use arrow_array::OffsetSizeTrait;
use wide::u8x16;

/// Bytes of a register, which are copied at once, and of a key.
const REGISTER: usize = 16;

/// Bytes of a longer text that are copied at once: a cache line.
const LINE: usize = 64;

/// Appends parts of `text` to `bytes`, and the length of `bytes` after each part to `offsets`.
///
/// # Shapes
///
/// `begins`, `ends`: the first byte of each part, and the first byte after it.
///
/// # Examples
///
/// ```
/// use trommel_kernels::text::append_parts;
///
/// let (mut bytes, mut offsets) = (Vec::new(), vec![0]);
/// append_parts(b"one, two", &[0, 5], &[3, 8], &mut bytes, &mut offsets);
/// assert_eq!((&bytes[..], &offsets[..]), (&b"onetwo"[..], &[0, 3, 6][..]));
/// ```
///
/// # Cost
///
/// Some ten instructions for a part of up to 16 bytes, a few more for a part of up to 64 bytes, a
/// copy of the bytes for a longer part.
///
/// # Panics
///
/// If there are not as many begins as ends, a part is not within `text`, or `bytes` would have
/// 2^31 bytes.
pub fn append_parts(
    text: &[u8],
    begins: &[u32],
    ends: &[u32],
    bytes: &mut Vec<u8>,
    offsets: &mut Vec<i32>,
) {
    assert_eq!(begins.len(), ends.len(), "each part begins and ends");
    let text_len = u32::try_from(text.len()).expect("places have 32 bits");
    let mut is_within = true;
    for (&begin, &end) in begins.iter().zip(ends) {
        is_within &= (begin <= end) & (end <= text_len);
    }
    assert!(is_within, "parts are within {text_len} bytes");
    let len = |(&begin, &end): (&u32, &u32)| u64::from(end - begin);
    let appended: u64 = begins.iter().zip(ends).map(len).sum();
    let before = bytes.len();
    let is_small = (before as u64).checked_add(appended).is_some_and(|len| len < 1 << 31);
    assert!(is_small, "{before} bytes and {appended} more: offsets have 31 bits");
    let appended = usize::try_from(appended).expect("bytes in memory");
    // There is room for the excess bytes that are copied with the last part.
    bytes.reserve(appended + LINE);
    offsets.reserve(begins.len());
    let mut to = before;
    for ((&begin, &end), offset) in begins.iter().zip(ends).zip(offsets.spare_capacity_mut()) {
        let (begin, len) = (begin as usize, (end - begin) as usize);
        let rest = text.len() - begin;
        // SAFETY: the part is within the text, so `begin` is no more than its length.
        let from = unsafe { text.as_ptr().add(begin) };
        // SAFETY: all parts before have their place within the room that was reserved.
        let room = unsafe { bytes.as_mut_ptr().add(to) };
        let copied = match len {
            ..=REGISTER if rest >= REGISTER => REGISTER,
            ..=LINE if rest >= LINE => LINE,
            _ => len,
        };
        // A copy of a fixed length is a few instructions. In all three, the text has `copied` bytes
        // from `from` on, there is room for all parts and a line more, and a vector that is
        // borrowed as mutable does not overlap the text.
        match copied {
            // SAFETY: as above.
            REGISTER => unsafe { room.copy_from_nonoverlapping(from, REGISTER) },
            // SAFETY: as above.
            LINE => unsafe { room.copy_from_nonoverlapping(from, LINE) },
            // SAFETY: as above.
            _ => unsafe { room.copy_from_nonoverlapping(from, len) },
        }
        to += len;
        offset.write(i32::try_from(to).expect("checked above"));
    }
    assert_eq!(to - before, appended, "the lengths of all parts");
    // SAFETY: there is room for these bytes, and each has been written: parts follow each other.
    unsafe { bytes.set_len(to) };
    let len = offsets.len() + begins.len();
    // SAFETY: there is room for an offset for each part, and each has been written.
    unsafe { offsets.set_len(len) };
}

/// The mask and the last byte that make a key of the bytes of a text.
#[derive(Clone, Copy)]
struct OfLen {
    /// Ones for the bytes of the text.
    mask: u8x16,
    /// The length in the last byte.
    last: u8x16,
}

/// The masks and last bytes of every length; the last element serves longer texts.
static OF_LEN: [OfLen; REGISTER] = {
    let zeros = OfLen { mask: u8x16::new([0; REGISTER]), last: u8x16::new([0; REGISTER]) };
    let mut all = [zeros; REGISTER];
    let mut len = 0_u8;
    while (len as usize) < REGISTER {
        let (mut mask, mut last) = ([0; REGISTER], [0; REGISTER]);
        let mut place = 0;
        while place < len as usize {
            mask[place] = 0xff;
            place += 1;
        }
        last[REGISTER - 1] = len;
        all[len as usize] = OfLen { mask: u8x16::new(mask), last: u8x16::new(last) };
        len += 1;
    }
    all
};

/// Writes the keys of the texts between neighbouring `offsets` of `bytes` that have less than 16
/// bytes: the text, zeros, and its length in the last byte. Returns whether there are longer texts;
/// the keys of longer texts have no meaning.
///
/// # Shapes
///
/// `offsets`: one more than `keys`.
///
/// # Examples
///
/// ```
/// use trommel_kernels::text::short_keys;
///
/// let mut keys = [[0; 2]; 2];
/// assert!(!short_keys(b"onetwo", &[0, 3, 6], &mut keys));
/// assert_eq!(keys[1], [u64::from_le_bytes(*b"two\0\0\0\0\0"), 3 << 56]);
/// ```
///
/// # Cost
///
/// Some ten instructions for each text, and no branch that depends on the text.
///
/// # Panics
///
/// If `offsets` does not ascend from 0 or more, is past the end, or has another shape.
#[must_use = "the keys of longer texts have no meaning"]
pub fn short_keys<O: OffsetSizeTrait>(bytes: &[u8], offsets: &[O], keys: &mut [[u64; 2]]) -> bool {
    assert_eq!(offsets.len(), keys.len() + 1, "a text is between two offsets");
    let (mut ascend, mut longest) = (offsets[0] >= O::zero(), O::zero());
    for [begin, end] in offsets.array_windows() {
        ascend &= begin <= end;
        longest = longest.max(*end - *begin);
    }
    let last = offsets[keys.len()].as_usize();
    assert!(ascend && last <= bytes.len(), "offsets ascend from 0 to {} or less", bytes.len());
    // Offsets ascend, so the texts from which a whole register can be read come first.
    let whole = |offset: &O| offset.as_usize() + REGISTER <= bytes.len();
    let wholes = offsets[..keys.len()].partition_point(whole);
    let (first, last) = keys.split_at_mut(wholes);
    for ([begin, end], key) in offsets.array_windows().zip(first) {
        let begin = begin.as_usize();
        // SAFETY: a register from `begin` on is within `bytes`.
        let from = unsafe { bytes.as_ptr().add(begin) };
        // SAFETY: as above; no alignment is needed.
        let first = unsafe { from.cast::<[u8; REGISTER]>().read_unaligned() };
        *key = key_of(first, end.as_usize() - begin);
    }
    for ([begin, end], key) in offsets[wholes..].array_windows().zip(last) {
        let rest = &bytes[begin.as_usize()..];
        let mut first = [0; REGISTER];
        first[..rest.len()].copy_from_slice(rest);
        *key = key_of(first, end.as_usize() - begin.as_usize());
    }
    longest.as_usize() >= REGISTER
}

/// The key of the text of this length that begins with these bytes.
#[inline(always)]
fn key_of(first: [u8; REGISTER], len: usize) -> [u64; 2] {
    let OfLen { mask, last } = OF_LEN[len.min(REGISTER - 1)];
    let key = u8x16::new(first) & mask | last;
    let (words, _) = key.as_array().as_chunks();
    [words[0], words[1]].map(u64::from_le_bytes)
}

#[cfg(test)]
mod tests {
    use std::panic::catch_unwind;

    use proptest::prelude::*;

    use super::*;

    /// The parts, appended by a simple loop.
    fn appended(text: &[u8], parts: &[(u32, u32)], before: &[u8]) -> (Vec<u8>, Vec<i32>) {
        let (mut bytes, mut offsets) = (before.to_vec(), vec![7]);
        for &(begin, end) in parts {
            (begin..end).for_each(|place| bytes.push(text[place as usize]));
            offsets.push(i32::try_from(bytes.len()).unwrap());
        }
        (bytes, offsets)
    }

    fn append(text: &[u8], parts: &[(u32, u32)], before: &[u8]) -> (Vec<u8>, Vec<i32>) {
        let (begins, ends): (Vec<_>, Vec<_>) = parts.iter().copied().unzip();
        let (mut bytes, mut offsets) = (before.to_vec(), vec![7]);
        append_parts(text, &begins, &ends, &mut bytes, &mut offsets);
        (bytes, offsets)
    }

    #[test]
    fn parts_of_every_length_are_appended_from_every_place() {
        let text: Vec<u8> = (0..200).collect();
        for begin in 0..=text.len() {
            for end in begin..=text.len() {
                let part = [begin, end].map(|place| u32::try_from(place).unwrap()).into();
                let parts = [part, part];
                assert_eq!(append(&text, &parts, b"ab"), appended(&text, &parts, b"ab"));
            }
        }
    }

    #[test]
    fn parts_past_the_text_are_refused() {
        for part in [(0, 4), (4, 4), (2, 1), (u32::MAX, u32::MAX)] {
            assert!(catch_unwind(|| append(b"abc", &[(0, 1), part], b"")).is_err(), "{part:?}");
        }
        assert!(catch_unwind(|| append_parts(b"a", &[0], &[], &mut vec![], &mut vec![])).is_err());
    }

    #[test]
    fn offsets_that_are_none_are_refused() {
        let offsets = [&[-1, 0][..], &[0, 4], &[2, 1], &[0, 3, 2], &[0, i32::MIN], &[0]];
        for offsets in offsets {
            let mut keys = vec![[0; 2]; 2.min(offsets.len())];
            keys.truncate(if offsets.len() > 1 { offsets.len() - 1 } else { 1 });
            let result = catch_unwind(move || short_keys(b"abc", offsets, &mut keys));
            assert!(result.is_err(), "{offsets:?}");
        }
    }

    proptest! {
        #[test]
        fn parts_are_those_of_a_loop(
            text in prop::collection::vec(any::<u8>(), 0..300),
            cuts in prop::collection::vec(any::<[prop::sample::Index; 2]>(), 0..40),
            before in "[a-z]{0,9}",
        ) {
            let place = |index: prop::sample::Index| index.index(text.len() + 1);
            let part = |[one, other]: [prop::sample::Index; 2]| {
                let [one, other] = [place(one), place(other)].map(|at| u32::try_from(at).unwrap());
                (one.min(other), one.max(other))
            };
            let parts: Vec<_> = cuts.into_iter().map(part).collect();
            prop_assert_eq!(
                append(&text, &parts, before.as_bytes()),
                appended(&text, &parts, before.as_bytes())
            );
        }

        #[test]
        fn keys_are_texts_and_their_lengths(
            before in "[a-z]{0,3}",
            texts in prop::collection::vec("[a-z]{0,15}|[a-z]{0,4}|[a-z]{16,40}", 0..20),
            after in "[a-z]{0,20}",
        ) {
            let (bytes, offsets) = texts.iter().fold(
                (before.clone(), vec![before.len()]),
                |(bytes, mut offsets), text| {
                    offsets.push(offsets[offsets.len() - 1] + text.len());
                    (bytes + text, offsets)
                },
            );
            let offsets: Vec<_> = offsets.into_iter().map(|o| i32::try_from(o).unwrap()).collect();
            let mut keys = vec![[9; 2]; texts.len()];
            let has_long = short_keys((bytes + &after).as_bytes(), &offsets, &mut keys);
            prop_assert_eq!(has_long, texts.iter().any(|text| text.len() > 15));
            for (text, key) in texts.iter().zip(keys).filter(|(text, _)| text.len() < 16) {
                let mut expected = [0; 16];
                expected[..text.len()].copy_from_slice(text.as_bytes());
                expected[15] = u8::try_from(text.len()).unwrap();
                prop_assert_eq!(key.map(u64::to_le_bytes).concat(), expected.to_vec());
            }
        }
    }
}
