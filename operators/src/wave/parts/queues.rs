//! Chunks that no kernel has begun, for the CPU or for devices.

use std::sync::Arc;

use crossbeam_channel::{Receiver, Sender, bounded};
use trommel_engine::batch::Origin;

use crate::wave::chunk::InWave;

/// A chunk that waits or is in flight.
pub(crate) struct Held<C> {
    pub(crate) chunk: Box<InWave<C>>,
    pub(crate) origin: Option<Origin>,
}

/// Queues of waiting chunks, one queue for each kernel, from the point of view of the kernel `own`.
/// A kernel without chunks takes chunks from the queues of other kernels, whose threads may have
/// other work or whose chunks may take longer than modelled.
pub(crate) struct Queues<C> {
    all: Arc<[Queue<C>]>,
    /// Number of the kernel that has this value.
    own: usize,
}

/// A queue that each kernel can take from.
type Queue<C> = (Sender<Held<C>>, Receiver<Held<C>>);

impl<C> Queues<C> {
    /// Makes `kernels` queues with room for `chunks` chunks each. Each kernel gets a value with all
    /// queues.
    pub(crate) fn of(kernels: usize, chunks: usize) -> impl Iterator<Item = Self> {
        let all: Arc<[Queue<C>]> = (0..kernels).map(|_| bounded(chunks)).collect();
        (0..kernels).map(move |own| Self { all: Arc::clone(&all), own })
    }

    /// Whether there is no other kernel.
    pub(crate) fn is_alone(&self) -> bool {
        self.all.len() == 1
    }

    /// Number of chunks in the queue of the kernel `own`.
    pub(crate) fn len(&self) -> usize {
        self.all[self.own].1.len()
    }

    /// Whether no kernel has a chunk that waits.
    pub(crate) fn are_empty(&self) -> bool {
        self.all.iter().all(|(_, chunks)| chunks.is_empty())
    }

    /// Adds `held` to the queue of the kernel `own`.
    ///
    /// # Panics
    /// If there are more chunks than room.
    pub(crate) fn push(&self, held: Held<C>) {
        self.all[self.own].0.try_send(held).expect("there is room for all chunks of the wave");
    }

    /// Adds `first` before the other chunks of the kernel `own`.
    pub(crate) fn push_first(&self, first: impl Iterator<Item = Held<C>>) {
        let later: Vec<Held<C>> = self.all[self.own].1.try_iter().collect();
        first.chain(later).for_each(|held| self.push(held));
    }

    /// Takes the first chunk of the kernel `own`.
    pub(crate) fn pop_own(&self) -> Option<Held<C>> {
        self.all[self.own].1.try_recv().ok()
    }

    /// Takes the first chunk of the kernel `own`, or else the first chunk of the next kernel that
    /// has a chunk.
    pub(crate) fn pop(&self) -> Option<Held<C>> {
        let kernels = self.all.len();
        let order = (self.own..self.own + kernels).map(|kernel| kernel % kernels);
        let mut held = order.filter_map(|kernel| self.all[kernel].1.try_recv().ok()).next()?;
        held.chunk.move_to(self.own);
        Some(held)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wave::parts::workers::Workers;

    #[test]
    fn a_kernel_without_chunks_takes_those_of_others() {
        let workers = Workers::new(3);
        let queues: Vec<Queues<char>> = Queues::of(3, 4).collect();
        let held = |chunk, worker| {
            let mut chunk = Box::new(InWave::new(chunk));
            (chunk.worker, chunk.work) = (worker, Some(workers.assign(worker, 10.0)));
            Held { chunk, origin: None }
        };
        let pop = |kernel: usize| {
            let held = queues[kernel].pop()?;
            Some((held.chunk.chunk, held.chunk.worker))
        };
        queues[0].push(held('b', 0));
        queues[0].push(held('c', 0));
        queues[0].push_first([held('a', 0)].into_iter());
        queues[2].push(held('d', 2));
        assert_eq!((queues[0].len(), queues[1].len(), queues[1].are_empty()), (3, 0, false));
        // The next kernel that has a chunk is kernel 2, then kernel 0.
        assert_eq!([pop(1), pop(1), pop(0)], [Some(('d', 1)), Some(('a', 1)), Some(('b', 0))]);
        assert_eq!(
            queues[2].pop().map(|held| (workers.least_busy(), held.chunk.worker)),
            Some((1, 2))
        );
        assert!(queues[1].are_empty() && pop(0).is_none());
    }
}
