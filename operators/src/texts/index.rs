//! An index of keys: open addressing by lines of three keys.

use trommel_kernels::prefetch;

use super::key::{Key, TextHash, TextKey};

/// Keys of a line.
const KEYS: usize = 3;
/// Lines of the smallest index.
const LINES_MIN: usize = 16;

/// A cache line. Keys fill it from the front; those that find it full are in one of the next lines.
#[derive(Debug, Clone, Copy, Default)]
#[repr(align(64))]
struct Line {
    keys: [Key; KEYS],
    numbers: [u32; KEYS],
    len: u32,
}

/// Numbers by key.
#[derive(Debug, Default)]
pub(super) struct TextIndex {
    /// A power of two of them, or none.
    lines: Vec<Line>,
    len: usize,
}

impl TextIndex {
    /// First line of keys with this hash.
    #[inline]
    fn place(&self, hash: u64) -> usize {
        // The highest bits, so that a larger index keeps the order of lines.
        let shift = self.lines.len().leading_zeros() + 1;
        usize::try_from(hash >> shift).expect("not above the number of lines")
    }

    /// Fetches the line of a key into the cache.
    #[inline]
    pub(super) fn prefetch(&self, key: &TextKey) {
        if !self.lines.is_empty() {
            prefetch(&self.lines, self.place(key.hash));
        }
    }

    /// The number of a key. Of numbers with equal keys of long texts, `is` tells the right one.
    #[inline]
    pub(super) fn find(&self, key: &TextKey, is: impl Fn(u32) -> bool) -> Option<u32> {
        if self.lines.is_empty() {
            return None;
        }
        let mut place = self.place(key.hash);
        loop {
            let line = &self.lines[place];
            let mut equal = 0_u32;
            for (slot, other) in line.keys.iter().enumerate() {
                equal |= u32::from(*other == key.key) << slot;
            }
            equal &= (1 << line.len) - 1;
            while equal != 0 {
                let number = line.numbers[equal.trailing_zeros() as usize];
                if !key.key.is_long() || is(number) {
                    return Some(number);
                }
                equal &= equal - 1;
            }
            if (line.len as usize) < KEYS {
                return None;
            }
            place = (place + 1) & (self.lines.len() - 1);
        }
    }

    /// Adds the number of a text that has none.
    pub(super) fn add(&mut self, key: &TextKey, number: u32, hasher: &TextHash) {
        // Two of three places: a third of the lines is full at most.
        if self.len >= 2 * self.lines.len() {
            self.grow(hasher);
        }
        self.len += 1;
        self.put(*key, number);
    }

    fn put(&mut self, TextKey { key, hash }: TextKey, number: u32) {
        let mut place = self.place(hash);
        while self.lines[place].len as usize == KEYS {
            place = (place + 1) & (self.lines.len() - 1);
        }
        let line = &mut self.lines[place];
        line.keys[line.len as usize] = key;
        line.numbers[line.len as usize] = number;
        line.len += 1;
    }

    fn grow(&mut self, hasher: &TextHash) {
        let lines = (2 * self.lines.len()).max(LINES_MIN);
        let old = std::mem::replace(&mut self.lines, vec![Line::default(); lines]);
        for line in old {
            for slot in 0..line.len as usize {
                let key = line.keys[slot];
                self.put(TextKey { key, hash: hasher.hash(key) }, line.numbers[slot]);
            }
        }
    }

    /// Bytes of memory.
    pub(super) fn bytes(&self) -> usize {
        self.lines.capacity() * size_of::<Line>()
    }

    /// Removes all keys; memory is kept.
    pub(super) fn clear(&mut self) {
        self.lines.fill(Line::default());
        self.len = 0;
    }
}
