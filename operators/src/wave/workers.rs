//! The choice of the kernel that answers a chunk on the CPU.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Modelled work of the chunks that each kernel has and has not done.
#[derive(Debug)]
pub(super) struct Workers {
    /// Nanoseconds per kernel. Kernels subtract what they have done, so none seems busy while its
    /// chunks wait for earlier ones of other kernels.
    left_ns: Arc<[AtomicU64]>,
}

/// Work of a kernel, until it is dropped.
#[derive(Debug)]
pub(super) struct Assignment {
    left_ns: Arc<[AtomicU64]>,
    worker: usize,
    cpu_ns: u64,
}

impl Workers {
    /// `count` kernels without work.
    pub(super) fn new(count: usize) -> Self {
        Self { left_ns: (0..count).map(|_| AtomicU64::new(0)).collect() }
    }

    /// The kernel for a chunk that takes `cpu_ns`: the one with the least work left. Of several,
    /// the first one comes last, and the last one before it: they may share threads with prepare
    /// and with collect. While prepare `has_input`, its thread has other work, so the first kernel
    /// takes a chunk only if each of the others has one that waits.
    pub(super) fn choose(&self, cpu_ns: u64, has_input: bool) -> usize {
        let count = self.left_ns.len();
        // Relaxed: only the choice depends on it.
        let left = |worker: usize| match self.left_ns[worker].load(Ordering::Relaxed) {
            left if worker == 0 && has_input => left + weight(cpu_ns),
            left => left,
        };
        let order = (1..=count).map(|place| place % count);
        order.min_by_key(|&worker| left(worker)).expect("there is a kernel")
    }

    /// Assigns a chunk to the kernel `worker`.
    pub(super) fn assign(&self, worker: usize, cpu_ns: u64) -> Assignment {
        let cpu_ns = weight(cpu_ns);
        self.left_ns[worker].fetch_add(cpu_ns, Ordering::Relaxed);
        Assignment { left_ns: Arc::clone(&self.left_ns), worker, cpu_ns }
    }
}

impl Drop for Assignment {
    fn drop(&mut self) {
        self.left_ns[self.worker].fetch_sub(self.cpu_ns, Ordering::Relaxed);
    }
}

/// A chunk without a modelled cost counts, too; sums of chunks have 64 bits.
fn weight(cpu_ns: u64) -> u64 {
    cpu_ns.clamp(1, 1 << 48)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Assigns a chunk for each of `costs`; returns the kernels.
    fn assign(
        workers: &Workers,
        held: &mut Vec<Assignment>,
        costs: &[u64],
        has_input: bool,
    ) -> Vec<usize> {
        let mut assign = |cost| {
            let worker = workers.choose(cost, has_input);
            held.push(workers.assign(worker, cost));
            worker
        };
        costs.iter().map(|&cost| assign(cost)).collect()
    }

    #[test]
    fn chunks_go_to_the_kernel_with_the_least_work() {
        let (workers, mut held) = (Workers::new(3), Vec::new());
        let chosen = assign(&workers, &mut held, &[10, 4, 4, 4, 4, 0, 0], false);
        assert_eq!(chosen, [1, 2, 0, 2, 0, 2, 0]);
        // Kernels 0 and 2 have 9 left, kernel 1 has 10.
        drop(held.remove(0));
        assert_eq!(assign(&workers, &mut held, &[3, 3, 4, 1], false), [1, 1, 1, 2]);
        let (alone, mut held) = (Workers::new(1), Vec::new());
        let chosen = assign(&alone, &mut held, &[7, 0, u64::MAX, u64::MAX], true);
        assert_eq!(chosen, [0; 4]);
        held.clear();
        assert_eq!(alone.left_ns[0].load(Ordering::Relaxed), 0);
    }

    #[test]
    fn the_thread_that_reads_takes_a_chunk_when_others_have_two() {
        let (workers, mut held) = (Workers::new(3), Vec::new());
        let chosen = assign(&workers, &mut held, &[5; 8], true);
        assert_eq!(chosen, [1, 2, 1, 2, 0, 1, 2, 0]);
    }
}
