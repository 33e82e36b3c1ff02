//! Descriptors of followed files, whose number a process limits.

use std::fs;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Maximum files that a process follows at once, since each file is polled ten times a second.
pub(crate) const FILES_MAX: usize = 4_096;
/// Descriptors that are left to outputs, states and connections.
const RESERVED: usize = 64;

/// Files that are followed in this process.
static FOLLOWED: AtomicUsize = AtomicUsize::new(0);

/// A descriptor for a followed file. A drop gives the descriptor back.
#[derive(Debug)]
pub(crate) struct Slot(());

impl Slot {
    /// A descriptor; `None` if the followed files have used up the descriptors.
    pub(crate) fn take() -> Option<Self> {
        let limit = files_max();
        let add = |now: usize| (now < limit).then_some(now + 1);
        FOLLOWED.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).ok().map(|_| Self(()))
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        FOLLOWED.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Maximum files that this process follows at once. The first call raises the limit of open files
/// as far as the system lets the process do so, and leaves some descriptors for other uses.
pub(crate) fn files_max() -> usize {
    static LIMIT: OnceLock<usize> = OnceLock::new();
    *LIMIT.get_or_init(|| {
        let limit = raised_limit();
        let open = fs::read_dir("/proc/self/fd").map_or(0, Iterator::count);
        let free = limit.saturating_sub(open);
        free.saturating_sub(RESERVED.min(free / 2)).clamp(1, FILES_MAX)
    })
}

/// The limit of open files, after it was raised to the maximum of the process.
fn raised_limit() -> usize {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    // Followed files need no higher limit. Some systems have no limit, and other programs allocate
    // tables of the size of the limit.
    let wanted = maximum.unwrap_or(u64::MAX).min(2 * FILES_MAX as u64);
    let wanted = wanted.max(current.unwrap_or(u64::MAX));
    let is_raised = setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum }).is_ok();
    let limit = if is_raised { Some(wanted) } else { current };
    limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX)
}
