//! Memory of this process: what is resident, and what is allocated.

use std::fs;

use cap::Cap;
use mimalloc::MiMalloc;

/// The allocator of all measurements. It counts the bytes that it has given out.
#[global_allocator]
static ALLOCATOR: Cap<MiMalloc> = Cap::new(MiMalloc, usize::MAX);

/// Bytes that are allocated now.
pub(crate) fn allocated() -> usize {
    ALLOCATOR.allocated()
}

/// A number of the status of this process, in bytes.
fn status(name: &str) -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    let kilobytes = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok());
    kilobytes.unwrap_or(0) * 1024
}

/// Largest resident memory since [`reset_peak`].
pub(crate) fn peak() -> u64 {
    status("VmHWM")
}

/// Makes the present memory the largest; returns it.
pub(crate) fn reset_peak() -> u64 {
    // If that is not allowed, the peak is that of the whole process.
    let _ = fs::write("/proc/self/clear_refs", "5");
    status("VmRSS")
}
