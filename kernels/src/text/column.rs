//! Columns of texts from their bytes.

#![expect(
    unsafe_code,
    reason = "checked as Arrow does it, but with vectors: its own check takes longer than making texts"
)]

use arrow_array::StringArray;
use arrow_buffer::{OffsetBuffer, ScalarBuffer};

/// The column of the texts between neighbouring `offsets` of `bytes`.
///
/// # Examples
///
/// ```
/// use trommel_kernels::text::text_column;
///
/// let column = text_column("déjà vu".into(), vec![0, 6, 6, 9]);
/// assert!(column.iter().flatten().eq(["déjà", "", " vu"]));
/// ```
///
/// # Cost
///
/// A pass over the offsets, and a pass over the bytes that checks their encoding, both with vector
/// instructions; if not all bytes are ASCII, also a look at a byte for each text. The call copies
/// nothing.
///
/// # Panics
///
/// If `bytes` is not UTF-8, `offsets` is empty or does not ascend from 0 or more, or an offset is
/// past the end or within a character.
#[must_use]
pub fn text_column(bytes: Vec<u8>, offsets: Vec<i32>) -> StringArray {
    let ascend = |all: bool, &[begin, end]: &[i32; 2]| all & (begin <= end);
    let ascends = offsets.array_windows().fold(true, ascend);
    let first = offsets.first().copied().expect("offsets are not empty");
    assert!(first >= 0 && ascends, "offsets ascend from 0 or more");
    let last = usize::try_from(offsets[offsets.len() - 1]);
    assert!(last.is_ok_and(|last| last <= bytes.len()), "a text ends past the last byte");
    if !bytes.is_ascii() {
        let is_utf8 = simdutf8::basic::from_utf8(&bytes).is_ok();
        assert!(is_utf8, "texts are UTF-8");
        let cuts = |any: bool, &offset: &i32| any | is_within(&bytes, offset);
        assert!(!offsets.iter().fold(false, cuts), "a text begins or ends within a character");
    }
    // SAFETY: checked above: there is an offset, and they ascend from 0 or more.
    let offsets = unsafe { OffsetBuffer::new_unchecked(ScalarBuffer::from(offsets)) };
    // SAFETY: `StringArray::new` would check the same. The bytes are UTF-8, the offsets ascend, and
    // none is past the end or within a character.
    unsafe { StringArray::new_unchecked(offsets, bytes.into(), None) }
}

/// Whether a character continues at this offset, which is not past the end.
#[inline(always)]
fn is_within(bytes: &[u8], offset: i32) -> bool {
    let byte = bytes.get(offset.cast_unsigned() as usize).copied().unwrap_or_default();
    // Bytes of a character after the first one begin with the bits 10.
    byte & 0xc0 == 0x80
}

#[cfg(test)]
mod tests {
    use std::panic::catch_unwind;

    use proptest::prelude::*;

    use super::*;

    /// The column by Arrow, or `None` if it refuses the parts. Arrow does not check bytes outside
    /// of all texts; `text_column` does.
    fn checked(bytes: &[u8], offsets: &[i32]) -> Option<StringArray> {
        str::from_utf8(bytes).ok()?;
        let make = || {
            let offsets = OffsetBuffer::new(ScalarBuffer::from(offsets.to_vec()));
            StringArray::try_new(offsets, bytes.to_vec().into(), None).ok()
        };
        catch_unwind(make).ok().flatten()
    }

    fn made(bytes: &[u8], offsets: &[i32]) -> Option<StringArray> {
        catch_unwind(|| text_column(bytes.to_vec(), offsets.to_vec())).ok()
    }

    proptest! {
        #[test]
        fn columns_are_those_of_arrow(
            texts in prop::collection::vec("[a-cé中🦀]{0,9}|[a-z]{60,70}", 0..9),
            changed in prop::option::of((any::<prop::sample::Index>(), any::<u8>())),
            moved in prop::option::of((any::<prop::sample::Index>(), -3..4_i32)),
        ) {
            let mut bytes = texts.concat().into_bytes();
            let mut offsets = vec![0];
            for text in &texts {
                offsets.push(offsets[offsets.len() - 1] + i32::try_from(text.len()).unwrap());
            }
            if let Some((byte, value)) = changed.filter(|_| !bytes.is_empty()) {
                *byte.get_mut(&mut bytes[..]) = value;
            }
            if let Some((offset, by)) = moved {
                *offset.get_mut(&mut offsets[..]) += by;
            }
            prop_assert_eq!(made(&bytes, &offsets), checked(&bytes, &offsets));
        }
    }

    #[test]
    fn what_is_no_column_of_texts_is_refused() {
        let text = "é中a".as_bytes();
        assert!(made(text, &[0, 2, 5, 6]).is_some());
        for offsets in [&[][..], &[-1, 2], &[0, 1], &[0, 3], &[0, 5, 2], &[0, 7], &[0, i32::MAX]] {
            assert_eq!(made(text, offsets), None, "{offsets:?}");
        }
        assert_eq!(made(&[0xe4, 0xb8], &[0, 2]), None);
    }
}
