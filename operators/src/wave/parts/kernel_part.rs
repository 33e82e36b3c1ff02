//! KERNEL: the part between prepare and collect.

use std::collections::VecDeque;
use std::mem;
use std::time::{Duration, Instant};

use trommel_engine::batch::Payload;
use trommel_engine::operator::{Counters, Flow, Operator, OperatorError, Output};
use trommel_kernels::cuda::{self, DeviceError, FailureKind, NoDevice, Times};

use super::feeder::into_message;
use super::ledger::Ledger;
use super::queues::{Held, Queues};
use crate::wave::chunk::{InWave, WaveChunk};
use crate::wave::device::error::WaveError;
use crate::wave::device::parameter::Device;
use crate::wave::device::session::DeviceSession;
use crate::wave::kernel::{Kernel, OnDevice};

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
    /// The device of this kernel, if there may be one.
    device: Option<DeviceSession>,
    place: AnswerPlace<K::OnDevice>,
    /// Number of chunks of the wave.
    chunks: usize,
    /// Chunks for the CPU.
    on_cpu: Queues<K::Chunk>,
    /// Chunks for devices.
    for_devices: Queues<K::Chunk>,
    /// The next chunk for the device, which has no room for the chunk yet.
    next: Option<Held<K::Chunk>>,
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
    /// A part around `kernel` that answers chunks on the CPU and on `device`, out of the `chunks`
    /// chunks of a wave. With `auto`, the device is opened for the first chunk for
    /// which the device pays; with `cuda`, for the first chunk, and the first device also at the
    /// end of a stream without chunks.
    pub(crate) fn new(
        kernel: K,
        device: Option<DeviceSession>,
        chunks: usize,
        (on_cpu, for_devices): (Queues<K::Chunk>, Queues<K::Chunk>),
    ) -> Self {
        let now = Instant::now();
        Self {
            kernel,
            place: if device.is_some() { AnswerPlace::Unopened } else { AnswerPlace::Cpu },
            device,
            chunks,
            on_cpu,
            for_devices,
            next: None,
            flying: VecDeque::with_capacity(chunks),
            first_since: now,
            expected: Duration::ZERO,
            next_look: now,
            is_finishing: false,
            ledger: Ledger::default(),
        }
    }

    /// The device, if it is to be used for the next chunk and is not open yet.
    fn to_be_opened(&self) -> Option<DeviceSession> {
        let device = self.device.as_ref()?;
        // The first device tells why no device is to be had, also in a stream without chunks.
        let is_asked_for =
            device.device().is_required() && (device.place() == 0 || !self.is_finishing);
        let is_wanted = is_asked_for || self.waiting() > 0;
        (is_wanted && matches!(self.place, AnswerPlace::Unopened)).then(|| device.clone())
    }

    /// Opens the device if it is to be opened.
    fn open(&mut self, out: &mut Output) -> Result<(), WaveError> {
        let Some(device) = self.to_be_opened() else { return Ok(()) };
        let begin = Instant::now();
        self.next = self.next.take().or_else(|| self.for_devices.pop_own());
        let first = self.next.as_ref().map(|held| &held.chunk.chunk);
        let opened = self.kernel.open(&device, first);
        self.ledger.opened(begin.elapsed());
        match opened {
            Ok(opened) => self.place = AnswerPlace::Device(opened),
            Err(reason) => self.continue_without(&device, reason, out)?,
        }
        Ok(())
    }

    /// Leaves the device because it cannot be opened.
    ///
    /// # Errors
    /// If `device` names GPUs and no other is left, or if the reason holds for all devices.
    fn continue_without(
        &mut self,
        device: &DeviceSession,
        reason: NoDevice,
        out: &mut Output,
    ) -> Result<(), WaveError> {
        let has_other = device.leave();
        // A misspelt setting must not be taken for "no device".
        let is_mistaken = matches!(reason, NoDevice::UnknownSetting { .. });
        let is_of_one = matches!(
            reason,
            NoDevice::Failed(_) | NoDevice::TooOld { .. } | NoDevice::NoSuchDevice { .. }
        );
        let ends_run = device.device().is_required() && !(has_other && is_of_one);
        if is_mistaken || ends_run {
            return Err(WaveError::NoDevice { device: device.device(), reason });
        }
        match reason {
            NoDevice::Failed(reason) => self.note_failure(device, has_other, &reason),
            // `auto` finds no device on most machines.
            reason if has_other => {
                tracing::warn!(%reason, "a GPU cannot be used; the other GPUs do its work");
                self.ledger.failed(FailureKind::Refused);
            }
            _ => {}
        }
        self.hand_over(has_other, out);
        Ok(())
    }

    /// Does all work that needs no waiting; on the CPU, at most one chunk if `runs_on_cpu`.
    fn advance(&mut self, out: &mut Output, runs_on_cpu: bool) -> Result<Flow, WaveError> {
        self.open(out)?;
        let now = Instant::now();
        if let Err(error) = self.fly(now, out) {
            self.leave_device(error, out)?;
        }
        if runs_on_cpu && let Some(held) = self.on_cpu.pop() {
            self.run(held, out);
        }
        let on_device = self.waiting() + self.flying.len();
        // Prepare has no chunk to fill when the stream has ended or all chunks are in this part.
        let is_exposed = self.is_finishing || self.on_cpu.len() + on_device == self.chunks;
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

    /// Whether a device of another kernel is left.
    fn has_other_device(&self) -> bool {
        self.device.as_ref().is_some_and(|device| device.left().next().is_some())
    }

    /// Answers a chunk on the CPU, or returns the chunk without an answer, to be planned anew or
    /// for a device.
    fn run(&mut self, mut held: Held<K::Chunk>, out: &mut Output) {
        let begin = Instant::now();
        // True for a chunk that was planned for a device, after the device was lost.
        let has_lost_device = mem::take(&mut held.chunk.device_pays);
        if !(has_lost_device && self.kernel.give_back(&mut held.chunk.chunk)) {
            self.kernel.run(&mut held.chunk.chunk);
        }
        if held.chunk.chunk.awaits_device() {
            self.ledger.prepared(begin.elapsed());
            return return_undone(held, out);
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
            if self.ledger.is_unanswered() {
                self.device.iter().for_each(DeviceSession::note_answer);
            }
            self.ledger.landed(landed);
            let Times { copy_in, kernel, copy_out } = landed.times;
            self.expected = copy_in.max(kernel).max(copy_out);
            self.first_since = now;
            held.chunk.work = None;
            self.flying.pop_front().into_iter().for_each(|held| send(held, out));
        }
        Ok(())
    }

    fn submit(&mut self, now: Instant) -> Result<(), DeviceError> {
        let AnswerPlace::Device(device) = &mut self.place else { return Ok(()) };
        loop {
            let own = self.next.take().or_else(|| self.for_devices.pop_own());
            // A device that is about to have nothing to do takes a chunk of another device.
            let is_nearly_idle = self.flying.len() < 2;
            let others = || if is_nearly_idle { self.for_devices.pop() } else { None };
            let Some(held) = own.or_else(others) else { return Ok(()) };
            if !device.has_room(&held.chunk.chunk) {
                self.next = Some(held);
                return Ok(());
            }
            if self.flying.is_empty() {
                self.first_since = now;
            }
            // If the device fails, the chunk is one of those in flight.
            self.flying.push_back(held);
            let held = self.flying.back().expect("it has just come");
            device.submit(&held.chunk.chunk)?;
        }
    }

    /// Number of chunks that wait for the device.
    fn waiting(&self) -> usize {
        usize::from(self.next.is_some()) + self.for_devices.len()
    }

    /// Counts and logs the failure that makes others take over. The part calls this once, because
    /// the device is not tried again.
    fn note_failure(&mut self, device: &DeviceSession, has_other: bool, reason: &DeviceError) {
        if has_other {
            let device = device.name();
            tracing::warn!(%device, %reason, "a GPU failed; the other GPUs take over");
        } else {
            tracing::warn!(%reason, "the GPU failed; the CPU takes over");
        }
        self.ledger.failed(reason.kind());
    }

    /// Leaves the device because it has failed.
    ///
    /// # Errors
    /// If `device` names GPUs, and no other is left.
    fn leave_device(&mut self, reason: DeviceError, out: &mut Output) -> Result<(), WaveError> {
        let Some(device) = self.device.clone() else { unreachable!("no device has failed") };
        let has_other = device.leave();
        if device.device().is_required() && !has_other {
            return Err(WaveError::Failed { device: device.device(), reason });
        }
        self.note_failure(&device, has_other, &reason);
        self.hand_over(has_other, out);
        Ok(())
    }

    /// Gives the chunks of a device that is left to another device or to the CPU. Chunks that were
    /// in flight come first.
    fn hand_over(&mut self, has_other: bool, out: &mut Output) {
        // The drop of the device waits until the device uses no buffer of a chunk any more.
        self.place = AnswerPlace::Cpu;
        let mut lost: Vec<Held<K::Chunk>> = mem::take(&mut self.flying).into();
        lost.extend(self.next.take());
        lost.extend(std::iter::from_fn(|| self.for_devices.pop_own()));
        // Prepare does not wait for a chunk that it sent when this device was the only one.
        let is_again = |held: &Held<K::Chunk>| has_other && held.chunk.is_awaited;
        let (again, on_cpu): (Vec<_>, Vec<_>) = lost.into_iter().partition(is_again);
        again.into_iter().for_each(|held| return_undone(held, out));
        let on_cpu = on_cpu.into_iter().map(|mut held| {
            held.chunk.work = None;
            held
        });
        self.on_cpu.push_first(on_cpu);
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

/// Returns a chunk that a device is to answer to prepare, which sends the chunk to a device.
fn return_undone<C: WaveChunk>(mut held: Held<C>, out: &mut Output) {
    held.chunk.is_undone = true;
    held.chunk.work = None;
    send(held, out);
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
        let mut held = Held { chunk, origin };
        if !held.chunk.device_pays {
            self.on_cpu.push(held);
        } else if !matches!(self.place, AnswerPlace::Cpu) {
            self.for_devices.push(held);
        } else if held.chunk.is_awaited && self.has_other_device() {
            // The device was lost while the chunk was on its way.
            return_undone(held, out);
        } else {
            held.chunk.work = None;
            self.on_cpu.push(held);
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
        let device = self.device.as_ref()?;
        match (device.device(), device.place()) {
            (Device::Auto, 1..) => None,
            (Device::Auto, 0) if !cuda::Device::HAS_KERNELS => {
                Some(format!("auto: the CPU; {}", NoDevice::NoKernels))
            }
            (Device::Auto, 0) => Some("auto: a GPU where there is one and it pays".to_owned()),
            _ => Some(device.name().to_string()),
        }
    }

    fn counters(&self) -> Counters {
        let devices = self.device.as_ref().map_or(1, DeviceSession::answering);
        self.ledger.counters(devices)
    }
}
