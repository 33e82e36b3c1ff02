//! A list in one of its forms, and its ids.

use crate::inverted::levels::{BLOCK, Blocks};

/// A list of ids.
#[derive(Clone, Copy, Debug)]
pub(in crate::inverted) enum List<'a> {
    /// Ids, strictly ascending.
    Plain(&'a [u32]),
    /// Halves of ids by buckets.
    Buckets(Buckets<'a>),
    /// Bit `id % 32` of word `id / 32`.
    Bits(&'a [u32]),
}

impl List<'_> {
    /// Appends all ids, ascending.
    #[inline(always)]
    pub(in crate::inverted) fn decode(self, ids: &mut Vec<u32>) {
        match self {
            Self::Plain(list) => ids.extend_from_slice(list),
            Self::Buckets(list) => list.decode(ids),
            Self::Bits(words) => {
                for (base, &word) in (0..).step_by(32).zip(words) {
                    decode_bits(base, word, ids);
                }
            }
        }
    }

    /// Writes the first ids of a list that is not a bitmap, and returns their number.
    #[inline(always)]
    pub(in crate::inverted) fn head<const IDS: usize>(self, ids: &mut [u32; IDS]) -> usize {
        match self {
            Self::Plain(list) => {
                let len = list.len().min(IDS);
                ids[..len].copy_from_slice(&list[..len]);
                len
            }
            Self::Buckets(list) => list.head(ids),
            Self::Bits(_) => 0,
        }
    }

    /// Whether the list holds `id`: a binary search, or one test of a bit.
    pub(in crate::inverted) fn contains(self, id: u32) -> bool {
        match self {
            Self::Plain(list) => list.binary_search(&id).is_ok(),
            Self::Buckets(list) => list.bucket(id).binary_search(&low(id)).is_ok(),
            Self::Bits(words) => words[(id / 32) as usize] >> (id % 32) & 1 != 0,
        }
    }
}

/// Appends the ids `base + i` of the bits `i` of a word.
#[inline(always)]
pub(super) fn decode_bits(base: u32, mut word: u32, ids: &mut Vec<u32>) {
    while word != 0 {
        ids.push(base + word.trailing_zeros());
        word &= word - 1;
    }
}

/// The lower half of an id.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "the lower half")]
pub(in crate::inverted) fn low(id: u32) -> u16 {
    id as u16
}

/// Lower halves of ids by buckets of `1 << shift` documents.
///
/// All buckets of the same upper half of an id are neighbours, so their halves ascend strictly from
/// the first bucket to the last.
#[derive(Clone, Copy, Debug)]
pub(in crate::inverted) struct Buckets<'a> {
    /// The binary logarithm of the width of a bucket, at most 16.
    pub(in crate::inverted) shift: u32,
    /// The begin of the first bucket, which is zero, and the end of each bucket, as positions in
    /// `halves`.
    pub(in crate::inverted) directory: &'a [u32],
    /// The halves of the list, and all later words of the segment.
    pub(in crate::inverted) halves: &'a [u16],
}

impl<'a> Buckets<'a> {
    /// The bucket of a document of the segment.
    #[inline(always)]
    pub(in crate::inverted) fn bucket(self, id: u32) -> &'a [u16] {
        let bucket = (id >> self.shift) as usize;
        &self.halves[self.directory[bucket] as usize..self.directory[bucket + 1] as usize]
    }

    /// Writes the first ids, and returns their number.
    #[inline(always)]
    fn head(self, ids: &mut [u32]) -> usize {
        let mut end = 0;
        for (upper, next) in self.ends() {
            let next = next.min(ids.len());
            for (id, &half) in ids[end..next].iter_mut().zip(&self.halves[end..next]) {
                *id = upper << 16 | u32::from(half);
            }
            end = next;
            if end == ids.len() {
                break;
            }
        }
        end
    }

    /// Writes the ids whose upper halves are from `first` to `last` to the front of `memory`, and
    /// returns their number. Later words of `memory` may be overwritten.
    ///
    /// A list has an upper half for each 65,536 documents, so most runs are short: each run is
    /// written by whole blocks, and the next run overwrites the excess of the last block.
    #[inline(always)]
    pub(in crate::inverted) fn write<L: Blocks>(
        self,
        level: L,
        first: u16,
        last: u16,
        memory: &mut Vec<u32>,
    ) -> usize {
        let (shift, buckets) = (16 - self.shift, self.directory.len() - 1);
        let bucket = |upper: usize| buckets.min(upper << shift);
        let mut begin = self.directory[bucket(first.into())] as usize;
        let end = self.directory[bucket(usize::from(last) + 1)] as usize;
        let all = self.halves[begin..end].len();
        if memory.len() < all + BLOCK {
            memory.resize(all + BLOCK, 0);
        }
        let mut written = 0;
        for upper in first..=last {
            if written == all {
                break;
            }
            let end = self.directory[bucket(usize::from(upper) + 1)] as usize;
            let run = end - begin;
            for at in (0..run).step_by(BLOCK) {
                let halves = self.halves[begin + at..].first_chunk().expect("a margin is behind");
                let ids = memory[written + at..].first_chunk_mut().expect("there is room");
                level.widen(halves, upper, ids);
            }
            written += run;
            begin = end;
        }
        all
    }

    /// Appends all ids.
    #[inline(always)]
    fn decode(self, ids: &mut Vec<u32>) {
        let mut begin = 0;
        for (upper, end) in self.ends() {
            let halves = &self.halves[begin..end];
            ids.extend(halves.iter().map(|&half| upper << 16 | u32::from(half)));
            begin = end;
        }
    }

    /// Each upper half of an id, and the end of its halves. The last end may repeat.
    #[inline(always)]
    fn ends(self) -> impl Iterator<Item = (u32, usize)> {
        let per_half = 1 << (16 - self.shift);
        let ends = self.directory.iter().skip(per_half).step_by(per_half);
        (0..).zip(ends.chain(self.directory.last()).map(|&end| end as usize))
    }
}
