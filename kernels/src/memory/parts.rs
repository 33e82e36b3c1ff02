//! A vector that several threads fill, each a part of it.

#![expect(unsafe_code, reason = "parts of one allocation are filled side by side")]

use std::fmt;
use std::mem::ManuallyDrop;
use std::ptr::{copy_nonoverlapping, slice_from_raw_parts, slice_from_raw_parts_mut};
use std::sync::Arc;

use super::prefer_huge_pages;

/// The memory of a vector whose elements belong to parts.
struct Whole<T> {
    begin: *mut T,
    /// Elements that the memory has room for.
    capacity: usize,
    /// Elements of all parts.
    len: usize,
}

// SAFETY: it stands for a vector of `T`, which can go to another thread if `T` can.
unsafe impl<T: Send> Send for Whole<T> {}
// SAFETY: a shared part gives shared access to its elements, which `T` allows to several threads.
unsafe impl<T: Sync> Sync for Whole<T> {}

impl<T> Drop for Whole<T> {
    fn drop(&mut self) {
        // SAFETY: both are those of the vector that `parts` took apart, and no part is left.
        drop(unsafe { Vec::from_raw_parts(self.begin, 0, self.capacity) });
    }
}

/// A part of a vector, to be filled from its beginning. Parts can be filled on several threads;
/// [`Part::join`] makes the vector of them.
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
/// ```
pub struct Part<T> {
    whole: Arc<Whole<T>>,
    /// Place of its first element in the whole.
    begin: usize,
    len: usize,
    capacity: usize,
}

impl<T: Copy> Part<T> {
    /// Parts of one vector, for as many elements each, in huge pages where the system has them.
    ///
    /// # Panics
    ///
    /// If the sum is more than a vector can hold.
    #[must_use]
    pub fn split(capacities: impl IntoIterator<Item = usize>) -> Vec<Self> {
        let capacities: Vec<usize> = capacities.into_iter().collect();
        let sum = capacities.iter().try_fold(0_usize, |sum, len| sum.checked_add(*len));
        let len = sum.expect("at most as many elements as a vector can hold");
        let mut memory = Vec::with_capacity(len);
        prefer_huge_pages(&mut memory);
        let mut memory = ManuallyDrop::new(memory);
        let (begin, capacity) = (memory.as_mut_ptr(), memory.capacity());
        let whole = Arc::new(Whole { begin, capacity, len });
        let mut begin = 0;
        let mut part = |capacity| {
            let part = Self { whole: Arc::clone(&whole), begin, len: 0, capacity };
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

    /// Appends `value` until the part is full. All its elements, to be written in any order.
    pub fn fill(&mut self, value: T) -> &mut [T] {
        let begin = self.whole.begin.wrapping_add(self.begin);
        for place in self.len..self.capacity {
            // SAFETY: `place` is below `capacity`: a place of this part, and of no other one.
            unsafe { begin.wrapping_add(place).write(value) };
        }
        self.len = self.capacity;
        // SAFETY: all places of the part have been written, and it is borrowed mutably.
        unsafe { &mut *slice_from_raw_parts_mut(begin, self.len) }
    }

    /// The elements so far.
    #[inline]
    #[must_use]
    pub fn as_slice(&self) -> &[T] {
        let begin = self.whole.begin.wrapping_add(self.begin);
        // SAFETY: the first `len` places of a part have been written, and only it can write them.
        unsafe { &*slice_from_raw_parts(begin, self.len) }
    }

    /// The vector of the elements of `parts`, all those of a call of [`Self::split`] in their
    /// order.
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

#[cfg(test)]
mod tests {
    use std::panic::catch_unwind;

    use super::*;

    #[test]
    fn parts_become_the_vector_that_they_were_cut_from() {
        for capacities in [&[][..], &[0], &[3], &[0, 2, 0, 5, 1], &[1 << 20, 7]] {
            let mut parts = Part::split(capacities.iter().copied());
            for (number, part) in parts.iter_mut().enumerate().rev() {
                for place in 0..capacities[number] {
                    part.push((number, place));
                }
                assert_eq!(part.as_slice().len(), capacities[number]);
            }
            let expected = (0..capacities.len())
                .flat_map(|number| (0..capacities[number]).map(move |place| (number, place)));
            assert!(Part::join(parts).into_iter().eq(expected));
        }
    }

    #[test]
    fn a_part_that_is_filled_can_be_written_in_any_order() {
        let mut parts = Part::split([4, 2, 0]);
        parts[1].fill(7)[1] = 9;
        parts[0].push(1);
        assert_eq!(parts[0].fill(5), [1, 5, 5, 5]);
        parts[0].fill(6).reverse();
        assert!(parts[2].fill(8).is_empty());
        assert_eq!(Part::join(parts), [5, 5, 5, 1, 7, 9]);
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
    }
}
