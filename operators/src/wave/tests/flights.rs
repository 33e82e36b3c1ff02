//! Waves over a device that exists in the tests only, and fails when a test says so.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use trommel_engine::batch::Chunk;
use trommel_engine::operator::{Flow, Operator};
use trommel_kernels::cuda::{DeviceError, NoDevice, Times, Work};

use super::super::chunk::InWave;
use super::super::{DevicePrice, Landed, OPENING_NS, OnDevice, Target};
use super::*;
use crate::wave::parts::kernel_part::KernelPart;
use crate::wave::parts::queues::Queues;

/// Numbers, and their doubles.
#[derive(Default)]
pub(super) struct Doubles {
    size: usize,
    /// Chunks that begin with a number in this range do not pay.
    dear: Range<u32>,
    /// Chunks that begin with a number in this range are not for a device.
    on_cpu: Range<u32>,
    numbers: Vec<u32>,
    doubles: Vec<u32>,
}

impl WaveChunk for Doubles {
    fn items(&self) -> usize {
        self.numbers.len()
    }

    fn bytes(&self) -> usize {
        8 * self.numbers.len()
    }

    fn clear(&mut self, _: usize) {
        self.numbers.clear();
        self.doubles.clear();
    }

    fn target(&self) -> Target {
        let is_on_cpu = self.numbers.first().is_some_and(|first| self.on_cpu.contains(first));
        if is_on_cpu { Target::Cpu } else { Target::Cheaper }
    }

    fn estimate(&self) -> Estimate {
        let is_dear = self.numbers.first().is_some_and(|first| self.dear.contains(first));
        let bytes = if is_dear { u64::MAX } else { 0 };
        Estimate { bytes, data: Some([u64::from(is_dear), 0]), ..Estimate::on_cpu(1.0) }
    }
}

fn producer() -> NumberProducer<Doubles> {
    NumberProducer::new(|chunk: &mut Doubles, rest| chunk.numbers.extend(rest.take(chunk.size)))
}

fn consumer() -> AnswerConsumer<Doubles> {
    AnswerConsumer::new(|chunk| chunk.doubles.clone())
}

fn double(chunk: &mut Doubles) {
    chunk.doubles.clear();
    chunk.doubles.extend(chunk.numbers.iter().map(|number| 2 * number));
}

/// The step that fails, at which call of the step, and with which code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Failure(pub(super) Step, pub(super) usize, pub(super) u32);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Submit,
    IsDone,
    Collect,
}

const FULL: u32 = 2;
const REFUSED: u32 = 1;
pub(super) const LOST: u32 = 719;

/// Behaviour of the device.
#[derive(Clone, Default)]
pub(super) struct Script {
    /// The reason why the device cannot be opened.
    pub(super) absent: Option<NoDevice>,
    pub(super) failure: Option<Failure>,
    pub(super) slots: usize,
    pub(super) flight: Duration,
    /// Chunks that begin with a number in this range do not pay.
    pub(super) dear: Range<u32>,
    /// Chunks that begin with a number in this range are not for the device.
    pub(super) on_cpu: Range<u32>,
    /// Nothing lands while this is set.
    pub(super) is_held: Arc<AtomicBool>,
}

pub(super) struct DoubleKernel {
    /// Behaviour of each device.
    scripts: Vec<Script>,
}

impl Kernel for DoubleKernel {
    const NAME: &'static str = "double";
    type Chunk = Doubles;
    type OnDevice = Runway;

    fn run(&mut self, chunk: &mut Doubles) {
        double(chunk);
    }

    fn open(
        &mut self,
        device: &DeviceSession,
        first: Option<&Doubles>,
    ) -> Result<Runway, NoDevice> {
        assert!(first.is_none_or(|first| !first.numbers.is_empty()), "it sees the first chunk");
        if let Device::Cuda(ordinal @ 7..) = device.name() {
            return Err(NoDevice::NoSuchDevice { ordinal, count: 7 });
        }
        let script = self.scripts[device.place()].clone();
        script.absent.clone().map_or(Ok(()), Err)?;
        Ok(Runway { script, calls: [0; 3], flying: VecDeque::new() })
    }
}

/// A device that doubles the submitted numbers when a chunk lands.
pub(super) struct Runway {
    script: Script,
    calls: [usize; 3],
    flying: VecDeque<(Vec<u32>, Instant)>,
}

impl Runway {
    fn call(&mut self, step: Step) -> Result<(), DeviceError> {
        self.calls[step as usize] += 1;
        let nth = self.calls[step as usize];
        match self.script.failure {
            Some(Failure(failing, when, code)) if failing == step && when == nth => {
                let (call, name) = ("cuTest", "CUDA_ERROR_TEST".to_owned());
                Err(DeviceError::Driver { call, work: Work::Plain, code, name })
            }
            _ => Ok(()),
        }
    }
}

impl OnDevice for Runway {
    type Chunk = Doubles;

    fn has_room(&self, _: &Doubles) -> bool {
        self.flying.len() < self.script.slots
    }

    fn submit(&mut self, chunk: &Doubles) -> Result<(), DeviceError> {
        assert!(self.has_room(chunk));
        self.call(Step::Submit)?;
        let doubles = chunk.numbers.iter().map(|number| 2 * number).collect();
        self.flying.push_back((doubles, Instant::now() + self.script.flight));
        Ok(())
    }

    fn is_done(&mut self) -> Result<bool, DeviceError> {
        self.call(Step::IsDone)?;
        let is_held = self.script.is_held.load(Ordering::Relaxed);
        Ok(!is_held && self.flying.front().is_some_and(|(_, lands)| *lands <= Instant::now()))
    }

    fn collect(&mut self, chunk: &mut Doubles) -> Result<Landed, DeviceError> {
        self.call(Step::Collect)?;
        chunk.doubles = self.flying.pop_front().expect("it has landed").0;
        let kernel = self.script.flight;
        let times = Times { kernel, ..Times::default() };
        let bytes = 4 * chunk.numbers.len() as u64;
        Ok(Landed { times, bytes_to_device: bytes, bytes_from_device: bytes })
    }
}

pub(super) type DoubleWaves = Waves<
    NumberProducer<Doubles>,
    DoubleKernel,
    AnswerConsumer<Doubles>,
    Box<dyn FnMut() -> Doubles + Send>,
>;

/// A device of two slots.
pub(super) fn script() -> Script {
    Script { slots: 2, flight: Duration::from_micros(200), ..Script::default() }
}

pub(super) const END: u32 = 3_000;

pub(super) fn batches(size: u32) -> impl Iterator<Item = RecordBatch> + Send {
    (0..END).step_by(size as usize).map(move |begin| batch(begin..END.min(begin + size)))
}

fn waves(script: Script, device: Device, shape: [usize; 2]) -> DoubleWaves {
    waves_on(vec![script], device.into(), shape)
}

/// A kernel for each of the devices with these scripts.
pub(super) fn waves_on(
    scripts: Vec<Script>,
    session: DeviceSession,
    [chunks, size]: [usize; 2],
) -> DoubleWaves {
    let mut made = 0;
    let (dear, on_cpu) = (scripts[0].dear.clone(), scripts[0].on_cpu.clone());
    let make = move || {
        made += 1;
        assert!(made <= chunks, "chunks are used again");
        let (dear, on_cpu) = (dear.clone(), on_cpu.clone());
        Doubles { size, dear, on_cpu, ..Doubles::default() }
    };
    let wave = Wave { device_price: DevicePrice::FREE, ..Wave::new(session, chunks, 1) };
    let kernels = scripts.iter().map(|_| DoubleKernel { scripts: scripts.clone() }).collect();
    Waves { producer: producer(), kernels, consumer: consumer(), make: Box::new(make), wave }
}

/// Runs all numbers through; every answer must be there, in order.
#[track_caller]
fn run(script: Script, device: Device, shape: [usize; 2], cores: Cores) -> Counters {
    let spec = waves(script, device, shape);
    let (graph, collected) = pipeline(batches(500), spec, cores);
    let metrics = end(start(graph)).unwrap();
    let doubles: Vec<u32> = (0..END).map(|number| 2 * number).collect();
    assert!(answers(&collected) == doubles, "{device} {shape:?} {cores:?}");
    counters(&metrics)
}

fn error(script: Script, device: Device) -> String {
    let spec = waves(script, device, [3, 100]);
    let (graph, _) = pipeline(batches(500), spec, Cores::ByLoad);
    end(start(graph)).expect_err("the device fails").to_string()
}

#[test]
fn answers_do_not_depend_on_device_chunks_or_cores() {
    for cores in CORES {
        for shape in [[1, 1], [1, 500], [2, 7], [3, 64], [16, 1]] {
            let on_cpu = run(script(), Device::Cpu, shape, cores);
            let waves = 6 * 500_usize.div_ceil(shape[1]) as u64;
            assert_eq!(counter(&on_cpu, "waves"), waves);
            assert_eq!(counter(&on_cpu, "waves_on_device"), 0);
            assert!(counter(&on_cpu, "kernel_ns") > 0);
            let quick = Script { flight: Duration::ZERO, ..script() };
            for device in [Device::Auto, Device::Cuda(0)] {
                let counters = run(quick.clone(), device, shape, cores);
                assert_eq!(counter(&counters, "waves"), waves);
                assert_eq!(counter(&counters, "waves_on_device"), waves);
                assert_eq!(counter(&counters, "bytes_to_device"), 4 * u64::from(END));
                assert_eq!(counter(&counters, "bytes_from_device"), 4 * u64::from(END));
            }
        }
    }
}

#[test]
fn all_chunks_may_come_at_the_end_of_the_stream() {
    for cores in CORES {
        for device in [Device::Cpu, Device::Auto] {
            let mut spec = waves(script(), device, [3, 70]);
            spec.producer.keeps = true;
            let (graph, collected) = pipeline(batches(500), spec, cores);
            let metrics = end(start(graph)).unwrap();
            assert!(answers(&collected).into_iter().eq((0..END).map(|number| 2 * number)));
            assert_eq!(counter(&counters(&metrics), "waves"), 43);
        }
    }
}

#[test]
fn a_device_that_fails_anywhere_is_left_and_nothing_is_lost() {
    for step in [Step::Submit, Step::IsDone, Step::Collect] {
        for nth in [1, 2, 5] {
            for (code, name) in
                [(FULL, "device_full"), (LOST, "device_lost"), (REFUSED, "device_refused")]
            {
                let failure = Some(Failure(step, nth, code));
                let failing = Script { failure, ..script() };
                for cores in CORES {
                    let counters = run(failing.clone(), Device::Auto, [4, 100], cores);
                    assert_eq!(counter(&counters, name), 1, "{failure:?} {counters:?}");
                    assert_eq!(counter(&counters, "waves"), 30);
                    assert!(counter(&counters, "waves_on_device") < 5, "{counters:?}");
                }
                assert_eq!(
                    error(failing, Device::Cuda(0)),
                    format!(
                        "stage `waves/double` (waves): `device` is \"cuda\", and it failed: \
                         cuTest failed: CUDA_ERROR_TEST ({code})"
                    )
                );
            }
        }
    }
}

#[test]
fn a_device_that_is_not_there_is_an_error_only_if_it_was_asked_for() {
    let absent = |reason| Script { absent: Some(reason), ..script() };
    let counters = run(absent(NoDevice::NoDriver), Device::Auto, [3, 100], Cores::ByLoad);
    assert_eq!(counter(&counters, "waves_on_device"), 0);
    assert_eq!(counters.len(), 5, "no failure: {counters:?}");
    let shown = error(absent(NoDevice::NoDriver), Device::Cuda(0));
    assert_eq!(
        shown,
        "stage `waves/double` (waves): `device` is \"cuda\", but no NVIDIA driver: libcuda.so.1 \
         cannot be loaded"
    );
    let shown = error(script(), Device::Cuda(7));
    assert!(
        shown
            .ends_with("`device` is \"cuda:7\", but there is no CUDA device 7: the driver shows 7")
    );
    let full = DeviceError::Driver {
        call: "cuTest",
        work: Work::Plain,
        code: FULL,
        name: "CUDA_ERROR_TEST".to_owned(),
    };
    let counters = run(absent(full.into()), Device::Auto, [3, 100], Cores::ByLoad);
    assert_eq!(counter(&counters, "device_full"), 1);
    let mistaken = NoDevice::UnknownSetting { value: "gpu".to_owned() };
    assert!(error(absent(mistaken), Device::Auto).contains("allowed are \"auto\" and \"cpu\""));
}

/// Runs all numbers through at the end of the stream, when the CPU has spent the cost of a
/// device.
#[track_caller]
fn run_at_the_end(script: Script, device: Device, cores: Cores) -> Counters {
    let mut spec = waves(script, device, [4, 100]);
    spec.wave.device_price = DevicePrice::MEASURED;
    spec.producer.keeps = true;
    spec.producer.expected = Some(Estimate::on_cpu(OPENING_NS));
    let (graph, collected) = pipeline(batches(500), spec, cores);
    let metrics = end(start(graph)).unwrap();
    assert!(answers(&collected).into_iter().eq((0..END).map(|number| 2 * number)));
    counters(&metrics)
}

#[test]
fn chunks_that_do_not_pay_stay_on_the_cpu_with_auto() {
    for cores in CORES {
        // 30 chunks of 100.
        for (dear, on_device) in [(0..END, 0), (0..1000, 20), (1000..1700, 23), (2900..END, 29)] {
            let script = Script { dear: dear.clone(), ..script() };
            let counters = run_at_the_end(script.clone(), Device::Auto, cores);
            let counted = ["waves", "waves_on_device"].map(|name| counter(&counters, name));
            assert_eq!(counted, [30, on_device], "{dear:?} {cores:?}");
            let counters = run_at_the_end(script, Device::Cuda(0), cores);
            assert_eq!(counter(&counters, "waves_on_device"), 30);
        }
    }
    let absent = Script { dear: 0..END, absent: Some(NoDevice::NoDriver), ..script() };
    assert_eq!(counter(&run_at_the_end(absent, Device::Auto, Cores::One), "waves"), 30);
}

#[test]
fn chunks_that_are_not_for_a_device_keep_their_order_between_those_that_are() {
    for cores in CORES {
        // 30 chunks of 100.
        for (on_cpu, on_device) in [(0..END, 0), (0..1000, 20), (1000..1700, 23), (2900..END, 29)] {
            let script = Script { on_cpu: on_cpu.clone(), ..script() };
            for device in [Device::Auto, Device::Cuda(0)] {
                let counters = run(script.clone(), device, [4, 100], cores);
                let counted = ["waves", "waves_on_device"].map(|name| counter(&counters, name));
                assert_eq!(counted, [30, on_device], "{on_cpu:?} {device} {cores:?}");
            }
            let failure = Some(Failure(Step::Collect, 2, LOST));
            let counters = run(Script { failure, ..script }, Device::Auto, [4, 100], cores);
            assert_eq!(counter(&counters, "waves"), 30, "{on_cpu:?} {cores:?}");
        }
    }
}

#[test]
fn chunks_for_the_cpu_do_not_wait_for_a_flight() {
    let script = Script { flight: Duration::from_millis(3), ..script() };
    let device = Device::Auto;
    let kernel = DoubleKernel { scripts: vec![script] };
    let queues = [(); 2].map(|()| Queues::of(1, 4).next().unwrap()).into();
    let mut part = KernelPart::new(kernel, DeviceSession::new(device).at(0), 4, queues);
    for number in 0..4 {
        let chunk = Doubles { size: 1, numbers: vec![number], ..Doubles::default() };
        let mut chunk = InWave::new(chunk);
        chunk.device_pays = number == 0;
        let chunk = Payload::Chunk(Chunk::new(chunk, 1, 8));
        let flow = part.process(0, chunk, &mut Output::new()).unwrap();
        assert_eq!(flow, Flow::InFlight);
    }
    let counted = |part: &KernelPart<_>| {
        ["waves", "waves_on_device"].map(|name| counter(&part.counters(), name))
    };
    assert_eq!(counted(&part), [3, 0], "answered in the call");
    while let Some(look) = part.wake_at() {
        part.wake(look.max(Instant::now()), &mut Output::new()).unwrap();
    }
    assert_eq!(counted(&part), [4, 1]);
}

#[test]
fn a_device_is_asked_for_although_the_stream_is_empty() {
    let absent = Script { absent: Some(NoDevice::NoDriver), ..script() };
    let spec = waves(absent, Device::Cuda(0), [3, 100]);
    let (graph, _) = pipeline(std::iter::empty(), spec, Cores::ByLoad);
    let error = end(start(graph)).expect_err("there is no device").to_string();
    assert!(error.contains("no NVIDIA driver"), "{error}");
}

#[test]
fn the_report_tells_how_much_of_the_flights_was_hidden() {
    let slow = Script { flight: Duration::from_millis(2), slots: 1, ..script() };
    // With one chunk, prepare can never work while the chunk is in flight.
    let counters = run(slow.clone(), Device::Auto, [1, 500], Cores::ByLoad);
    assert_eq!(counter(&counters, "overlap_ppm"), 0);
    assert_eq!(counter(&counters, "kernel_ns"), 6 * 2_000_000);
    // With more chunks than there are waves, prepare can always work, except for the last chunks.
    let counters = run(slow, Device::Auto, [16, 500], Cores::ByLoad);
    let share = counter(&counters, "overlap_ppm");
    assert!(share < 1_000_000, "what is in flight at the end is waited for: {share}");
}

/// Numbers without end, until the run is stopped.
fn endless() -> impl Iterator<Item = RecordBatch> + Send {
    (0..).step_by(100).map(|begin: u32| batch(begin..begin + 100))
}

#[test]
fn queries_are_answered_while_chunks_are_in_flight_and_the_stream_goes_on() {
    for cores in CORES {
        let spec = waves(script(), Device::Auto, [3, 10]);
        let running = start(pipeline(endless(), spec, cores).0);
        let (mut asked, mut last) = (0, 0);
        // The first queries can be answered before the first batch arrives.
        while asked < 20 || last == 0 {
            asked += 1;
            let seen = numbers(&running.query("waves", &Request::new("seen")).unwrap())[0];
            assert!(seen >= last && seen.is_multiple_of(100), "{cores:?}: at a batch boundary");
            last = seen;
        }
        running.stop();
        end(running).unwrap();
    }
}

#[test]
fn a_query_waits_for_a_flight_and_a_stop_lands_it() {
    for cores in CORES {
        let held = script();
        held.is_held.store(true, Ordering::Relaxed);
        let is_held = Arc::clone(&held.is_held);
        let spec = waves(held, Device::Auto, [3, 10]);
        let (graph, collected) = pipeline(endless(), spec, cores);
        let mut running = start(graph);
        while running.metrics().stage("waves").unwrap().parts[1].batches_in == 0 {
            assert!(!running.wait(Duration::from_millis(1)), "it waits for what is in flight");
        }
        let queries = running.queries();
        let request = Request::new("seen");
        let limit = Duration::from_millis(30);
        let late = queries.query_within("waves", &request, limit).unwrap_err().to_string();
        assert!(!running.wait(Duration::ZERO), "{late}");
        running.stop();
        assert!(!running.wait(Duration::from_millis(10)), "it waits for what is in flight");
        is_held.store(false, Ordering::Relaxed);
        let metrics = end(running).unwrap();
        let sent = metrics.stage("numbers").unwrap().items_out();
        assert!(answers(&collected).len() as u64 == sent && sent > 0, "{cores:?}");
    }
}

#[test]
fn an_abort_does_not_wait_for_a_flight() {
    let held = script();
    held.is_held.store(true, Ordering::Relaxed);
    let spec = waves(held, Device::Auto, [3, 10]);
    let mut running = start(pipeline(endless(), spec, Cores::ByLoad).0);
    assert!(!running.wait(Duration::from_millis(10)));
    running.abort();
    let error = end(running).expect_err("it is aborted");
    assert!(error.to_string().contains("abort"), "{error}");
}

#[test]
fn a_thread_sleeps_while_chunks_are_in_flight() {
    let slow = Script { flight: Duration::from_millis(4), slots: 1, ..script() };
    let (graph, _) = pipeline(batches(500), waves(slow, Device::Auto, [2, 100]), Cores::One);
    let metrics = end(start(graph)).unwrap();
    assert!(metrics.wall >= Duration::from_millis(30 * 4));
    let busy = metrics.stage("waves").unwrap().busy();
    assert!(busy < metrics.wall / 4, "{busy:?} of {:?}", metrics.wall);
}
