//! What the grids of all kernels have in common.

use super::device::Properties;

/// Lanes of a warp.
pub(super) const WARP: u32 = 32;

/// What `__launch_bounds__` of the kernels allows.
pub(super) const THREADS_MAX: u32 = 256;

/// Checks the threads of a block.
///
/// # Panics
///
/// If they are no full warps, or more than 256.
pub(super) fn full_warps(threads: u32) -> u32 {
    let fits = threads.is_multiple_of(WARP) && (WARP..=THREADS_MAX).contains(&threads);
    assert!(fits, "{threads} threads are no full warps of 1 to {THREADS_MAX}");
    threads
}

/// The blocks of a grid for which there is work for so many: at least one, and so many a
/// multiprocessor at most, which then stride over the work.
pub(super) fn blocks(device: &Properties, wanted: u32, per_multiprocessor_max: u32) -> u32 {
    let most = device.multiprocessors.saturating_mul(per_multiprocessor_max);
    wanted.clamp(1, most.max(1))
}

/// A device of two multiprocessors.
#[cfg(test)]
pub(super) fn small_device() -> Properties {
    Properties {
        ordinal: 0,
        name: "a device".to_owned(),
        capability: (9, 0),
        multiprocessors: 2,
        clock_khz: 0,
        memory_bytes: 1 << 30,
        memory_clock_khz: 0,
        memory_bus_bits: 0,
        driver_version: 12_000,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_at_least_one_and_limited_by_multiprocessors() {
        let two = small_device();
        let none = Properties { multiprocessors: 0, ..two.clone() };
        assert_eq!(
            [0, 1, 5, 6, 7, u32::MAX].map(|wanted| blocks(&two, wanted, 3)),
            [1, 1, 5, 6, 6, 6]
        );
        assert_eq!(blocks(&two, u32::MAX, u32::MAX), u32::MAX);
        assert_eq!(blocks(&none, 7, 3), 1);
    }

    #[test]
    fn full_warps_up_to_the_bounds_of_kernels_pass() {
        assert_eq!([32, 64, 256].map(full_warps), [32, 64, 256]);
    }

    #[test]
    #[should_panic(expected = "288 threads")]
    fn more_threads_than_kernels_are_compiled_for_are_refused() {
        full_warps(288);
    }
}
