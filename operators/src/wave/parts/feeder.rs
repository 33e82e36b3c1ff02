//! The chunks of an operator: the next one to be filled, its size, and whether a device pays for
//! it.

use std::mem;

use trommel_engine::batch::Chunk;
use trommel_engine::operator::{Counters, Output};

use super::workers::Workers;
use crate::wave::chunk::{InWave, Target, WaveChunk};
use crate::wave::device::choice::{DeviceChoice, Estimate};
use crate::wave::device::session::DeviceSession;
use crate::wave::limits::Wave;

/// A fixed number of chunks. A chunk is made when it is first needed, and then used again and
/// again.
pub(crate) struct Feeder<C> {
    wave: Wave,
    make: Box<dyn FnMut() -> C + Send>,
    free: Vec<Box<InWave<C>>>,
    /// Number of chunks that have been made.
    made: usize,
    /// Number of chunks in the wave that can return unfinished.
    awaited: usize,
    choice: DeviceChoice,
    /// Number of kernels, which share the work of the CPU.
    kernels: usize,
    workers: Workers,
    /// Number of chunks that were sent; a resubmitted chunk counts each time.
    sent: u64,
    /// Number of sent chunks that have rows.
    sent_with_rows: u64,
}

impl<C: WaveChunk> Feeder<C> {
    /// A feeder of `workers` kernels.
    pub(crate) fn new(
        wave: Wave,
        workers: usize,
        make: impl FnMut() -> C + Send + 'static,
    ) -> Self {
        let free = Vec::with_capacity(wave.chunks);
        Self {
            wave,
            make: Box::new(make),
            free,
            made: 0,
            awaited: 0,
            choice: DeviceChoice::new(DeviceSession::new(wave.device), wave.device_price),
            kernels: workers,
            workers: Workers::new(workers),
            sent: 0,
            sent_with_rows: 0,
        }
    }

    /// An empty chunk to be filled; `None` while all chunks are in the wave.
    pub(crate) fn take(&mut self) -> Option<Box<InWave<C>>> {
        let mut chunk = match self.free.pop() {
            Some(used) => used,
            None if self.made == self.wave.chunks => return None,
            None => {
                self.made += 1;
                Box::new(InWave::new((self.make)()))
            }
        };
        // The size depends on the place where the chunk will be answered, and the choice knows that
        // place before the chunk is filled.
        let bytes = self.wave.chunk_bytes;
        chunk.chunk.clear(if self.choice.is_next() { bytes.on_device } else { bytes.on_cpu });
        Some(chunk)
    }

    /// Takes a chunk back.
    pub(crate) fn keep(&mut self, mut chunk: Box<InWave<C>>) {
        self.note_loss(&mut chunk);
        self.awaited -= usize::from(mem::take(&mut chunk.is_awaited));
        self.free.push(chunk);
    }

    /// Charges `work` that is known before its chunks are filled.
    pub(crate) fn expect(&mut self, work: &Estimate) {
        self.choice.charge(&self.shared(*work));
    }

    /// The time that all kernels together need for work that takes one core `work.cpu_ns`.
    fn shared(&self, work: Estimate) -> Estimate {
        Estimate { cpu_ns: work.cpu_ns / self.kernels as f64, ..work }
    }

    /// Leaves the device if the device was lost before it answered `chunk`; true if so.
    fn note_loss(&mut self, chunk: &mut InWave<C>) -> bool {
        let is_lost = mem::take(&mut chunk.has_lost_device);
        if is_lost {
            self.choice.leave();
        }
        is_lost
    }

    /// Sends a chunk that has been filled.
    pub(crate) fn send(&mut self, mut chunk: Box<InWave<C>>, out: &mut Output) {
        let work = chunk.chunk.estimate();
        chunk.device_pays = match chunk.chunk.target() {
            Target::Cpu => false,
            Target::Device => self.choice.may_use_device(),
            Target::Cheaper => self.choice.pays(&self.shared(work)),
        };
        if chunk.device_pays {
            // A device belongs to the first kernel.
            chunk.worker = 0;
        } else {
            self.assign(&mut chunk, self.workers.least_busy(), &work);
        }
        chunk.is_awaited = chunk.chunk.may_be_unfinished();
        self.awaited += usize::from(chunk.is_awaited);
        self.dispatch(chunk, out);
    }

    /// Sends a chunk that has returned unfinished to the same kernel, or to the least busy kernel
    /// if the chunk was meant for a device that is lost.
    pub(crate) fn resubmit(&mut self, mut chunk: Box<InWave<C>>, out: &mut Output) {
        let work = chunk.chunk.estimate();
        if self.note_loss(&mut chunk) {
            chunk.worker = self.workers.least_busy();
        }
        if !chunk.device_pays {
            let worker = chunk.worker;
            self.assign(&mut chunk, worker, &work);
        }
        self.dispatch(chunk, out);
    }

    /// Assigns a chunk to the kernel `worker` on the CPU.
    fn assign(&self, chunk: &mut InWave<C>, worker: usize, work: &Estimate) {
        chunk.worker = worker;
        chunk.work = Some(self.workers.assign(worker, work.cpu_ns));
    }

    fn dispatch(&mut self, mut chunk: Box<InWave<C>>, out: &mut Output) {
        let has_rows = chunk.chunk.has_rows();
        chunk.place = has_rows.then_some(self.sent_with_rows);
        self.sent_with_rows += u64::from(has_rows);
        self.sent += 1;
        out.send_chunk_to(chunk.worker, into_message(chunk));
    }

    /// Whether no chunk can return unfinished any more.
    pub(crate) fn is_settled(&self) -> bool {
        self.awaited == 0
    }

    pub(crate) fn counters(&self) -> Counters {
        vec![("chunks", self.sent), ("chunk_buffers", self.made as u64)]
    }
}

/// A chunk as a message to another part.
pub(crate) fn into_message<C: WaveChunk>(chunk: Box<InWave<C>>) -> Chunk {
    let (items, bytes) = (chunk.chunk.items(), chunk.chunk.bytes());
    Chunk::from_box(chunk, items, bytes)
}
