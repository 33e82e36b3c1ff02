//! The choice of the kernel, or of the device, that answers a chunk.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::wave::whole;

/// Modelled work of the chunks that each kernel, or the device of each kernel, has and has not
/// done.
#[derive(Debug)]
pub(crate) struct Workers {
    /// Nanoseconds per kernel. A kernel subtracts the work of a chunk that it has answered, so no
    /// kernel seems busy while its answered chunks wait in collect for earlier chunks of other
    /// kernels.
    left_ns: Arc<[AtomicU64]>,
}

/// Work of a kernel. The drop of this value ends the work.
#[derive(Debug)]
pub(crate) struct Assignment {
    left_ns: Arc<[AtomicU64]>,
    worker: usize,
    cpu_ns: u64,
}

impl Workers {
    /// `count` kernels without work.
    pub(crate) fn new(count: usize) -> Self {
        Self { left_ns: (0..count).map(|_| AtomicU64::new(0)).collect() }
    }

    /// The kernel with the least work left. Among equal kernels, kernel 0 comes last and the
    /// highest number comes just before: these two kernels may share threads with prepare and with
    /// collect.
    pub(crate) fn least_busy(&self) -> usize {
        let count = self.left_ns.len();
        let order = (1..=count).map(|place| place % count);
        self.least_busy_of(order).expect("there is a kernel")
    }

    /// The one of `workers` with the least work left; among equal workers, the first.
    pub(crate) fn least_busy_of(&self, workers: impl Iterator<Item = usize>) -> Option<usize> {
        // Relaxed: only the choice of a kernel depends on the value, and no other data.
        workers.min_by_key(|&worker| self.left_ns[worker].load(Ordering::Relaxed))
    }

    /// Assigns a chunk to the kernel `worker`.
    pub(crate) fn assign(&self, worker: usize, cpu_ns: f64) -> Assignment {
        // A chunk without a modelled cost counts as 1 ns; the upper limit keeps the sum of all
        // chunks within 64 bits.
        let cpu_ns = (whole(cpu_ns) as u64).clamp(1, 1 << 48);
        self.left_ns[worker].fetch_add(cpu_ns, Ordering::Relaxed);
        Assignment { left_ns: Arc::clone(&self.left_ns), worker, cpu_ns }
    }
}

impl Assignment {
    /// Moves the work to the kernel `worker`.
    pub(crate) fn move_to(&mut self, worker: usize) {
        self.left_ns[self.worker].fetch_sub(self.cpu_ns, Ordering::Relaxed);
        self.left_ns[worker].fetch_add(self.cpu_ns, Ordering::Relaxed);
        self.worker = worker;
    }
}

impl Drop for Assignment {
    fn drop(&mut self) {
        self.left_ns[self.worker].fetch_sub(self.cpu_ns, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_go_to_the_kernel_with_the_least_work() {
        let (workers, mut held) = (Workers::new(3), Vec::new());
        let assign = |held: &mut Vec<Assignment>, cost: u32| {
            let worker = workers.least_busy();
            held.push(workers.assign(worker, cost.into()));
            worker
        };
        let chosen = [10, 4, 4, 4, 4, 0, 0].map(|cost| assign(&mut held, cost));
        assert_eq!(chosen, [1, 2, 0, 2, 0, 2, 0]);
        // Kernels 0 and 2 have 9 left, kernel 1 has 10.
        drop(held.remove(0));
        assert_eq!([3, 3, 4, 1].map(|cost| assign(&mut held, cost)), [1, 1, 1, 2]);
        // Kernels 0 and 1 have 9 and 10 left, kernel 2 has 10.
        held[0].move_to(0);
        assert_eq!([1, 1].map(|cost| assign(&mut held, cost)), [2, 2]);
    }

    #[test]
    fn sums_of_all_costs_fit() {
        let alone = Workers::new(1);
        let held =
            [7.0, 0.0, f64::INFINITY, 1e30].map(|cost| alone.assign(alone.least_busy(), cost));
        assert!(held.iter().all(|work| work.worker == 0));
        drop(held);
        assert_eq!(alone.left_ns[0].load(Ordering::Relaxed), 0);
    }
}
