//! KERNEL: the part between prepare and collect.

use std::collections::VecDeque;
use std::mem;
use std::time::{Duration, Instant};

use trommel_engine::batch::{Chunk, Origin, Payload};
use trommel_engine::operator::{Counters, Flow, Operator, OperatorError, Output};
use trommel_engine::query::{QueryError, QueryPayload, Request, Response};
use trommel_kernels::cuda::{DeviceError, NoDevice, Times};

use super::chunk::{InWave, WaveChunk};
use super::device::Device;
use super::error::WaveError;
use super::feeder::into_message;
use super::kernel::{Kernel, OnDevice};
use super::ledger::Ledger;
use super::limits::Wave;
use super::workers::Workers;

/// A late chunk is looked for again after 1 / `LATE_LOOKS` of the time since its start.
const LATE_LOOKS: u32 = 16;
/// Shortest and longest time between two looks: the cost of a timer, and a delay that nobody
/// notices.
const PAUSE_MIN: Duration = Duration::from_micros(20);
const PAUSE_MAX: Duration = Duration::from_millis(2);

/// A chunk that waits or is in flight.
struct Held<C> {
    chunk: Box<InWave<C>>,
    origin: Option<Origin>,
}

/// Place where chunks are answered.
enum Place<D> {
    /// The CPU, until a device pays.
    Unopened,
    Device(D),
    /// The CPU, to the end.
    Cpu,
}

/// Answers chunks on a device or on the CPU in the order of arrival. Chunks that collect gives
/// back are passed on to prepare, and queries to collect.
pub(super) struct KernelPart<K: Kernel> {
    kernel: K,
    wave: Wave,
    /// Its number among the kernels of the operator.
    worker: usize,
    /// The kernels that share the chunks of a device that is missing.
    workers: Workers,
    place: Place<K::OnDevice>,
    waiting: VecDeque<Held<K::Chunk>>,
    /// Chunks on the device, and chunks for the CPU between them, which keep their order.
    flying: VecDeque<Held<K::Chunk>>,
    /// Time at which the device began with the first chunk in flight.
    first_since: Instant,
    /// Longest step of the last chunk, a lower bound on the interval between completions.
    /// Measured on the device, so oversleeping does not inflate it.
    expected: Duration,
    next_look: Instant,
    is_finishing: bool,
    ledger: Ledger,
}

impl<K: Kernel> KernelPart<K> {
    /// A part around `kernel`. With `auto`, the device is opened for the first chunk that it pays
    /// for; with `cuda`, for the first chunk, or at the end of a stream without chunks. Only the
    /// first `worker` of the `workers` of an operator opens one.
    pub(super) fn new(kernel: K, wave: Wave, worker: usize, workers: usize) -> Self {
        let now = Instant::now();
        let is_on_cpu = wave.device == Device::Cpu || worker > 0;
        Self {
            kernel,
            wave,
            worker,
            workers: Workers::new(workers),
            place: if is_on_cpu { Place::Cpu } else { Place::Unopened },
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
            Device::Auto => self.waiting.front().is_some_and(|held| held.chunk.device_pays),
            Device::Cpu | Device::Cuda(_) => true,
        };
        is_wanted && matches!(self.place, Place::Unopened)
    }

    /// Opens the device if it is to be opened.
    fn open(&mut self) -> Result<(), WaveError> {
        if !self.is_to_be_opened() {
            return Ok(());
        }
        let begin = Instant::now();
        let first = self.waiting.front().map(|held| &held.chunk.chunk);
        let opened = self.kernel.open(first).map(|device| self.place = Place::Device(device));
        self.ledger.opened(begin.elapsed());
        opened.or_else(|reason| self.continue_without(reason))
    }

    /// Switches to the CPU because there is no device.
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

    /// Does all that can be done without waiting.
    fn advance(&mut self, out: &mut Output) -> Result<Flow, WaveError> {
        self.open()?;
        let now = Instant::now();
        let result = match &mut self.place {
            Place::Cpu | Place::Unopened => {
                self.run_one(out);
                Ok(())
            }
            Place::Device(_) => self.fly(now, out),
        };
        if let Err(error) = result {
            self.leave_device(error)?;
        }
        let held = self.waiting.len() + self.flying.len();
        let is_exposed = self.is_finishing || held == self.wave.chunks;
        self.ledger.flying(Instant::now(), self.is_flying(), is_exposed);
        self.plan_look(now);
        Ok(if held == 0 { Flow::NeedInput } else { Flow::InFlight })
    }

    /// Whether the device has a chunk.
    fn is_flying(&self) -> bool {
        self.flying.iter().any(|held| held.chunk.device_pays)
    }

    /// Answers the next chunk on the CPU, after chunks of other kernels have been passed on. One
    /// per call, so that the thread turns to its other work in between.
    fn run_one(&mut self, out: &mut Output) {
        while let Some(mut held) = self.waiting.pop_front() {
            // A chunk for the device that there is not. To later kernels it comes answered.
            if self.worker == 0 && mem::take(&mut held.chunk.device_pays) {
                held.chunk.worker = self.workers.assign(held.chunk.chunk.cost().cpu_ns);
            }
            if self.pass(held, out) {
                return;
            }
        }
    }

    /// Passes on a chunk for the CPU, answered if it is for this kernel; returns whether it is.
    fn pass(&mut self, mut held: Held<K::Chunk>, out: &mut Output) -> bool {
        let is_own = held.chunk.worker == self.worker;
        if is_own {
            let begin = Instant::now();
            self.kernel.run(&mut held.chunk.chunk);
            self.ledger.ran(begin.elapsed());
        }
        send(held, out);
        is_own
    }

    /// Collects chunks that have landed, submits waiting chunks, and answers the next one on the
    /// CPU if it is not for the device.
    fn fly(&mut self, now: Instant, out: &mut Output) -> Result<(), DeviceError> {
        self.land(now, out)?;
        self.submit(now)?;
        while let Some(held) = self.flying.pop_front_if(|held| !held.chunk.device_pays) {
            if self.pass(held, out) {
                break;
            }
        }
        Ok(())
    }

    fn land(&mut self, now: Instant, out: &mut Output) -> Result<(), DeviceError> {
        let Place::Device(device) = &mut self.place else { return Ok(()) };
        while let Some(held) = self.flying.front_mut()
            && held.chunk.device_pays
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
        let mut is_first = !self.is_flying();
        let Place::Device(device) = &mut self.place else { return Ok(()) };
        while let Some(held) = self.waiting.front() {
            if held.chunk.device_pays {
                if !device.has_room(&held.chunk.chunk) {
                    break;
                }
                if mem::take(&mut is_first) {
                    self.first_since = now;
                }
                device.submit(&held.chunk.chunk)?;
            }
            self.flying.extend(self.waiting.pop_front());
        }
        Ok(())
    }

    /// Counts and logs the failure that makes the CPU take over. Happens once: no device is tried
    /// again.
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
        // Drops the device, which waits until no buffer of a chunk is in use any more.
        self.place = Place::Cpu;
        let waiting = mem::take(&mut self.waiting);
        self.waiting = mem::take(&mut self.flying);
        self.waiting.extend(waiting);
    }

    /// Sets the time of the next look: at once, unless the device is all there is to wait for.
    fn plan_look(&mut self, now: Instant) {
        self.next_look = now;
        let lands_next = self.flying.front().is_some_and(|held| held.chunk.device_pays);
        if lands_next && !self.is_to_be_opened() {
            let passed = now.saturating_duration_since(self.first_since);
            // Shortly before the chunk can land; once it is late, at intervals that grow with the
            // delay, so that a chunk costs a few looks and waits for at most a sixteenth of its
            // time.
            let early = (self.expected - self.expected / 8).saturating_sub(passed);
            self.next_look += early.max(passed / LATE_LOOKS).clamp(PAUSE_MIN, PAUSE_MAX);
        }
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
        self.waiting.push_back(Held { chunk: input.into_chunk().into_box(), origin });
        Ok(self.advance(out)?)
    }

    fn takes_replies(&self) -> bool {
        true
    }

    fn reply(&mut self, reply: Chunk, out: &mut Output) -> Result<Flow, OperatorError> {
        out.send_reply(reply);
        let is_idle = self.waiting.is_empty() && self.flying.is_empty();
        Ok(if is_idle { Flow::NeedInput } else { Flow::InFlight })
    }

    fn finish(&mut self, out: &mut Output) -> Result<Flow, OperatorError> {
        self.is_finishing = true;
        Ok(self.advance(out)?)
    }

    fn wake_at(&self) -> Option<Instant> {
        let is_idle = self.waiting.is_empty() && self.flying.is_empty();
        (!is_idle).then_some(self.next_look)
    }

    fn wake(&mut self, _now: Instant, out: &mut Output) -> Result<Flow, OperatorError> {
        Ok(self.advance(out)?)
    }

    fn query(
        &self,
        request: &Request,
        payload: Option<QueryPayload>,
    ) -> Result<Response, QueryError> {
        let none = || QueryError::unsupported(request, &[]);
        payload.map(Response::Forward).ok_or_else(none)
    }

    fn device(&self) -> Option<String> {
        match self.wave.device {
            _ if self.worker > 0 => None,
            Device::Cpu => None,
            Device::Auto => Some("auto: a GPU where there is one and it pays".to_owned()),
            device @ Device::Cuda(_) => Some(device.to_string()),
        }
    }

    fn counters(&self) -> Counters {
        self.ledger.counters()
    }
}
