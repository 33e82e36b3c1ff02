//! The choice of the kernel that answers a chunk on the CPU.

/// Modelled work of the chunks that each kernel has.
#[derive(Debug)]
pub(super) struct Workers {
    /// Nanoseconds per kernel.
    left_ns: Vec<u64>,
}

impl Workers {
    /// `count` kernels without work.
    pub(super) fn new(count: usize) -> Self {
        Self { left_ns: vec![0; count] }
    }

    /// Assigns a chunk to the kernel with the least work left. Of several, the first one comes
    /// last, and the last one before it: they may share threads with prepare and with collect.
    pub(super) fn assign(&mut self, cpu_ns: u64) -> usize {
        let count = self.left_ns.len();
        let order = (1..=count).map(|place| place % count);
        let least = order.min_by_key(|&worker| self.left_ns[worker]);
        let worker = least.expect("there is a kernel");
        self.left_ns[worker] += weight(cpu_ns);
        worker
    }

    /// Notes that a chunk has come back.
    pub(super) fn complete(&mut self, worker: usize, cpu_ns: u64) {
        self.left_ns[worker] -= weight(cpu_ns);
    }
}

/// A chunk without a modelled cost counts, too; sums of chunks have 64 bits.
fn weight(cpu_ns: u64) -> u64 {
    cpu_ns.clamp(1, 1 << 48)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_go_to_the_kernel_with_the_least_work() {
        let mut workers = Workers::new(3);
        let chosen = [10, 4, 4, 4, 4, 0, 0].map(|cost| workers.assign(cost));
        assert_eq!(chosen, [1, 2, 0, 2, 0, 2, 0]);
        // Kernels 0 and 2 have 9 left, kernel 1 has 10.
        workers.complete(1, 10);
        assert_eq!([3, 3, 4, 1].map(|cost| workers.assign(cost)), [1, 1, 1, 2]);
        let mut alone = Workers::new(1);
        assert_eq!([7, 0, u64::MAX, u64::MAX].map(|cost| alone.assign(cost)), [0; 4]);
        alone.complete(0, u64::MAX);
    }
}
