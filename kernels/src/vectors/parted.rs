//! Memory that several threads fill at once: a vector in parts, each of which has one owner.
//!
//! ```text
//! parted ──► [ part ][ part ][   part   ]  each goes to a thread, which writes to it
//! joined ◄── the same allocation, as one vector: nothing is copied
//! ```
//!
//! The memory is zero at the start and not touched, so that its pages are made by the threads.
#![expect(unsafe_code, reason = "several owners of disjoint parts of one allocation")]

use std::alloc::{Layout, alloc_zeroed, handle_alloc_error};
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut, Range};
use std::ptr::NonNull;
use std::slice;
use std::sync::Arc;

use super::lanes::Line;
use crate::memory::prefer_huge_pages;

/// Numbers whose bytes may all be zero.
///
/// # Safety
///
/// All bytes zero are a value of the type.
pub(super) unsafe trait Zeroed: Copy + Send + Sync {}

// SAFETY: zero is a number.
unsafe impl Zeroed for u16 {}
// SAFETY: zero is a number.
unsafe impl Zeroed for u32 {}
// SAFETY: zero is a number.
unsafe impl Zeroed for f32 {}
// SAFETY: a line is sixteen numbers of 32 bits.
unsafe impl Zeroed for Line {}

/// An allocation of `len` numbers; none if that is zero.
#[derive(Debug)]
struct Memory<T> {
    begin: NonNull<T>,
    len: usize,
}

// SAFETY: the memory is only reached through parts, which are disjoint, and by its last owner.
unsafe impl<T: Zeroed> Send for Memory<T> {}
// SAFETY: as above: no two threads reach the same number.
unsafe impl<T: Zeroed> Sync for Memory<T> {}

impl<T> Memory<T> {
    /// The allocation as a vector.
    fn take(&mut self) -> Vec<T> {
        let (begin, len) = (self.begin, std::mem::take(&mut self.len));
        if len == 0 {
            return Vec::new();
        }
        // SAFETY: `parted` has allocated it with the layout of `len` numbers, all of which have a
        // value; `len` is zero from now on, so it is taken once.
        unsafe { Vec::from_raw_parts(begin.as_ptr(), len, len) }
    }
}

impl<T> Drop for Memory<T> {
    fn drop(&mut self) {
        drop(self.take());
    }
}

/// A part of a vector.
#[derive(Debug)]
pub(super) struct Part<T> {
    memory: Arc<Memory<T>>,
    range: Range<usize>,
}

/// A vector of zeros, in parts of these lengths.
pub(super) fn parted<T: Zeroed>(lens: impl IntoIterator<Item = usize>) -> Vec<Part<T>> {
    let mut end: usize = 0;
    let mut range = |len| {
        let begin = end;
        end = begin.checked_add(len).expect("the input, which is as large, has an address");
        begin..end
    };
    let ranges: Vec<Range<usize>> = lens.into_iter().map(&mut range).collect();
    let layout = Layout::array::<T>(end).expect("the input, which is as large, has an address");
    let mut begin = NonNull::dangling();
    if layout.size() > 0 {
        // SAFETY: the size is not zero.
        let bytes = unsafe { alloc_zeroed(layout) };
        begin = NonNull::new(bytes.cast()).unwrap_or_else(|| handle_alloc_error(layout));
        // SAFETY: the allocation is for `end` numbers, and a vector of none of them has no values.
        let memory = unsafe { Vec::from_raw_parts(begin.as_ptr(), 0, end) };
        // Freed by the last owner of the parts.
        prefer_huge_pages(&mut ManuallyDrop::new(memory));
    }
    let memory = Arc::new(Memory { begin, len: end });
    ranges.into_iter().map(|range| Part { memory: Arc::clone(&memory), range }).collect()
}

/// The vector of all parts, in their order.
///
/// # Panics
///
/// If these are not all parts of a vector, in their order.
pub(super) fn joined<T: Zeroed>(parts: Vec<Part<T>>) -> Vec<T> {
    let mut end = 0;
    let mut whole: Option<Arc<Memory<T>>> = None;
    for Part { memory, range } in parts {
        let is_next = range.start == std::mem::replace(&mut end, range.end);
        let whole = whole.get_or_insert_with(|| Arc::clone(&memory));
        assert!(is_next && Arc::ptr_eq(whole, &memory), "{range:?} is not the next part");
    }
    let Some(whole) = whole else { return Vec::new() };
    assert!(end == whole.len, "{end} of {} numbers", whole.len);
    Arc::into_inner(whole).expect("all parts are here").take()
}

impl<T: Zeroed> Deref for Part<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: the range is in the allocation.
        let begin = unsafe { self.memory.begin.add(self.range.start) };
        // SAFETY: `parted` has set all numbers to zero. Ranges of parts are disjoint, so only this
        // part, which is borrowed, reaches them; the allocation lives as long as the part.
        unsafe { slice::from_raw_parts(begin.as_ptr(), self.range.len()) }
    }
}

impl<T: Zeroed> DerefMut for Part<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: the range is in the allocation.
        let begin = unsafe { self.memory.begin.add(self.range.start) };
        // SAFETY: as above, and the part is borrowed by one.
        unsafe { slice::from_raw_parts_mut(begin.as_ptr(), self.range.len()) }
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn parts_are_one_vector() {
        for lens in [&[][..], &[0], &[0, 0], &[3], &[1, 0, 5, 2, 0]] {
            let mut parts = parted::<u32>(lens.iter().copied());
            thread::scope(|scope| {
                for (number, part) in (1..).zip(&mut parts) {
                    scope.spawn(move || {
                        assert!(part.iter().all(|&value| value == 0));
                        part.fill(number);
                    });
                }
            });
            let numbers = (1..).zip(lens).flat_map(|(number, &len)| vec![number; len]);
            assert_eq!(joined(parts), numbers.collect::<Vec<u32>>());
        }
        let lines = parted::<Line>([2, 1]);
        assert!(lines.iter().all(|part| part.as_ptr().is_aligned()));
        drop(lines);
    }

    #[test]
    #[should_panic(expected = "2..3 is not the next part")]
    fn parts_have_an_order() {
        let mut parts = parted::<f32>([2, 1]);
        parts.reverse();
        joined(parts);
    }

    #[test]
    #[should_panic(expected = "2 of 3 numbers")]
    fn no_part_may_be_missing() {
        let mut parts = parted::<u16>([2, 1]);
        parts.pop();
        joined(parts);
    }
}
