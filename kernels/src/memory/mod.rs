//! Memory of large tables: huge pages, tables that several threads fill in parts, and the return of
//! pages to the system.
//!
//! A page of 4 KiB that is touched for the first time costs a fault, half a microsecond and in a
//! virtual machine more: the first pass over a table of 40 MB takes longer than the work on it. A
//! huge page of 2 MiB costs one fault, and one entry of the processor's address cache instead of
//! 512. Systems with the setting `madvise`, as most have, give huge pages only to memory that asks.
//!
//! An allocator keeps freed memory, for a second or for good. Where one large table replaces
//! another, both are in memory at the peak, and [`drop_pages`] avoids that peak.

#![expect(unsafe_code, reason = "advice takes an address, and plain types are a promise")]

mod parts;

pub use self::parts::Part;

/// Numbers and structs of numbers, whose memory may hold any bytes.
///
/// # Safety
///
/// The type has no padding and no invalid values. CUDA kernels that take it declare it with the
/// same layout.
pub unsafe trait Plain: Copy + Send + Sync + 'static {}

// SAFETY: a number.
unsafe impl Plain for u16 {}
// SAFETY: a number.
unsafe impl Plain for u32 {}
// SAFETY: a number.
unsafe impl Plain for u64 {}
// SAFETY: a number.
unsafe impl Plain for f32 {}

/// Bytes of a huge page.
const HUGE_PAGE: usize = 1 << 21;

/// Asks the system for huge pages for the whole capacity of `table`, as far as it is aligned to
/// huge pages. Call this function before the table is filled: touched pages keep their size. On
/// systems without huge pages, and for small tables, the call has no effect.
///
/// # Examples
///
/// ```
/// use trommel_kernels::memory::prefer_huge_pages;
///
/// let mut table: Vec<u32> = Vec::with_capacity(1 << 21);
/// prefer_huge_pages(&mut table);
/// table.resize(1 << 21, 7);
/// assert!(table.iter().all(|&number| number == 7));
/// ```
pub fn prefer_huge_pages<T>(table: &mut Vec<T>) {
    let (begin, bytes) = aligned(table, HUGE_PAGE);
    #[cfg(target_os = "linux")]
    if bytes > 0 {
        use rustix::mm::{Advice, madvise};
        // SAFETY: the range is within the memory that `table` owns, and this advice changes
        // neither its content nor the access to it.
        let advised = unsafe { madvise(begin.cast(), bytes, Advice::LinuxHugepage) };
        // Kernels without huge pages refuse; the table works without huge pages as well.
        let _ = advised;
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (begin, bytes);
}

/// Drops `table`, and gives its pages back to the system at once, rather than to the allocator.
///
/// # Examples
///
/// ```
/// trommel_kernels::memory::drop_pages(vec![7_u32; 1 << 20]);
/// ```
///
/// # Cost
///
/// About a tenth of a microsecond for each page, and a fault when the address of a page is used
/// again.
pub fn drop_pages<T: Copy>(mut table: Vec<T>) {
    table.clear();
    #[cfg(target_os = "linux")]
    {
        use rustix::mm::{Advice, madvise};
        let (begin, bytes) = aligned(&mut table, rustix::param::page_size());
        if bytes > 0 {
            // SAFETY: the range is within the memory that `table` owns exclusively and in which no
            // value is left: the advice replaces its content by zeros and stays within whole pages.
            let advised = unsafe { madvise(begin.cast(), bytes, Advice::LinuxDontNeed) };
            // If the system refuses, the pages stay with the allocator.
            let _ = advised;
        }
    }
}

/// The whole pages of `page` bytes, a power of two, in the memory of `table`: address and bytes.
fn aligned<T>(table: &mut Vec<T>, page: usize) -> (*mut u8, usize) {
    // A vector of no bytes owns no memory.
    let bytes = if size_of::<T>() == 0 { 0 } else { table.capacity() * size_of::<T>() };
    let begin = table.as_mut_ptr().cast::<u8>();
    let before = begin.align_offset(page);
    (begin.wrapping_add(before), bytes.saturating_sub(before) / page * page)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_of_any_size_keep_their_content() {
        for capacity in [0, 1, HUGE_PAGE / 4, HUGE_PAGE, 3 * HUGE_PAGE + 5] {
            let mut table = Vec::with_capacity(capacity);
            table.extend([3_u32, 1].into_iter().take(capacity));
            prefer_huge_pages(&mut table);
            assert_eq!(table, [3, 1][..capacity.min(2)]);
            table.resize(capacity, 9);
            assert_eq!(
                table.iter().filter(|&&number| number == 9).count(),
                table.len().saturating_sub(2)
            );
        }
        let mut nothing = vec![(); 7];
        prefer_huge_pages(&mut nothing);
        drop_pages(nothing);
    }

    /// Neighbours of a table that is dropped keep their content, wherever the pages lie.
    #[test]
    fn only_the_pages_of_the_table_are_given_back() {
        for len in [0, 1, 1000, 1 << 12, 1 << 16] {
            let tables: Vec<Vec<u32>> = (0..6).map(|number| vec![number; len]).collect();
            let kept: Vec<Vec<u32>> = tables
                .into_iter()
                .filter_map(|table| {
                    let is_kept = table.first().is_none_or(|number| number % 2 == 0);
                    if is_kept {
                        Some(table)
                    } else {
                        drop_pages(table);
                        None
                    }
                })
                .collect();
            assert!(kept.iter().flatten().all(|number| number % 2 == 0));
            let again = vec![9_u32; len];
            assert!(again.iter().all(|&number| number == 9));
        }
    }
}
