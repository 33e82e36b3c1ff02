//! The part between prepare and collect.

use std::collections::VecDeque;
use std::mem;
use std::time::{Duration, Instant};

use trommel_engine::batch::{Chunk, Origin, Payload};
use trommel_engine::operator::{Counters, Flow, Operator, OperatorError, Output};
use trommel_engine::query::{QueryError, QueryPayload, Request, Response};
use trommel_kernels::cuda::{DeviceError, NoDevice, Times};

use super::chunk::{InWave, WaveChunk};
use super::device::Device;
use super::feeder::into_message;
use super::kernel::{Kernel, OnDevice};
use super::ledger::Ledger;
use super::limits::Wave;

/// When a chunk is late, it is looked for after this share of the time that has passed already.
const LATE_LOOKS: u32 = 16;
/// The shortest and the longest time between two looks: what a timer costs, and what a person would
/// not notice.
const PAUSE_MIN: Duration = Duration::from_micros(20);
const PAUSE_MAX: Duration = Duration::from_millis(2);

/// Why a wave ends the run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WaveError {
    /// The device cannot be used.
    #[error("`device` is \"{device}\", but {reason}")]
    NoDevice {
        /// What was asked for.
        device: Device,
        /// Why not.
        reason: NoDevice,
    },
    /// The device failed in the middle of the stream.
    #[error("`device` is \"{device}\", and it failed: {reason}")]
    Failed {
        /// What was asked for.
        device: Device,
        /// What failed.
        reason: DeviceError,
    },
}

/// A chunk that was taken.
struct Held<C> {
    chunk: Box<InWave<C>>,
    origin: Option<Origin>,
}

enum Place<D> {
    /// On the CPU until a device pays.
    Unopened,
    Device(D),
    Cpu,
}

/// Answers chunks on a device or on the CPU, in the order in which they come; passes chunks that
/// come back on to the part before. Queries pass through as they are.
pub(super) struct KernelPart<K: Kernel> {
    kernel: K,
    wave: Wave,
    place: Place<K::OnDevice>,
    waiting: VecDeque<Held<K::Chunk>>,
    flying: VecDeque<Held<K::Chunk>>,
    /// Since when the device works on the first chunk in flight.
    first_since: Instant,
    /// What the longest step of the last one took on the device: the least time between two
    /// landings. Not the time between them, which contains what was slept too long.
    expected: Duration,
    next_look: Instant,
    is_finishing: bool,
    ledger: Ledger,
}

impl<K: Kernel> KernelPart<K> {
    /// A part around `kernel`. The device is opened for the first chunk for which it pays, or at
    /// the end of the stream if it was asked for.
    pub(super) fn new(kernel: K, wave: Wave) -> Self {
        let now = Instant::now();
        Self {
            kernel,
            wave,
            place: if wave.device == Device::Cpu { Place::Cpu } else { Place::Unopened },
            waiting: VecDeque::with_capacity(wave.chunks),
            flying: VecDeque::with_capacity(wave.chunks),
            first_since: now,
            expected: Duration::ZERO,
            next_look: now,
            is_finishing: false,
            ledger: Ledger::default(),
        }
    }

    /// Whether the device was asked for or pays for the next chunk, and is not open yet.
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

    /// On the CPU, as there is no device, if that is allowed.
    fn continue_without(&mut self, reason: NoDevice) -> Result<(), WaveError> {
        let device = self.wave.device;
        // A setting with a mistake in it must not pass for the wish to have no device.
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

    /// Does what can be done without waiting.
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
        self.ledger.flying(Instant::now(), !self.flying.is_empty(), is_exposed);
        self.plan_look(now);
        Ok(if held == 0 { Flow::NeedInput } else { Flow::InFlight })
    }

    /// One a call, so that the thread looks at its other work between two of them.
    fn run_one(&mut self, out: &mut Output) {
        if let Some(mut held) = self.waiting.pop_front() {
            let begin = Instant::now();
            self.kernel.run(&mut held.chunk.chunk);
            self.ledger.ran(begin.elapsed());
            send(held, out);
        }
    }

    /// Collects what has landed and submits what waits.
    fn fly(&mut self, now: Instant, out: &mut Output) -> Result<(), DeviceError> {
        let Place::Device(device) = &mut self.place else { return Ok(()) };
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
        let is_auto = self.wave.device == Device::Auto;
        while let Some(held) = self.waiting.front() {
            let is_alone = self.flying.is_empty();
            if is_auto && !held.chunk.device_pays {
                // In its turn: behind those in flight.
                if is_alone {
                    self.run_one(out);
                }
                break;
            }
            if !device.has_room(&held.chunk.chunk) {
                break;
            }
            if is_alone {
                self.first_since = now;
            }
            device.submit(&held.chunk.chunk)?;
            self.flying.extend(self.waiting.pop_front());
        }
        Ok(())
    }

    /// What makes the CPU go on alone: counted, and said once, as no device is tried again.
    fn note_failure(&mut self, reason: &DeviceError) {
        tracing::warn!(%reason, "the GPU failed; the CPU goes on");
        self.ledger.failed(reason.kind());
    }

    /// From now on on the CPU, if that is allowed.
    fn leave_device(&mut self, reason: DeviceError) -> Result<(), WaveError> {
        let device = self.wave.device;
        if device != Device::Auto {
            return Err(WaveError::Failed { device, reason });
        }
        self.note_failure(&reason);
        self.switch_to_cpu();
        Ok(())
    }

    /// From now on on the CPU. Chunks that were in flight are the first.
    fn switch_to_cpu(&mut self) {
        // Dropped here, the device is waited for until nothing is under way any more.
        self.place = Place::Cpu;
        let waiting = mem::take(&mut self.waiting);
        self.waiting = mem::take(&mut self.flying);
        self.waiting.extend(waiting);
    }

    /// Looks again now unless all that can be done is to wait for the device.
    fn plan_look(&mut self, now: Instant) {
        self.next_look = now;
        if !self.flying.is_empty() && !self.is_to_be_opened() {
            let passed = now.saturating_duration_since(self.first_since);
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
            Device::Cpu => None,
            Device::Auto => Some("auto: a GPU where there is one and it pays".to_owned()),
            device @ Device::Cuda(_) => Some(device.to_string()),
        }
    }

    fn counters(&self) -> Counters {
        self.ledger.counters()
    }
}
