//! The memory budget of a pipeline and its reservations.
//!
//! A [`MemoryBudget`] is a number of bytes that all stages of a pipeline share. State that grows
//! with the stream, such as a dictionary or the text of monitored items, reserves bytes before it
//! grows, in steps of about a megabyte, and gives the bytes back when it is dropped. A reservation
//! allocates nothing: a reservation is bookkeeping, so that a pipeline forgets something or fails
//! with a reason instead of being killed.
//!
//! The budget has no lock: a reservation is one atomic addition, which is made only if the sum
//! fits. `Relaxed` suffices, because the number orders nothing but itself.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use rustix::process::{Resource, getrlimit};
use thiserror::Error;

/// The bytes that the stages of a pipeline may take together.
///
/// # Examples
/// ```
/// use trommel_engine::memory::MemoryBudget;
///
/// let budget = MemoryBudget::new(1_000);
/// let mut dictionary = budget.reserve(600)?;
/// assert!(budget.reserve(500).is_err());
/// dictionary.resize(200)?;
/// assert_eq!(budget.reserved(), 200);
/// drop(dictionary);
/// assert_eq!(budget.reserved(), 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct MemoryBudget(Arc<Account>);

#[derive(Debug)]
struct Account {
    limit: AtomicUsize,
    /// Whether somebody gave the limit as a number, so that nothing raises the limit.
    is_given: bool,
    reserved: AtomicUsize,
}

/// A reservation does not fit into the budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("{asked} bytes more do not fit: {reserved} of {limit} bytes are taken (`memory_max`)")]
pub struct MemoryFull {
    /// Bytes that the reservation asked for.
    pub asked: usize,
    /// Bytes that are reserved.
    pub reserved: usize,
    /// The budget.
    pub limit: usize,
}

impl MemoryBudget {
    /// A budget of `limit` bytes.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self::with(limit, true)
    }

    /// Half of the memory that the process may use: the least of the memory of the machine, the
    /// limit of the control group, and the limit of the address space. The limits are read at the
    /// first call.
    #[must_use]
    pub fn of_process() -> Self {
        static PROCESS: OnceLock<usize> = OnceLock::new();
        Self::with(*PROCESS.get_or_init(process_bytes) / 2, false)
    }

    fn with(limit: usize, is_given: bool) -> Self {
        let (limit, reserved) = (AtomicUsize::new(limit), AtomicUsize::new(0));
        Self(Arc::new(Account { limit, is_given, reserved }))
    }

    /// Raises a limit that nobody gave by `bytes`, if these bytes would take most of the memory
    /// that is left. So a stage may use a number of its own, and leaves the other stages their
    /// share. A limit that somebody gave stays.
    pub fn make_room(&self, bytes: usize) {
        let left = self.left();
        if !self.0.is_given && bytes > left - left / 4 {
            let raised = self.limit().saturating_add(bytes);
            self.0.limit.store(raised, Ordering::Relaxed);
        }
    }

    /// The budget.
    #[must_use]
    pub fn limit(&self) -> usize {
        self.0.limit.load(Ordering::Relaxed)
    }

    /// Bytes that are reserved.
    #[must_use]
    pub fn reserved(&self) -> usize {
        self.0.reserved.load(Ordering::Relaxed)
    }

    /// Bytes that are not reserved.
    #[must_use]
    pub fn left(&self) -> usize {
        self.limit().saturating_sub(self.reserved())
    }

    /// A reservation of no bytes, to be resized.
    #[must_use]
    pub fn reservation(&self) -> Reservation {
        Reservation { budget: self.clone(), bytes: 0 }
    }

    /// Reserves `bytes` until the reservation is dropped.
    ///
    /// # Errors
    /// If the bytes do not fit.
    pub fn reserve(&self, bytes: usize) -> Result<Reservation, MemoryFull> {
        let mut reservation = self.reservation();
        reservation.resize(bytes)?;
        Ok(reservation)
    }
}

/// Bytes of a [`MemoryBudget`], which the drop of the reservation gives back.
#[derive(Debug)]
pub struct Reservation {
    budget: MemoryBudget,
    bytes: usize,
}

impl Default for Reservation {
    /// No bytes of a budget without a limit.
    fn default() -> Self {
        MemoryBudget::new(usize::MAX).reservation()
    }
}

impl Reservation {
    /// Number of reserved bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Changes the reservation to `bytes`.
    ///
    /// # Errors
    /// If the bytes do not fit; then the reservation stays as it is.
    pub fn resize(&mut self, bytes: usize) -> Result<(), MemoryFull> {
        let (limit, reserved) = (self.budget.limit(), &self.budget.0.reserved);
        if bytes <= self.bytes {
            reserved.fetch_sub(self.bytes - bytes, Ordering::Relaxed);
        } else {
            let asked = bytes - self.bytes;
            let add = |now: usize| now.checked_add(asked).filter(|&sum| sum <= limit);
            reserved
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, add)
                .map_err(|reserved| MemoryFull { asked, reserved, limit })?;
        }
        self.bytes = bytes;
        Ok(())
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.budget.0.reserved.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// Memory that the process may use.
fn process_bytes() -> usize {
    let system = rustix::system::sysinfo();
    let machine = system.totalram.saturating_mul(system.mem_unit.into());
    let address_space = getrlimit(Resource::As).current.unwrap_or(u64::MAX);
    let group = fs::read_to_string("/proc/self/cgroup")
        .map_or(u64::MAX, |groups| group_bytes(&groups, Path::new("/sys/fs/cgroup")));
    usize::try_from(machine.min(address_space).min(group)).unwrap_or(usize::MAX)
}

/// The least limit of the control groups in `groups`, which is the text of `/proc/self/cgroup`, and
/// of the groups around these. `root` is the folder at which the groups are mounted.
fn group_bytes(groups: &str, root: &Path) -> u64 {
    let limits = groups.lines().flat_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let (controllers, path) = (fields.next().unwrap_or(""), fields.next().unwrap_or("/"));
        let (folder, file) = match controllers {
            "" => (root.to_owned(), "memory.max"),
            "memory" => (root.join("memory"), "memory.limit_in_bytes"),
            _ => return Vec::new(),
        };
        // In a container, the path may be that outside of the container, which is not visible here.
        let path = Path::new(path.trim_start_matches('/'));
        let limit = |path: &Path| {
            let text = fs::read_to_string(folder.join(path).join(file)).ok()?;
            text.trim().parse::<u64>().ok()
        };
        path.ancestors().filter_map(limit).collect()
    });
    limits.min().unwrap_or(u64::MAX)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn reservations_never_exceed_the_budget_and_come_back() {
        let budget = MemoryBudget::new(100);
        let mut first = budget.reserve(60).expect("it fits");
        let full = budget.reserve(41).expect_err("it does not fit");
        assert_eq!(full, MemoryFull { asked: 41, reserved: 60, limit: 100 });
        assert_eq!(
            full.to_string(),
            "41 bytes more do not fit: 60 of 100 bytes are taken (`memory_max`)"
        );
        let second = budget.reserve(40).expect("it fits");
        assert!(first.resize(61).is_err() && first.resize(usize::MAX).is_err());
        assert_eq!((first.bytes(), budget.reserved()), (60, 100));
        first.resize(10).expect("it is less");
        drop(second);
        assert_eq!(budget.reserved(), 10);
        drop(first);
        assert_eq!(budget.reserved(), 0);
    }

    #[test]
    fn threads_share_a_budget() {
        let budget = MemoryBudget::new(1000);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for bytes in (1..500).cycle().take(20_000) {
                        let held = budget.reserve(bytes);
                        assert!(budget.reserved() <= 1000);
                        drop(held);
                    }
                });
            }
        });
        assert_eq!(budget.reserved(), 0);
    }

    #[test]
    fn a_stage_with_a_number_of_its_own_raises_a_limit_that_nobody_gave() {
        let (given, own) = (MemoryBudget::new(1000), MemoryBudget::with(1000, false));
        for budget in [&given, &own] {
            budget.make_room(700);
            assert_eq!(budget.limit(), 1000, "it fits");
            budget.make_room(5000);
        }
        assert!(given.reserve(5000).is_err());
        let held = own.reserve(5000).unwrap();
        assert_eq!(own.limit() - held.bytes(), 1000, "the others have what they had");
        own.make_room(usize::MAX);
        assert_eq!(own.limit(), usize::MAX);
    }

    #[test]
    fn the_least_limit_of_all_groups_counts() {
        let root = tempfile::tempdir().expect("a folder");
        let write = |path: &str, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().expect("it has one")).expect("a folder");
            fs::write(path, text).expect("a file");
        };
        assert_eq!(group_bytes("0::/a/b\n", root.path()), u64::MAX);
        write("a/b/memory.max", "max\n");
        write("a/memory.max", "4096\n");
        write("memory/c/memory.limit_in_bytes", "1000\n");
        assert_eq!(group_bytes("0::/a/b\n", root.path()), 4096);
        assert_eq!(group_bytes("3:cpu:/\n2:memory:/c/d\n0::/a/b\n", root.path()), 1000);
        assert!(MemoryBudget::of_process().limit() > 1 << 20);
    }
}
