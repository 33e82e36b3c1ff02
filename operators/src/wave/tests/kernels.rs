//! Several kernels side by side.

use std::hint;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use trommel_engine::batch::Chunk;
use trommel_engine::operator::{Flow, Operator};
use trommel_kernels::cuda::{DeviceError, NoDevice};

use super::super::chunk::InWave;
use super::super::consumer::CollectPart;
use super::super::{DevicePrice, Landed, OnDevice};
use super::*;
use crate::wave::parts::feeder::Feeder;
use crate::wave::parts::kernel_part::KernelPart;
use crate::wave::parts::queues::Queues;

/// Maximum of numbers in a chunk.
const SIZE: usize = 7;
const END: u32 = 2_000;

/// Numbers, and their squares.
#[derive(Default)]
struct Squares {
    numbers: Vec<u32>,
    squares: Vec<u32>,
}

impl WaveChunk for Squares {
    fn items(&self) -> usize {
        self.numbers.len()
    }

    fn bytes(&self) -> usize {
        8 * self.numbers.len()
    }

    fn clear(&mut self, _: usize) {
        self.numbers.clear();
        self.squares.clear();
    }

    fn has_rows(&self) -> bool {
        !self.numbers.is_empty()
    }

    /// A cost that says nothing about the time.
    fn estimate(&self) -> Estimate {
        let cpu_ns = self.numbers.first().map_or(0.0, |first| f64::from(first % 5));
        Estimate::on_cpu(cpu_ns)
    }
}

/// A kernel that takes its time.
struct SquareKernel {
    pause: Duration,
    /// Number of kernels that work now, and the largest such number so far.
    busy: Arc<[AtomicUsize; 2]>,
}

impl Kernel for SquareKernel {
    const NAME: &'static str = "square";
    type Chunk = Squares;
    type OnDevice = Nowhere;

    fn run(&mut self, chunk: &mut Squares) {
        let [busy, most] = &*self.busy;
        most.fetch_max(busy.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        let begin = Instant::now();
        while begin.elapsed() < self.pause {
            hint::spin_loop();
        }
        chunk.squares.extend(chunk.numbers.iter().map(|number| number * number));
        busy.fetch_sub(1, Ordering::SeqCst);
    }

    fn open(&mut self, _: &DeviceSession, _: Option<&Squares>) -> Result<Nowhere, NoDevice> {
        Err(NoDevice::NoDriver)
    }
}

/// No device.
enum Nowhere {}

impl OnDevice for Nowhere {
    type Chunk = Squares;

    fn has_room(&self, _: &Squares) -> bool {
        match *self {}
    }

    fn submit(&mut self, _: &Squares) -> Result<(), DeviceError> {
        match *self {}
    }

    fn is_done(&mut self) -> Result<bool, DeviceError> {
        match *self {}
    }

    fn collect(&mut self, _: &mut Squares) -> Result<Landed, DeviceError> {
        match *self {}
    }
}

/// Runs all numbers through kernels with these pauses; every answer must be there, in order.
/// Returns the most kernels that worked at a time, and the chunks of each.
fn run(pauses: &[u64], wave: Wave, cores: Cores) -> (usize, Vec<u64>) {
    let busy = Arc::new([const { AtomicUsize::new(0) }; 2]);
    let kernel =
        |&micros| SquareKernel { pause: Duration::from_micros(micros), busy: Arc::clone(&busy) };
    let fill = |chunk: &mut Squares, rest: &mut vec::IntoIter<u32>| {
        chunk.numbers.extend(rest.take(SIZE));
    };
    let shown = format!("{wave:?} {cores:?}");
    let spec = Waves {
        producer: NumberProducer::new(fill),
        kernels: pauses.iter().map(kernel).collect(),
        consumer: AnswerConsumer::new(|chunk: &Squares| chunk.squares.clone()),
        make: Squares::default,
        wave,
    };
    let batches = (0..END).step_by(500).map(|begin| batch(begin..begin + 500));
    let (graph, collected) = pipeline(batches, spec, cores);
    let metrics = end(start(graph)).unwrap();
    assert!(answers(&collected).into_iter().eq((0..END).map(|n| n * n)), "{shown}");
    let parts = &metrics.stage("waves").unwrap().parts;
    let waves = parts[1..=pauses.len()].iter().map(|part| counter(&part.counters, "waves"));
    (busy[1].load(Ordering::SeqCst), waves.collect())
}

#[test]
fn rows_come_in_the_order_of_the_stream() {
    for cores in CORES {
        for pauses in [&[0][..], &[0, 0], &[300, 0], &[0, 300, 0, 20, 0], &[0; 16]] {
            for chunks in [1, 2, 3, 40] {
                let (_, waves) = run(pauses, Wave::new(Device::Cpu, chunks, 1), cores);
                assert_eq!(waves.iter().sum::<u64>(), 4 * 500_u64.div_ceil(SIZE as u64));
            }
        }
    }
}

#[test]
fn kernels_on_threads_of_their_own_work_at_the_same_time() {
    if available_cores().len() > 1 {
        let (most, _) = run(&[1000; 2], Wave::new(Device::Cpu, 8, 1), Cores::ByLoad);
        assert_eq!(most, 2);
    }
}

#[test]
fn kernels_share_the_chunks_of_a_device_that_is_missing() {
    for cores in CORES {
        let wave = Wave { device_price: DevicePrice::FREE, ..Wave::new(Device::Auto, 4, 1) };
        let (_, waves) = run(&[100; 3], wave, cores);
        assert!(waves.iter().all(|&waves| waves > 20), "{waves:?}");
    }
}

/// Two kernels, which see each other's queues.
fn two_kernels() -> [KernelPart<SquareKernel>; 2] {
    let mut queues = Queues::of(2, 4).zip(Queues::of(2, 4));
    [(); 2].map(|()| {
        let kernel = SquareKernel { pause: Duration::ZERO, busy: Arc::default() };
        KernelPart::new(kernel, None, 4, queues.next().unwrap())
    })
}

fn chunk() -> Payload {
    Payload::Chunk(Chunk::new(InWave::new(Squares::default()), 1, 8))
}

#[test]
fn a_kernel_answers_chunks_that_wait_for_a_busy_one() {
    let mut parts = two_kernels();
    let out = &mut Output::new();
    for worker in [0, 0, 1] {
        assert_eq!(parts[worker].process(0, chunk(), out).unwrap(), Flow::Background);
    }
    // Kernel 0 never gets its turn.
    let flows = [(); 3].map(|()| parts[1].wake(Instant::now(), out).unwrap());
    assert_eq!(flows, [Flow::Background, Flow::Background, Flow::NeedInput]);
    assert_eq!(parts[0].wake(Instant::now(), out).unwrap(), Flow::NeedInput);
    let waves = parts.iter().map(|part| counter(&part.counters(), "waves"));
    assert_eq!(waves.collect::<Vec<_>>(), [0, 3]);
}

#[test]
fn a_kernel_waits_for_no_chunk_that_another_one_takes() {
    let [mut part, mut other] = two_kernels();
    let has_ended = AtomicBool::new(false);
    let waits = thread::scope(|scope| {
        scope.spawn(|| {
            while !has_ended.load(Ordering::Relaxed) {
                other.wake(Instant::now(), &mut Output::new()).unwrap();
            }
        });
        let mut flow_of_chunk = || {
            let mut flow = part.process(0, chunk(), &mut Output::new()).unwrap();
            while flow == Flow::Background {
                flow = part.wake(Instant::now(), &mut Output::new()).unwrap();
            }
            flow
        };
        let waits = (0..100_000).filter(|_| flow_of_chunk() != Flow::NeedInput).count();
        has_ended.store(true, Ordering::Relaxed);
        waits
    });
    assert_eq!(waits, 0);
}

#[test]
fn rows_do_not_wait_for_chunks_without_rows() {
    let out = &mut Output::new();
    let mut feeder = Feeder::new(Wave::new(Device::Cpu, 5, 1), 2, Squares::default);
    for numbers in [vec![], vec![2], vec![], vec![3]] {
        let mut chunk = feeder.take().unwrap();
        (chunk.chunk.squares, chunk.chunk.numbers) = (numbers.clone(), numbers);
        feeder.send(chunk, out);
    }
    let mut sent: Vec<Payload> = out.drain_sent().map(|(_, payload)| payload).collect();
    let mut collect =
        CollectPart::new(AnswerConsumer::new(|chunk: &Squares| chunk.squares.clone()));
    // The last chunk with rows waits for the first chunk with rows, and for no other chunk.
    let arrivals = [(3, vec![], 0), (1, vec![2, 3], 2), (1, vec![], 1), (0, vec![], 1)];
    for (place, rows, back) in arrivals {
        let mut flow = collect.process(0, sent.remove(place), out).unwrap();
        while flow == Flow::HaveOutput {
            flow = collect.resume(out).unwrap();
        }
        let sent = out.drain_sent().flat_map(|(_, payload)| numbers(&payload.into_records()));
        assert_eq!(sent.collect::<Vec<_>>(), rows);
        assert_eq!(out.drain_replies().count(), back);
    }
}
