//! The chunks of an operator: the next one to be filled, its size, and whether a device pays for
//! it.

use std::mem;

use trommel_engine::batch::Chunk;
use trommel_engine::operator::{Counters, Output};

use super::workers::Workers;
use crate::wave::chunk::{InWave, Target, WaveChunk};
use crate::wave::device::choice::{DeviceChoice, Estimate};
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
    /// Work of the devices, each by the number of its kernel.
    devices: Workers,
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
        Self {
            make: Box::new(make),
            free: Vec::with_capacity(wave.chunks),
            made: 0,
            awaited: 0,
            choice: DeviceChoice::new(wave.session.clone(), wave.device_price),
            kernels: workers,
            workers: Workers::new(workers),
            devices: Workers::new(workers),
            sent: 0,
            sent_with_rows: 0,
            wave,
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
        chunk.has_lost_device = false;
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

    /// Sends a chunk that has been filled.
    pub(crate) fn send(&mut self, mut chunk: Box<InWave<C>>, out: &mut Output) {
        let work = chunk.chunk.estimate();
        let device_pays = match chunk.chunk.target() {
            Target::Cpu => false,
            Target::Device => self.choice.may_use_device(),
            Target::Cheaper => self.choice.pays(&self.shared(work)),
        };
        let device = if device_pays { self.free_device() } else { None };
        chunk.device_pays = device.is_some();
        match device {
            Some(device) => self.assign_to_device(&mut chunk, device, &work),
            None => self.assign(&mut chunk, self.workers.least_busy(), &work),
        }
        // If one of several devices is lost, its chunks return for another device.
        let can_return = chunk.device_pays && self.choice.devices() > 1;
        chunk.is_awaited = can_return || chunk.chunk.may_be_unfinished();
        self.awaited += usize::from(chunk.is_awaited);
        self.dispatch(chunk, out);
    }

    /// Sends a chunk that has returned unfinished to the same kernel, to the least busy kernel if
    /// the chunk comes from a device that does not go on with it, or to a free device.
    pub(crate) fn resubmit(&mut self, mut chunk: Box<InWave<C>>, out: &mut Output) {
        let work = chunk.chunk.estimate();
        let was_for_device = chunk.device_pays || mem::take(&mut chunk.has_lost_device);
        chunk.device_pays &= chunk.chunk.target() != Target::Cpu;
        if chunk.device_pays {
            let device = self.free_device().unwrap_or(chunk.worker);
            self.assign_to_device(&mut chunk, device, &work);
        } else {
            let worker = if was_for_device { self.workers.least_busy() } else { chunk.worker };
            self.assign(&mut chunk, worker, &work);
        }
        self.dispatch(chunk, out);
    }

    /// Sends a chunk that a device is to answer to a device. If no device is left, the kernel that
    /// had the chunk gets the chunk again, and the CPU answers.
    pub(crate) fn send_again(&mut self, mut chunk: Box<InWave<C>>, out: &mut Output) {
        chunk.is_undone = false;
        chunk.device_pays = true;
        let device = self.free_device().unwrap_or(chunk.worker);
        let work = chunk.chunk.estimate();
        self.assign_to_device(&mut chunk, device, &work);
        out.send_chunk_to(chunk.worker, into_message(chunk));
    }

    /// The device that has the least work left, by the number of its kernel; `None` if all devices
    /// are lost.
    fn free_device(&self) -> Option<usize> {
        self.devices.least_busy_of(self.wave.session.left())
    }

    /// Assigns a chunk to the device of a kernel.
    fn assign_to_device(&self, chunk: &mut InWave<C>, device: usize, work: &Estimate) {
        chunk.worker = device;
        // A device needs a share of the time of the CPU, which is about the same for all chunks.
        chunk.work = Some(self.devices.assign(device, work.cpu_ns));
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
