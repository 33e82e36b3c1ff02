//! KERNEL: the part between prepare and collect.

use std::collections::VecDeque;
use std::mem;
use std::time::{Duration, Instant};

use trommel_engine::batch::Payload;
use trommel_engine::operator::{Counters, Flow, Operator, OperatorError, Output};
use trommel_kernels::cuda::{self, DeviceError, NoDevice, Times};

use super::feeder::into_message;
use super::ledger::Ledger;
use super::queues::{Held, Queues};
use crate::wave::chunk::{InWave, WaveChunk};
use crate::wave::device::error::WaveError;
use crate::wave::device::parameter::Device;
use crate::wave::kernel::{Kernel, OnDevice};
use crate::wave::limits::Wave;

/// Looks at a late chunk: the next look comes after 1 / `LATE_LOOKS` of the time since the chunk's
/// start.
const LATE_LOOKS: u32 = 16;
/// Shortest and longest time between two looks: the cost of a timer, and a delay that nobody
/// notices.
const PAUSE_MIN: Duration = Duration::from_micros(20);
const PAUSE_MAX: Duration = Duration::from_millis(2);

/// Place where chunks are answered.
enum AnswerPlace<D> {
    /// The CPU, until a device pays.
    Unopened,
    Device(D),
    /// The CPU, to the end.
    Cpu,
}

/// Answers chunks on a device or on the CPU.
///
/// A kernel that is alone answers a chunk at once, while the chunk is in the cache. A kernel that
/// is not alone works in the background of its thread: prepare and collect may share the thread,
/// and the other kernels wait for prepare and collect. Meanwhile, a kernel that has nothing to do
/// takes chunks that wait for this kernel.
pub(crate) struct KernelPart<K: Kernel> {
    kernel: K,
    wave: Wave,
    place: AnswerPlace<K::OnDevice>,
    /// Chunks for the CPU.
    on_cpu: Queues<K::Chunk>,
    /// Chunks for which the device has no room yet.
    waiting: VecDeque<Held<K::Chunk>>,
    /// Chunks on the device.
    flying: VecDeque<Held<K::Chunk>>,
    /// Time at which the device began the first chunk in flight.
    first_since: Instant,
    /// Longest step of the last chunk, a lower bound on the interval between completions. Measured
    /// on the device, so a thread that sleeps too long does not inflate the value.
    expected: Duration,
    next_look: Instant,
    is_finishing: bool,
    ledger: Ledger,
}

impl<K: Kernel> KernelPart<K> {
    /// A part around `kernel` that answers the chunks of `on_cpu`. With `auto`, the device is
    /// opened for the first chunk for which the device pays; with `cuda`, for the first chunk, or
    /// at the end of a stream without chunks.
    pub(crate) fn new(kernel: K, wave: Wave, on_cpu: Queues<K::Chunk>) -> Self {
        let now = Instant::now();
        let is_on_cpu = wave.device == Device::Cpu;
        Self {
            kernel,
            wave,
            place: if is_on_cpu { AnswerPlace::Cpu } else { AnswerPlace::Unopened },
            on_cpu,
            waiting: VecDeque::with_capacity(wave.chunks),
            flying: VecDeque::with_capacity(wave.chunks),
            first_since: now,
            expected: Duration::ZERO,
            next_look: now,
            is_finishing: false,
            ledger: Ledger::default(),
        }
    }

    /// Whether the device is to be used for the next chunk and is not open yet.
    fn is_to_be_opened(&self) -> bool {
        let is_wanted = match self.wave.device {
            Device::Auto => !self.waiting.is_empty(),
            Device::Cpu | Device::Cuda(_) => true,
        };
        is_wanted && matches!(self.place, AnswerPlace::Unopened)
    }

    /// Opens the device if it is to be opened.
    fn open(&mut self) -> Result<(), WaveError> {
        if !self.is_to_be_opened() {
            return Ok(());
        }
        let begin = Instant::now();
        let first = self.waiting.front().map(|held| &held.chunk.chunk);
        let opened = self.kernel.open(first).map(|device| self.place = AnswerPlace::Device(device));
        self.ledger.opened(begin.elapsed());
        opened.or_else(|reason| self.continue_without(reason))
    }

    /// Switches to the CPU because the device cannot be opened.
    ///
    /// # Errors
    /// Unless `device` is `auto`.
    fn continue_without(&mut self, reason: NoDevice) -> Result<(), WaveError> {
        let device = self.wave.device;
        // A misspelt setting must not be taken for "no device".
        let is_mistaken = matches!(reason, NoDevice::UnknownSetting { .. });
        if is_mistaken || device != Device::Auto {
            return Err(WaveError::NoDevice { device, reason });
        }
        if let NoDevice::Failed(reason) = reason {
            self.note_failure(&reason);
        }
        self.switch_to_cpu();
        Ok(())
    }

    /// Does all work that needs no waiting; on the CPU, at most one chunk if `runs_on_cpu`.
    fn advance(&mut self, out: &mut Output, runs_on_cpu: bool) -> Result<Flow, WaveError> {
        self.open()?;
        let now = Instant::now();
        if let Err(error) = self.fly(now, out) {
            self.leave_device(error)?;
        }
        if runs_on_cpu && let Some(held) = self.on_cpu.pop() {
            self.run(held, out);
        }
        let on_device = self.waiting.len() + self.flying.len();
        // Prepare has no chunk to fill when the stream has ended or all chunks are in this part.
        let is_exposed = self.is_finishing || self.on_cpu.len() + on_device == self.wave.chunks;
        self.ledger.flying(Instant::now(), !self.flying.is_empty(), is_exposed);
        self.plan_look(now);
        // A second read could differ from the first: other kernels take chunks at any time.
        let waits_on_cpu = !self.on_cpu.are_empty();
        Ok(if waits_on_cpu && !self.on_cpu.is_alone() {
            Flow::Background
        } else if waits_on_cpu || on_device > 0 {
            Flow::InFlight
        } else {
            Flow::NeedInput
        })
    }

    /// Answers a chunk on the CPU, or returns the chunk without an answer.
    fn run(&mut self, mut held: Held<K::Chunk>, out: &mut Output) {
        let begin = Instant::now();
        // True for a chunk that was planned for a device, after the device was lost.
        let has_lost_device = mem::take(&mut held.chunk.device_pays);
        if !(has_lost_device && self.kernel.give_back(&mut held.chunk.chunk)) {
            self.kernel.run(&mut held.chunk.chunk);
        }
        self.ledger.ran(begin.elapsed());
        held.chunk.work = None;
        held.chunk.has_lost_device = has_lost_device;
        send(held, out);
    }

    /// Collects chunks that have landed, and submits waiting chunks.
    fn fly(&mut self, now: Instant, out: &mut Output) -> Result<(), DeviceError> {
        self.land(now, out)?;
        self.submit(now)
    }

    fn land(&mut self, now: Instant, out: &mut Output) -> Result<(), DeviceError> {
        let AnswerPlace::Device(device) = &mut self.place else { return Ok(()) };
        while let Some(held) = self.flying.front_mut()
            && device.is_done()?
        {
            let landed = device.collect(&mut held.chunk.chunk)?;
            self.ledger.landed(landed);
            let Times { copy_in, kernel, copy_out } = landed.times;
            self.expected = copy_in.max(kernel).max(copy_out);
            self.first_since = now;
            self.flying.pop_front().into_iter().for_each(|held| send(held, out));
        }
        Ok(())
    }

    fn submit(&mut self, now: Instant) -> Result<(), DeviceError> {
        let AnswerPlace::Device(device) = &mut self.place else { return Ok(()) };
        while let Some(held) = self.waiting.front()
            && device.has_room(&held.chunk.chunk)
        {
            if self.flying.is_empty() {
                self.first_since = now;
            }
            device.submit(&held.chunk.chunk)?;
            self.flying.extend(self.waiting.pop_front());
        }
        Ok(())
    }

    /// Counts and logs the failure that makes the CPU take over. The part calls this once, because
    /// no device is tried again.
    fn note_failure(&mut self, reason: &DeviceError) {
        tracing::warn!(%reason, "the GPU failed; the CPU takes over");
        self.ledger.failed(reason.kind());
    }

    /// Switches to the CPU because the device has failed.
    ///
    /// # Errors
    /// Unless `device` is `auto`.
    fn leave_device(&mut self, reason: DeviceError) -> Result<(), WaveError> {
        let device = self.wave.device;
        if device != Device::Auto {
            return Err(WaveError::Failed { device, reason });
        }
        self.note_failure(&reason);
        self.switch_to_cpu();
        Ok(())
    }

    /// Switches to the CPU. Chunks that were in flight come first.
    fn switch_to_cpu(&mut self) {
        // The drop of the device waits until the device uses no buffer of a chunk any more.
        self.place = AnswerPlace::Cpu;
        let lost = self.flying.drain(..).chain(self.waiting.drain(..));
        self.on_cpu.push_first(lost);
    }

    /// Sets the time of the next look at the device. The time is now if the kernel is alone and
    /// another chunk waits for the CPU.
    fn plan_look(&mut self, now: Instant) {
        self.next_look = now;
        if self.on_cpu.is_alone() && !self.on_cpu.are_empty() {
            return;
        }
        let passed = now.saturating_duration_since(self.first_since);
        // The first look comes shortly before the chunk can land. Once the chunk is late, the
        // intervals grow with the delay, so that a chunk costs a few looks and waits for at most a
        // sixteenth of its time.
        let early = (self.expected - self.expected / 8).saturating_sub(passed);
        self.next_look += early.max(passed / LATE_LOOKS).clamp(PAUSE_MIN, PAUSE_MAX);
    }
}

fn send<C: WaveChunk>(held: Held<C>, out: &mut Output) {
    out.send_chunk(into_message(held.chunk).with_origin(held.origin));
}

impl<K: Kernel> Operator for KernelPart<K> {
    fn process(
        &mut self,
        _port: usize,
        input: Payload,
        out: &mut Output,
    ) -> Result<Flow, OperatorError> {
        let origin = input.origin();
        let chunk: Box<InWave<K::Chunk>> = input.into_chunk().into_box();
        // Prepare still sends chunks for a device after the device is lost, until the first lost
        // chunk returns.
        let is_on_cpu = !chunk.device_pays || matches!(self.place, AnswerPlace::Cpu);
        let held = Held { chunk, origin };
        if is_on_cpu {
            self.on_cpu.push(held);
        } else {
            self.waiting.push_back(held);
        }
        Ok(self.advance(out, self.on_cpu.is_alone())?)
    }

    fn finish(&mut self, out: &mut Output) -> Result<Flow, OperatorError> {
        self.is_finishing = true;
        Ok(self.advance(out, self.on_cpu.is_alone())?)
    }

    fn wake_at(&self) -> Option<Instant> {
        let is_running = self.on_cpu.is_alone() && !self.on_cpu.are_empty();
        (is_running || !self.flying.is_empty()).then_some(self.next_look)
    }

    fn wake(&mut self, _now: Instant, out: &mut Output) -> Result<Flow, OperatorError> {
        Ok(self.advance(out, true)?)
    }

    fn device(&self) -> Option<String> {
        match self.wave.device {
            Device::Cpu => None,
            Device::Auto if !cuda::Device::HAS_KERNELS => {
                Some(format!("auto: the CPU; {}", NoDevice::NoKernels))
            }
            Device::Auto => Some("auto: a GPU where there is one and it pays".to_owned()),
            device @ Device::Cuda(_) => Some(device.to_string()),
        }
    }

    fn counters(&self) -> Counters {
        self.ledger.counters()
    }
}
