//! The chunks of an operator: the next one to be filled, its size, and whether a device pays for
//! it.

use std::mem;

use trommel_engine::batch::Chunk;
use trommel_engine::operator::{Counters, Output};

use super::chunk::{Cost, InWave, WaveChunk};
use super::device::Device;
use super::limits::Wave;
use super::price::Price;
use super::workers::Workers;

/// A fixed number of chunks. Each is made when it is first needed, and then used again and again.
pub(super) struct Feeder<C> {
    wave: Wave,
    make: Box<dyn FnMut() -> C + Send>,
    free: Vec<Box<InWave<C>>>,
    /// Number of chunks that have been made.
    made: usize,
    /// Number of chunks in the wave that can come back unfinished.
    awaited: usize,
    price: Price,
    workers: Workers,
    /// Whether the device is missing or lost.
    has_lost_device: bool,
    /// Number of chunks that were sent, again or for the first time.
    sent: u64,
    /// Number of these that have rows.
    sent_with_rows: u64,
}

impl<C: WaveChunk> Feeder<C> {
    /// A feeder of `workers` kernels.
    pub(super) fn new(
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
            price: Price::new(workers),
            workers: Workers::new(workers),
            has_lost_device: false,
            sent: 0,
            sent_with_rows: 0,
        }
    }

    /// An empty chunk to be filled; `None` while all chunks are in the wave.
    pub(super) fn take(&mut self) -> Option<Box<InWave<C>>> {
        let mut chunk = match self.free.pop() {
            Some(used) => used,
            None if self.made == self.wave.chunks => return None,
            None => {
                self.made += 1;
                Box::new(InWave::new((self.make)()))
            }
        };
        // The size follows from where the chunk will be answered, which is known before it is
        // filled.
        let bytes = self.wave.chunk_bytes;
        chunk.chunk.clear(if self.device_pays() { bytes.on_device } else { bytes.on_cpu });
        Some(chunk)
    }

    /// Takes a chunk back.
    pub(super) fn keep(&mut self, mut chunk: Box<InWave<C>>) {
        self.has_lost_device |= mem::take(&mut chunk.has_lost_device);
        self.awaited -= usize::from(mem::take(&mut chunk.is_awaited));
        self.free.push(chunk);
    }

    /// Charges `cost`, the cost of work that is known before its chunks are filled.
    pub(super) fn expect(&mut self, cost: &Cost) {
        self.price.switch_data(cost);
        self.price.charge(cost);
    }

    /// Sends a chunk that has been filled.
    pub(super) fn send(&mut self, mut chunk: Box<InWave<C>>, out: &mut Output) {
        let cost = chunk.chunk.cost();
        chunk.device_pays = false;
        if chunk.chunk.is_for_device() {
            self.price.switch_data(&cost);
            // Decided before this chunk is charged: the CPU has to have spent the cost of the
            // device.
            chunk.device_pays = self.device_pays();
            self.price.charge(&cost);
        }
        if chunk.device_pays {
            chunk.worker = 0;
        } else {
            self.assign(&mut chunk, self.workers.least_busy(), cost.cpu_ns);
        }
        chunk.is_awaited = chunk.chunk.may_be_unfinished();
        self.awaited += usize::from(chunk.is_awaited);
        self.dispatch(chunk, out);
    }

    /// Sends a chunk that has come back unfinished to the same kernel, or to any if it was meant
    /// for a device that is lost.
    pub(super) fn resubmit(&mut self, mut chunk: Box<InWave<C>>, out: &mut Output) {
        let cpu_ns = chunk.chunk.cost().cpu_ns;
        if mem::take(&mut chunk.has_lost_device) {
            self.has_lost_device = true;
            chunk.worker = self.workers.least_busy();
        }
        if !chunk.device_pays {
            let worker = chunk.worker;
            self.assign(&mut chunk, worker, cpu_ns);
        }
        self.dispatch(chunk, out);
    }

    /// Assigns a chunk to the kernel `worker` on the CPU.
    fn assign(&self, chunk: &mut InWave<C>, worker: usize, cpu_ns: u64) {
        chunk.worker = worker;
        chunk.work = Some(self.workers.assign(worker, cpu_ns));
    }

    fn dispatch(&mut self, mut chunk: Box<InWave<C>>, out: &mut Output) {
        let has_rows = chunk.chunk.has_rows();
        chunk.place = has_rows.then_some(self.sent_with_rows);
        self.sent_with_rows += u64::from(has_rows);
        self.sent += 1;
        out.send_chunk_to(chunk.worker, into_message(chunk));
    }

    /// Whether no chunk can come back unfinished any more.
    pub(super) fn is_settled(&self) -> bool {
        self.awaited == 0
    }

    fn device_pays(&self) -> bool {
        // The price knows nothing of the wave: without a device, it would be "paid" all the same.
        let may_pay = self.wave.device != Device::Cpu && self.price.device_pays();
        let is_forced = self.wave.is_device_forced || matches!(self.wave.device, Device::Cuda(_));
        !self.has_lost_device && (is_forced || may_pay)
    }

    pub(super) fn counters(&self) -> Counters {
        vec![("chunks", self.sent), ("chunk_buffers", self.made as u64)]
    }
}

/// A chunk as a message to another part.
pub(super) fn into_message<C: WaveChunk>(chunk: Box<InWave<C>>) -> Chunk {
    let (items, bytes) = (chunk.chunk.items(), chunk.chunk.bytes());
    Chunk::from_box(chunk, items, bytes)
}
