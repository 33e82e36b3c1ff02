//! A vector that several threads fill: each thread fills a part.
//!
//! ```text
//! split, zeros ──► [ part ][ part ][   part   ]  each part goes to a thread, which writes to it
//! join         ◄── the same allocation, as one vector: nothing is copied
//! ```
//!
//! No code touches the memory before a thread writes to its part, so the threads share the cost of
//! the first touch of pages.

#![expect(unsafe_code, reason = "parts of one allocation are filled side by side")]

use std::alloc::{Layout, alloc_zeroed, handle_alloc_error};
use std::fmt;
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::ptr::{NonNull, copy_nonoverlapping, slice_from_raw_parts, slice_from_raw_parts_mut};
use std::sync::Arc;

use super::{Plain, prefer_huge_pages};

/// The memory of a vector whose elements belong to parts.
struct Whole<T> {
    begin: *mut T,
    /// Number of elements for which the memory has room.
    capacity: usize,
    /// Number of elements of all parts.
    len: usize,
}

// SAFETY: the type stands for a vector of `T`, which can go to another thread if `T` can.
unsafe impl<T: Send> Send for Whole<T> {}
// SAFETY: a shared part gives shared access to its elements, which `T` allows to several threads.
unsafe impl<T: Sync> Sync for Whole<T> {}

impl<T> Drop for Whole<T> {
    fn drop(&mut self) {
        // SAFETY: the address and the capacity are those of the vector that `Part::cut` took apart,
        // and no part is left.
        drop(unsafe { Vec::from_raw_parts(self.begin, 0, self.capacity) });
    }
}

/// A part of a vector. Several threads can write to parts, each thread to its own part;
/// [`Part::join`] makes the vector of all parts.
///
/// Parts of [`Part::split`] are empty, and elements are appended to them. Parts of [`Part::zeros`]
/// are full. A part is the slice of its elements.
///
/// # Examples
///
/// ```
/// use trommel_kernels::memory::Part;
///
/// let mut parts = Part::split([2, 1]);
/// std::thread::scope(|threads| {
///     for (part, numbers) in parts.iter_mut().zip([&[7, 8][..], &[9]]) {
///         threads.spawn(move || part.extend_from_slice(numbers));
///     }
/// });
/// assert_eq!(Part::join(parts), [7, 8, 9]);
///
/// let mut parts = Part::<u32>::zeros([2, 1]);
/// parts[0][1] = 5;
/// assert_eq!(Part::join(parts), [0, 5, 0]);
/// ```
pub struct Part<T> {
    whole: Arc<Whole<T>>,
    /// Place of the first element of the part in the whole.
    begin: usize,
    len: usize,
    capacity: usize,
}

impl<T: Plain> Part<T> {
    /// Full parts of one vector of zeros, of these lengths, in huge pages where the system has huge
    /// pages.
    ///
    /// # Panics
    ///
    /// If the sum is more than a vector can hold.
    #[must_use]
    pub fn zeros(lens: impl IntoIterator<Item = usize>) -> Vec<Self> {
        let lens: Vec<usize> = lens.into_iter().collect();
        let mut memory = zeroed(sum(&lens));
        prefer_huge_pages(&mut memory);
        Self::cut(memory, lens, true)
    }
}

impl<T: Copy> Part<T> {
    /// Empty parts of one vector, each with room for its capacity, in huge pages where the system
    /// has huge pages.
    ///
    /// # Panics
    ///
    /// If the sum is more than a vector can hold.
    #[must_use]
    pub fn split(capacities: impl IntoIterator<Item = usize>) -> Vec<Self> {
        let capacities: Vec<usize> = capacities.into_iter().collect();
        let mut memory = Vec::with_capacity(sum(&capacities));
        prefer_huge_pages(&mut memory);
        Self::cut(memory, capacities, false)
    }

    /// Cuts the memory of a vector, which has room for the sum of `capacities`. With `is_full`, all
    /// elements of the vector have a value.
    fn cut(memory: Vec<T>, capacities: Vec<usize>, is_full: bool) -> Vec<Self> {
        let len = sum(&capacities);
        assert!(if is_full { memory.len() == len } else { memory.capacity() >= len });
        let mut memory = ManuallyDrop::new(memory);
        let (begin, capacity) = (memory.as_mut_ptr(), memory.capacity());
        let whole = Arc::new(Whole { begin, capacity, len });
        let mut begin = 0;
        let mut part = |capacity| {
            let len = if is_full { capacity } else { 0 };
            let part = Self { whole: Arc::clone(&whole), begin, len, capacity };
            begin += capacity;
            part
        };
        capacities.into_iter().map(&mut part).collect()
    }

    /// Appends an element.
    ///
    /// # Panics
    ///
    /// If the part is full.
    #[inline]
    pub fn push(&mut self, value: T) {
        self.extend_from_slice(&[value]);
    }

    /// Appends elements.
    ///
    /// # Panics
    ///
    /// If there are more than the part has room for.
    #[inline]
    pub fn extend_from_slice(&mut self, values: &[T]) {
        assert!(values.len() <= self.capacity - self.len, "a part has {} places", self.capacity);
        let end = self.whole.begin.wrapping_add(self.begin + self.len);
        // SAFETY: the places from `end` on are within the memory, since those of all parts are,
        // and belong to this part alone, which is borrowed mutably: `values` are elsewhere.
        unsafe { copy_nonoverlapping(values.as_ptr(), end, values.len()) };
        self.len += values.len();
    }

    /// The vector of the elements of `parts`: all parts of a call of [`Self::split`] or
    /// [`Self::zeros`], in their order.
    ///
    /// # Panics
    ///
    /// If a part is missing, not full, or of another vector.
    #[must_use]
    pub fn join(parts: Vec<Self>) -> Vec<T> {
        let mut parts = parts.into_iter();
        let Some(first) = parts.next() else { return Vec::new() };
        let mut end = 0;
        let mut follow = |part: &Self| {
            assert!(part.begin == end && part.len == part.capacity, "a part in its place, full");
            end += part.len;
        };
        follow(&first);
        for part in parts {
            assert!(Arc::ptr_eq(&first.whole, &part.whole), "parts of one vector");
            follow(&part);
        }
        assert!(end == first.whole.len, "all parts");
        let whole = Arc::into_inner(first.whole).expect("each part is there once");
        let whole = ManuallyDrop::new(whole);
        // SAFETY: the memory is that of a vector of this capacity; the parts have written its
        // first `len` elements, and none of them is left.
        unsafe { Vec::from_raw_parts(whole.begin, whole.len, whole.capacity) }
    }
}

impl<T> Deref for Part<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        let begin = self.whole.begin.wrapping_add(self.begin);
        // SAFETY: the first `len` places of a part have a value, and only the part can write them.
        unsafe { &*slice_from_raw_parts(begin, self.len) }
    }
}

impl<T> DerefMut for Part<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        let begin = self.whole.begin.wrapping_add(self.begin);
        // SAFETY: as above, and the part is borrowed mutably.
        unsafe { &mut *slice_from_raw_parts_mut(begin, self.len) }
    }
}

impl<T> fmt::Debug for Part<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { begin, len, capacity, .. } = self;
        f.debug_struct("Part")
            .field("begin", begin)
            .field("len", len)
            .field("capacity", capacity)
            .finish_non_exhaustive()
    }
}

/// The number of elements of all parts.
fn sum(lens: &[usize]) -> usize {
    let sum = lens.iter().try_fold(0_usize, |sum, len| sum.checked_add(*len));
    sum.expect("at most as many elements as a vector can hold")
}

/// A vector of `len` zeros. `vec![0; len]` is the same for numbers; for a struct it would write
/// each element, and so touch all pages on one thread.
fn zeroed<T: Plain>(len: usize) -> Vec<T> {
    let layout = Layout::array::<T>(len).expect("at most as many elements as a vector can hold");
    if layout.size() == 0 {
        return Vec::new();
    }
    // SAFETY: the size is not zero.
    let bytes = unsafe { alloc_zeroed(layout) };
    let begin = NonNull::new(bytes.cast()).unwrap_or_else(|| handle_alloc_error(layout));
    // SAFETY: the allocation has the layout of `len` elements, and bytes of zero are a value of
    // each plain type.
    unsafe { Vec::from_raw_parts(begin.as_ptr(), len, len) }
}

#[cfg(test)]
mod tests {
    use std::panic::catch_unwind;
    use std::thread;

    use super::*;

    #[test]
    fn parts_become_the_vector_that_they_were_cut_from() {
        for capacities in [&[][..], &[0], &[3], &[0, 2, 0, 5, 1], &[1 << 20, 7]] {
            let mut parts = Part::split(capacities.iter().copied());
            for (number, part) in parts.iter_mut().enumerate().rev() {
                for place in 0..capacities[number] {
                    part.push((number, place));
                }
                assert_eq!(part.len(), capacities[number]);
            }
            let expected = (0..capacities.len())
                .flat_map(|number| (0..capacities[number]).map(move |place| (number, place)));
            assert!(Part::join(parts).into_iter().eq(expected));
        }
    }

    #[test]
    fn parts_of_zeros_are_full_and_written_in_any_order() {
        /// As large as a line of a cache, and aligned to it.
        #[derive(Clone, Copy, Debug, PartialEq)]
        #[repr(C, align(64))]
        struct Line([u32; 16]);
        // SAFETY: sixteen numbers, without padding.
        unsafe impl Plain for Line {}
        for lens in [&[][..], &[0], &[0, 0], &[3], &[1, 0, 5, 2, 0], &[1 << 20, 7]] {
            let mut parts = Part::<u32>::zeros(lens.iter().copied());
            thread::scope(|scope| {
                for (number, part) in (1..).zip(&mut parts) {
                    scope.spawn(move || {
                        assert!(part.iter().all(|&value| value == 0));
                        part.iter_mut().rev().for_each(|value| *value = number);
                    });
                }
            });
            let numbers = (1..).zip(lens).flat_map(|(number, &len)| vec![number; len]);
            assert!(Part::join(parts).into_iter().eq(numbers));
        }
        let lines = Part::<Line>::zeros([2, 1]);
        assert!(lines.iter().all(|part| part.as_ptr().is_aligned()));
        assert_eq!(Part::join(lines), [Line([0; 16]); 3]);
    }

    #[test]
    fn wrong_parts_are_refused() {
        let full = || {
            let mut parts = Part::split([1, 2]);
            parts[0].push(1);
            parts[1].extend_from_slice(&[2, 3]);
            parts
        };
        let join = |parts| catch_unwind(move || Part::join(parts)).is_ok();
        assert!(join(full()));
        assert!(!join(full().into_iter().rev().collect()), "another order");
        assert!(!join(full().into_iter().take(1).collect()), "a part is missing");
        assert!(!join(Part::<i32>::split([0, 1])), "not full");
        let [first, other] = [full(), full()].map(|parts| parts.into_iter().next());
        assert!(!join(first.into_iter().chain(other).collect()), "of two vectors");
        assert!(catch_unwind(|| full()[0].push(9)).is_err(), "no room");
        assert!(catch_unwind(|| Part::<u32>::zeros([1])[0].push(9)).is_err(), "zeros are full");
        assert!(catch_unwind(|| Part::<u32>::zeros([1, usize::MAX])).is_err(), "too many");
    }
}
