//! Prefetching of memory into the cache.

#![cfg_attr(target_arch = "x86_64", expect(unsafe_code, reason = "a prefetch takes a pointer"))]

/// Prefetches the cache line of the element at `index`, which may be past the end of the slice.
/// The call has no effect on architectures without such an instruction.
///
/// # Examples
///
/// ```
/// use trommel_kernels::prefetch;
///
/// let (places, order) = ([7, 1, 9, 4], [3, 0, 2]);
/// let mut sum = 0;
/// for (at, &index) in order.iter().enumerate() {
///     if let Some(&next) = order.get(at + 1) {
///         prefetch(&places, next);
///     }
///     sum += places[index];
/// }
/// assert_eq!(sum, 20);
/// ```
#[inline(always)]
pub fn prefetch<T>(slice: &[T], index: usize) {
    prefetch_at(slice.as_ptr().wrapping_add(index));
}

/// Prefetches the cache line of an address, which may be any.
#[inline(always)]
pub(crate) fn prefetch_at<T>(address: *const T) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch reads nothing that the program could see, and no address faults.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}
