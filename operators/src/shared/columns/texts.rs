//! Columns of texts, batch after batch.

use std::mem;
use std::ops::Range;

use arrow_array::StringArray;
use trommel_kernels::text::{append_parts, text_column};

/// Bytes that are copied at once, which is a register. Most words are not longer.
const COPIED: usize = 16;

/// Builds columns of texts, one per batch.
pub(crate) struct TextsBuilder {
    bytes: Vec<u8>,
    /// Beginning of each text, and the end of the last text.
    offsets: Vec<i32>,
}

impl TextsBuilder {
    pub(crate) fn new() -> Self {
        Self::with_room(0, 0)
    }

    /// A builder with room for this number of texts and bytes.
    pub(crate) fn with_room(texts: usize, bytes: usize) -> Self {
        let mut offsets = Vec::with_capacity(texts + 1);
        offsets.push(0);
        // Texts may have line ends, which need room, too.
        Self { bytes: Vec::with_capacity(bytes + 2 * texts + COPIED), offsets }
    }

    /// Adds `part` of the bytes of a text. The copy also reads the bytes after the part.
    ///
    /// # Panics
    ///
    /// If a part is not UTF-8, in this call or in [`Self::take`]; or if a batch has 2 GiB.
    #[inline(always)]
    pub(crate) fn push(&mut self, text: &[u8], part: Range<usize>) {
        let (len, more) = (part.len(), &text[part.start..]);
        match more.first_chunk::<COPIED>() {
            // A copy of a fixed length takes two instructions.
            Some(first) if len <= COPIED => {
                let end = self.bytes.len() + len;
                self.bytes.extend_from_slice(first);
                self.bytes.truncate(end);
            }
            _ => self.bytes.extend_from_slice(&more[..len]),
        }
        self.offsets.push(offset(self.bytes.len()));
    }

    /// Adds the parts of `text` between these bytes, as [`Self::push`] does with each part. One
    /// call is faster for many parts.
    pub(crate) fn extend(&mut self, text: &str, begins: &[u32], ends: &[u32]) {
        append_parts(text.as_bytes(), begins, ends, &mut self.bytes, &mut self.offsets);
    }

    /// Number of texts.
    #[inline(always)]
    pub(crate) fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Bytes of the texts.
    #[inline(always)]
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Returns the texts so far and empties the builder.
    pub(crate) fn take(&mut self) -> StringArray {
        // The room of the next batch follows this batch, with a little more: the next batch is
        // probably similar.
        let next = Self::with_room(self.len(), self.bytes());
        let Self { bytes, offsets } = mem::replace(self, next);
        text_column(bytes, offsets)
    }
}

fn offset(bytes: usize) -> i32 {
    i32::try_from(bytes).expect("a batch is below 2 GiB")
}

#[cfg(test)]
mod tests {
    use arrow_array::Array;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn batches_are_the_parts_that_were_pushed(
            batches in prop::collection::vec(
                prop::collection::vec("[a-c]{0,20}|[aé中]{0,20}|[a-z]{14,18}", 0..6),
                0..8,
            ),
            pushed in 0..6_usize,
        ) {
            let mut builder = TextsBuilder::new();
            for batch in batches {
                // The first parts are added one by one, and all further parts together.
                let text = batch.concat();
                let mut ends = vec![0];
                batch.iter().for_each(|part| ends.push(ends[ends.len() - 1] + part.len()));
                let pushed = pushed.min(batch.len());
                let part = |[begin, end]: &[usize; 2]| *begin..*end;
                let parts = ends.array_windows().map(part);
                parts.take(pushed).for_each(|part| builder.push(text.as_bytes(), part));
                let ends: Vec<_> = ends.into_iter().map(|end| u32::try_from(end).unwrap()).collect();
                builder.extend(&text, &ends[pushed..batch.len()], &ends[pushed + 1..]);
                prop_assert_eq!((builder.len(), builder.bytes()), (batch.len(), text.len()));
                let column = builder.take();
                prop_assert!(column.iter().map(Option::unwrap).eq(batch.iter().map(String::as_str)));
                prop_assert!(column.null_count() == 0 && builder.len() == 0);
            }
        }
    }
}
