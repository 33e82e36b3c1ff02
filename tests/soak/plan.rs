//! Plan of a pipeline, made from a seed, and the model: the number of times each sink has to see
//! the items of each source.

use std::time::Duration;

use rand::{RngExt as _, SeedableRng as _};
use rand_pcg::Pcg64;
use trommel::channel::QueueLimits;
use trommel::placement::{Placement, available_cores};

/// Maximum times that one item may reach one sink: more would only take time.
const PATHS_MAX: usize = 24;

#[derive(Debug)]
pub(super) struct Plan {
    pub(super) sources: Vec<SourcePlan>,
    pub(super) steps: Vec<StepPlan>,
    pub(super) sinks: Vec<SinkPlan>,
    pub(super) placement: Placement,
    pub(super) pin: bool,
    pub(super) queue: QueueLimits,
    pub(super) ending: EndingPlan,
    /// Threads that query all stages continuously.
    pub(super) askers: usize,
}

/// An output: a source, or a step, which are numbered after the sources.
pub(super) type From = usize;

#[derive(Debug)]
pub(super) struct SourcePlan {
    pub(super) kind: SourceKind,
    pub(super) items: u64,
    pub(super) batch: u64,
    pub(super) cores: Vec<usize>,
    pub(super) workers: Option<usize>,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum SourceKind {
    /// Sends without pause.
    Eager,
    /// Copies share pieces of this number of items.
    Pieces(u64),
    /// Pauses after each batch.
    Paced(Duration),
    /// Takes many items at once and sends few of them per call.
    ReadAhead,
    /// Reads a named pipe, which a writer fills at its pace.
    Pipe,
}

#[derive(Debug)]
pub(super) struct StepPlan {
    pub(super) kind: StepKind,
    pub(super) inputs: Vec<From>,
    pub(super) cores: Vec<usize>,
    pub(super) workers: Option<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StepKind {
    Pass,
    /// Sends each batch in pieces, one per call.
    Split(usize),
    /// Keeps all batches to the end.
    Hold,
    /// Sends each batch after a delay.
    Delay(Duration),
    /// Works for this time on each batch.
    Slow(Duration),
    /// Two parts; the first waits for replies of the second.
    TwoParts,
    /// Three parts with chunks in flight and buffers that return.
    Waves,
    /// Returns an error for the batch of this number.
    Fail(usize),
    /// Panics at the batch of this number.
    Panic(usize),
}

impl StepKind {
    pub(super) fn may_fail(self) -> bool {
        matches!(self, Self::Fail(_) | Self::Panic(_))
    }
}

#[derive(Debug)]
pub(super) struct SinkPlan {
    pub(super) kind: SinkKind,
    pub(super) inputs: Vec<From>,
    pub(super) workers: Option<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SinkKind {
    Memory,
    /// Works for this time on each batch.
    SlowMemory(Duration),
    File,
    /// A disk without space.
    FullDisk,
    /// Exact counts of all items.
    Counts,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EndingPlan {
    LeftAlone,
    /// After this time.
    Stop(Duration),
    StopTwice(Duration),
    /// With a limit for the drain.
    StopWithin(Duration, Duration),
    Abort(Duration),
    Drop(Duration),
}

struct Random(Pcg64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0.random_range(0..n)
    }

    fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    fn up_to(&mut self, most: Duration) -> Duration {
        most.mul_f64(self.0.random_range(0.0..=1.0))
    }

    fn cores(&mut self) -> Vec<usize> {
        let cores = available_cores();
        if self.one_in(4) { vec![cores[self.below(cores.len())]] } else { Vec::new() }
    }

    fn workers(&mut self) -> Option<usize> {
        if self.one_in(2) { Some([1, 2, 3, 5, 8, 31][self.below(6)]) } else { None }
    }
}

impl Plan {
    pub(super) fn new(seed: u64) -> Self {
        let random = &mut Random(Pcg64::seed_from_u64(seed));
        let sources: Vec<_> = (0..1 + random.below(4)).map(|_| source(random)).collect();
        let mut plan = Self {
            sources,
            steps: Vec::new(),
            sinks: Vec::new(),
            placement: if random.one_in(2) { Placement::Fused } else { Placement::Auto },
            pin: random.one_in(4),
            queue: QueueLimits {
                batches: [1, 1, 2, 8][random.below(4)],
                bytes: [1, 10_000, 1 << 26][random.below(3)],
            },
            ending: ending(random),
            askers: if random.one_in(4) { 1 + random.below(2) } else { 0 },
        };
        for _ in 0..random.below(7) {
            let (inputs, cores) = (plan.inputs(random), random.cores());
            let workers = random.workers();
            plan.steps.push(StepPlan { kind: step(random), inputs, cores, workers });
        }
        for _ in 0..random.below(2) {
            let inputs = plan.inputs(random);
            plan.sinks.push(SinkPlan { kind: sink(random), inputs, workers: random.workers() });
        }
        for unread in plan.unread() {
            let (inputs, workers) = (vec![unread], random.workers());
            plan.sinks.push(SinkPlan { kind: sink(random), inputs, workers });
        }
        plan
    }

    fn outputs(&self) -> usize {
        self.sources.len() + self.steps.len()
    }

    /// One to three different outputs, chosen so that no item comes too often.
    fn inputs(&self, random: &mut Random) -> Vec<From> {
        let mut inputs = vec![random.below(self.outputs())];
        for _ in 0..random.below(3) {
            let next = random.below(self.outputs());
            let paths: usize = inputs
                .iter()
                .chain([&next])
                .map(|&from| self.paths(from).iter().sum::<usize>())
                .sum();
            if !inputs.contains(&next) && paths <= PATHS_MAX {
                inputs.push(next);
            }
        }
        inputs
    }

    /// Outputs without a reader.
    fn unread(&self) -> Vec<From> {
        let steps = self.steps.iter().map(|step| &step.inputs);
        let read: Vec<From> =
            steps.chain(self.sinks.iter().map(|sink| &sink.inputs)).flatten().copied().collect();
        (0..self.outputs()).filter(|from| !read.contains(from)).collect()
    }

    /// Times that each item of a source reaches this output, by source.
    fn paths(&self, from: From) -> Vec<usize> {
        let mut paths = vec![0; self.sources.len()];
        if from < self.sources.len() {
            paths[from] = 1;
        } else {
            self.add_paths(&self.steps[from - self.sources.len()].inputs, &mut paths);
        }
        paths
    }

    fn add_paths(&self, inputs: &[From], sum: &mut [usize]) {
        for &input in inputs {
            sum.iter_mut().zip(self.paths(input)).for_each(|(sum, paths)| *sum += paths);
        }
    }

    /// Times that a sink has to see each item of a source, by source.
    pub(super) fn expected(&self, sink: &SinkPlan) -> Vec<usize> {
        let mut expected = vec![0; self.sources.len()];
        self.add_paths(&sink.inputs, &mut expected);
        expected
    }

    /// Whether the items of these outputs come in the order of one source: there is one way from
    /// the source.
    pub(super) fn is_ordered(&self, inputs: &[From]) -> bool {
        let &[from] = inputs else { return false };
        let step = from.checked_sub(self.sources.len()).map(|step| &self.steps[step]);
        step.is_none_or(|step| self.is_ordered(&step.inputs))
    }

    /// Name of the stage of an output.
    pub(super) fn name(&self, from: From) -> String {
        match from.checked_sub(self.sources.len()) {
            None => format!("source{from}"),
            Some(step) => format!("step{step}"),
        }
    }

    /// Stages that may end the run with an error of their own.
    pub(super) fn culprits(&self) -> Vec<String> {
        let steps = self.steps.iter().enumerate().filter(|(_, step)| step.kind.may_fail());
        let full = self.sinks.iter().enumerate().filter(|(_, s)| s.kind == SinkKind::FullDisk);
        let steps = steps.map(|(index, _)| format!("step{index}"));
        steps.chain(full.map(|(index, _)| format!("sink{index}"))).collect()
    }
}

fn source(random: &mut Random) -> SourcePlan {
    let kind = match random.below(8) {
        0 => SourceKind::Paced(random.up_to(Duration::from_micros(300))),
        1 => SourceKind::ReadAhead,
        2 => SourceKind::Pipe,
        3..5 => SourceKind::Pieces(1 + random.below(300) as u64),
        _ => SourceKind::Eager,
    };
    let batch = 1 + random.below(100) as u64;
    let batches = if matches!(kind, SourceKind::Paced(_)) { 30 } else { 100 };
    let items = batch * random.below(batches) as u64 + random.below(20) as u64;
    SourcePlan { kind, items, batch, cores: random.cores(), workers: random.workers() }
}

fn step(random: &mut Random) -> StepKind {
    match random.below(24) {
        0..4 => StepKind::Split(1 + random.below(7)),
        4..6 => StepKind::Hold,
        6..9 => StepKind::Delay(random.up_to(Duration::from_millis(3))),
        9..12 => StepKind::Slow(random.up_to(Duration::from_micros(100))),
        12..15 => StepKind::TwoParts,
        15..18 => StepKind::Waves,
        18 => StepKind::Fail(random.below(20)),
        19 => StepKind::Panic(random.below(20)),
        _ => StepKind::Pass,
    }
}

fn sink(random: &mut Random) -> SinkKind {
    match random.below(16) {
        0..4 => SinkKind::SlowMemory(random.up_to(Duration::from_micros(200))),
        4..6 => SinkKind::File,
        6..8 => SinkKind::Counts,
        8 => SinkKind::FullDisk,
        _ => SinkKind::Memory,
    }
}

fn ending(random: &mut Random) -> EndingPlan {
    let after = random.up_to(Duration::from_millis(8));
    match random.below(12) {
        0..2 => EndingPlan::Stop(after),
        2 => EndingPlan::StopTwice(after),
        3 => EndingPlan::StopWithin(after, random.up_to(Duration::from_millis(5))),
        4 => EndingPlan::Abort(after),
        5 => EndingPlan::Drop(after),
        _ => EndingPlan::LeftAlone,
    }
}
