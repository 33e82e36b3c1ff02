//! The choice of the kernel that answers a chunk on the CPU.

/// Modelled work of each kernel, so that equal runs make equal choices.
#[derive(Debug)]
pub(super) struct Workers {
    /// Nanoseconds per kernel.
    assigned_ns: Vec<u64>,
}

impl Workers {
    /// `count` kernels without work.
    pub(super) fn new(count: usize) -> Self {
        Self { assigned_ns: vec![0; count] }
    }

    /// Assigns a chunk to the kernel with the least work. Of several, it is the last one: prepare
    /// may share the thread of the first, and then goes on only when that has answered its chunk.
    pub(super) fn assign(&mut self, cpu_ns: u64) -> usize {
        let least = (0..self.assigned_ns.len()).rev().min_by_key(|&w| self.assigned_ns[w]);
        let worker = least.expect("there is a kernel");
        // A chunk without a modelled cost counts, too: chunks then go round.
        self.assigned_ns[worker] = self.assigned_ns[worker].saturating_add(cpu_ns.max(1));
        worker
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_go_to_the_kernel_with_the_least_work() {
        let mut workers = Workers::new(3);
        let chosen = [10, 4, 4, 4, 4, 0, 0].map(|cost| workers.assign(cost));
        assert_eq!(chosen, [2, 1, 0, 1, 0, 1, 0]);
        let mut alone = Workers::new(1);
        assert_eq!([7, 0].map(|cost| alone.assign(cost)), [0, 0]);
    }
}
