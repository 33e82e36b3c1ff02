//! An index of keys: open addressing, with lines of three keys.

use trommel_kernels::memory::prefer_huge_pages;
use trommel_kernels::prefetch;

use super::key::{Key, TextHash, TextKey};

/// Keys per line.
const KEYS: usize = 3;
/// Number of lines of the smallest index.
const LINES_MIN: usize = 16;

/// A cache line. Keys fill the line from the front. A key whose line is full is in one of the next
/// lines.
#[derive(Debug, Clone, Copy)]
#[repr(align(64))]
struct CacheLine {
    keys: [Key; KEYS],
    numbers: [u32; KEYS],
}

impl CacheLine {
    const EMPTY: Self = Self { keys: [Key::NONE; KEYS], numbers: [0; KEYS] };

    #[inline(always)]
    fn is_full(&self) -> bool {
        self.keys[KEYS - 1] != Key::NONE
    }

    /// Bits of the places that hold this key.
    #[inline(always)]
    fn places(&self, key: Key) -> u32 {
        let mut places = 0_u32;
        for (place, other) in self.keys.iter().enumerate() {
            places |= u32::from(*other == key) << place;
        }
        places
    }
}

/// Numbers by key.
#[derive(Debug, Clone)]
pub(crate) struct TextIndex {
    /// The lines, whose number is a power of two.
    lines: Vec<CacheLine>,
    /// Number of bits of a hash below the number of its line. The highest bits are the number of
    /// the line, so that a larger index keeps the order of lines.
    shift: u32,
    len: usize,
}

impl Default for TextIndex {
    fn default() -> Self {
        Self::with_lines(LINES_MIN)
    }
}

impl TextIndex {
    fn with_lines(count: usize) -> Self {
        let mut lines = Vec::with_capacity(count);
        prefer_huge_pages(&mut lines);
        lines.resize(count, CacheLine::EMPTY);
        Self { lines, shift: count.leading_zeros() + 1, len: 0 }
    }

    /// Number of the first line for keys with this hash.
    #[inline(always)]
    fn place(&self, hash: u64) -> usize {
        usize::try_from(hash >> self.shift).expect("below the number of lines")
    }

    /// Fetches the line of a key into the cache, and the next line, which a full line overflows to.
    #[inline(always)]
    pub(crate) fn prefetch(&self, key: &TextKey) {
        let place = self.place(key.hash);
        prefetch(&self.lines, place);
        prefetch(&self.lines, place + 1);
    }

    /// The number of a key. If long texts have equal keys, `is` decides which number is right.
    #[inline(always)]
    pub(crate) fn find(&self, key: &TextKey, is: impl Fn(u32) -> bool) -> Option<u32> {
        let line = &self.lines[self.place(key.hash)];
        let places = line.places(key.key);
        if places != 0 && !key.key.is_long() {
            return Some(line.numbers[places.trailing_zeros() as usize]);
        }
        if places == 0 && !line.is_full() { None } else { self.find_further(key, is) }
    }

    /// As [`Self::find`], for a key in any line.
    #[inline(never)]
    fn find_further(&self, key: &TextKey, is: impl Fn(u32) -> bool) -> Option<u32> {
        let mut place = self.place(key.hash);
        loop {
            let line = &self.lines[place];
            let mut equal = line.places(key.key);
            while equal != 0 {
                let number = line.numbers[equal.trailing_zeros() as usize];
                if !key.key.is_long() || is(number) {
                    return Some(number);
                }
                equal &= equal - 1;
            }
            if !line.is_full() {
                return None;
            }
            place = (place + 1) & (self.lines.len() - 1);
        }
    }

    /// Adds the number of a text that has no number yet.
    pub(crate) fn add(&mut self, key: &TextKey, number: u32, hasher: &TextHash) {
        if self.is_full() {
            self.grow(hasher);
        }
        self.len += 1;
        self.put(*key, number);
    }

    /// Bytes of memory while a key is added.
    pub(crate) fn bytes_while_added(&self) -> usize {
        if self.is_full() { 3 * self.bytes() } else { self.bytes() }
    }

    /// Whether a further key needs a larger index.
    fn is_full(&self) -> bool {
        // A line has three places. At most two of three places are used.
        self.len >= 2 * self.lines.len()
    }

    fn put(&mut self, TextKey { key, hash }: TextKey, number: u32) {
        let mut place = self.place(hash);
        while self.lines[place].is_full() {
            place = (place + 1) & (self.lines.len() - 1);
        }
        let CacheLine { keys, numbers } = &mut self.lines[place];
        let free = keys.iter().position(|key| *key == Key::NONE).expect("it is not full");
        (keys[free], numbers[free]) = (key, number);
    }

    fn grow(&mut self, hasher: &TextHash) {
        let larger = Self { len: self.len, ..Self::with_lines(2 * self.lines.len()) };
        for CacheLine { keys, numbers } in std::mem::replace(self, larger).lines {
            for (key, number) in keys.into_iter().zip(numbers) {
                if key != Key::NONE {
                    self.put(TextKey { key, hash: hasher.hash(key) }, number);
                }
            }
        }
    }

    /// Bytes of memory.
    pub(crate) fn bytes(&self) -> usize {
        self.lines.capacity() * size_of::<CacheLine>()
    }

    /// Removes all keys, and keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.lines.fill(CacheLine::EMPTY);
        self.len = 0;
    }
}
