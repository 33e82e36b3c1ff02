//! Runs a plan and compares the items at the sinks with the model.

use std::collections::HashMap;
use std::fmt;
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use tempfile::TempDir;
use trommel::error::{RunError, RunErrorCause};
use trommel::runtime::RunHandle;
use trommel::{
    Collect, Collected, FrequentItems, Graph, Metrics, Read, ReadFormat, Request, RunOptions,
    Write, WriteFormat,
};

use super::operators::{Keep, Step, items};
use super::plan::{EndingPlan, Plan, SinkKind, SinkPlan, SourceKind, SourcePlan};
use super::sources::{Numbers, Pieces, PipeWriter, first_item};

/// More counters than items, so that counts are exact.
const COUNTERS: usize = 100_000;

/// End of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    Well,
    Failed,
    Aborted,
    Dropped,
}

/// Number of runs by their end.
#[derive(Debug, Default)]
pub(super) struct Endings([u64; 4]);

impl Endings {
    pub(super) fn add(&mut self, ending: Ending) {
        self.0[ending as usize] += 1;
    }
}

impl fmt::Display for Endings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [well, failed, aborted, dropped] = self.0;
        write!(f, "{well} ended well, {failed} failed, {aborted} aborted, {dropped} dropped")
    }
}

/// Count of the items taken from a source.
enum Taken {
    Counted(Arc<AtomicU64>),
    Pipe(PipeWriter),
}

/// Place of the items of a sink.
enum Seen {
    Memory(Arc<Mutex<Vec<u64>>>),
    File(PathBuf),
    Counts(Collected),
    Nothing,
}

impl Plan {
    /// Runs the pipeline; panics if it violates the model.
    pub(super) fn check(&self) -> Ending {
        let folder = tempfile::tempdir().unwrap();
        let (graph, taken, seen) = self.graph(&folder);
        let topology = graph.build().expect("a right pipeline");
        let running = topology.start(RunOptions::new().queue(self.queue)).unwrap();
        let handle = running.handle();
        let ends = AtomicBool::new(false);
        let result = thread::scope(|scope| {
            for _ in 0..self.askers {
                let ask = || self.ask(&handle, &ends);
                thread::Builder::new().spawn_scoped(scope, ask).unwrap();
            }
            let result = self.end(running);
            ends.store(true, Ordering::Relaxed);
            result
        });
        let Some(result) = result else { return Ending::Dropped };
        let taken: Vec<u64> = taken.into_iter().map(Taken::count).collect();
        match result {
            Ok(metrics) => {
                self.check_metrics(&metrics, &taken);
                for (sink, seen) in self.sinks.iter().zip(seen) {
                    self.check_sink(sink, &seen, &taken, true);
                }
                Ending::Well
            }
            Err(error) => {
                for (sink, seen) in self.sinks.iter().zip(seen) {
                    self.check_sink(sink, &seen, &taken, false);
                }
                self.check_error(&error)
            }
        }
    }

    fn graph(&self, folder: &TempDir) -> (Graph, Vec<Taken>, Vec<Seen>) {
        let mut graph = Graph::new();
        graph.placement(self.placement).pin(self.pin);
        let (mut outputs, mut taken, mut seen) = (Vec::new(), Vec::new(), Vec::new());
        for (index, source) in self.sources.iter().enumerate() {
            let (stage, counted) = add_source(&mut graph, folder, index, source);
            graph.cores(stage, source.cores.clone());
            if let Some(workers) = source.workers {
                graph.workers(stage, workers);
            }
            outputs.push(stage);
            taken.push(counted);
        }
        for (index, step) in self.steps.iter().enumerate() {
            let stage = graph.add(format!("step{index}"), Step(step.kind));
            for &from in &step.inputs {
                graph.connect(outputs[from], stage);
            }
            graph.cores(stage, step.cores.clone());
            if let Some(workers) = step.workers {
                graph.workers(stage, workers);
            }
            outputs.push(stage);
        }
        for (index, sink) in self.sinks.iter().enumerate() {
            let (stage, place) = add_sink(&mut graph, folder, index, sink.kind);
            for &from in &sink.inputs {
                graph.connect(outputs[from], stage);
            }
            if let Some(workers) = sink.workers {
                graph.workers(stage, workers);
            }
            seen.push(place);
        }
        (graph, taken, seen)
    }

    /// Queries all steps and checks that all parts of an answer are from the same position.
    fn ask(&self, handle: &RunHandle, ends: &AtomicBool) {
        while !ends.load(Ordering::Relaxed) {
            for step in 0..self.steps.len() {
                let (stage, limit) = (format!("step{step}"), Duration::from_millis(20));
                let answer = handle.queries().query_within(&stage, &Request::new("sums"), limit);
                if let Ok(rows) = answer {
                    let sums = items(&rows);
                    assert!(sums.iter().all(|&sum| sum == sums[0]), "{stage} answers {sums:?}");
                }
            }
            thread::park_timeout(Duration::from_micros(100));
        }
    }

    /// Ends the run as planned; `None` if it was dropped.
    fn end(&self, mut running: trommel::Running) -> Option<Result<Metrics, RunError>> {
        match self.ending {
            EndingPlan::LeftAlone => {}
            EndingPlan::Stop(after) => {
                running.wait(after);
                running.stop();
            }
            EndingPlan::StopTwice(after) => {
                running.wait(after);
                running.stop();
                running.stop();
            }
            EndingPlan::StopWithin(after, limit) => {
                running.wait(after);
                running.stop_within(limit);
            }
            EndingPlan::Abort(after) => {
                running.wait(after);
                running.abort();
            }
            EndingPlan::Drop(after) => {
                running.wait(after);
                return None;
            }
        }
        Some(running.join())
    }

    fn check_metrics(&self, metrics: &Metrics, taken: &[u64]) {
        for (index, &taken) in taken.iter().enumerate() {
            let sent = metrics.stage(&self.name(index)).unwrap().items_out();
            assert_eq!(sent, taken, "items sent by source {index}, and items that it took");
        }
        for edge in &metrics.edges {
            assert!(edge.depth_max <= self.queue.batches.max(32) as u64, "{edge:?}");
            assert_eq!(edge.depth, 0, "{edge:?}");
        }
    }

    fn check_error(&self, error: &RunError) -> Ending {
        let may_abort = matches!(self.ending, EndingPlan::Abort(_) | EndingPlan::StopWithin(..));
        if may_abort && matches!(error.cause, RunErrorCause::Aborted) {
            return Ending::Aborted;
        }
        let stage = error.stage.split('/').next().unwrap_or_default().to_owned();
        assert!(self.culprits().contains(&stage), "{error}");
        Ending::Failed
    }

    /// Compares the items at a sink with the model: exactly or, if the run failed, by excluding
    /// items that must not be there.
    fn check_sink(&self, sink: &SinkPlan, seen: &Seen, taken: &[u64], is_whole: bool) {
        if let Seen::Memory(kept) = seen
            && self.is_ordered(&sink.inputs)
        {
            assert!(kept.lock().unwrap().is_sorted(), "items of {sink:?} are in order");
        }
        let Some(counts) = seen.counts(is_whole) else { return };
        let expected = self.expected(sink);
        for (&item, &count) in &counts {
            let source = usize::try_from(item >> 40).unwrap();
            assert!(item - first_item(source) < taken[source], "nobody sent {item:#x}");
            assert!(count <= expected[source] as u64, "{item:#x} came {count} times: {sink:?}");
        }
        if is_whole {
            let (sent, came): (u64, u64) = (
                taken.iter().zip(&expected).map(|(&taken, &paths)| taken * paths as u64).sum(),
                counts.values().sum(),
            );
            assert_eq!(came, sent, "items at {sink:?} of those sent to it");
        }
    }
}

impl Taken {
    fn count(self) -> u64 {
        match self {
            Self::Counted(taken) => taken.load(Ordering::Relaxed),
            Self::Pipe(writer) => writer.taken(),
        }
    }
}

impl Seen {
    /// Number of occurrences of each item; `None` if unknown.
    fn counts(&self, is_whole: bool) -> Option<HashMap<u64, u64>> {
        let mut counts = HashMap::new();
        match self {
            Self::Memory(kept) => {
                kept.lock().unwrap().iter().for_each(|&item| *counts.entry(item).or_default() += 1);
            }
            Self::File(path) => {
                if !is_whole {
                    assert!(!path.exists(), "a run that fails leaves no file");
                    return None;
                }
                for line in fs::read_to_string(path).unwrap().lines() {
                    let item = line.strip_prefix("{\"item\":").and_then(|l| l.strip_suffix('}'));
                    let item: u64 = item.expect(line).parse().unwrap();
                    *counts.entry(item).or_default() += 1;
                }
            }
            Self::Counts(rows) => {
                for rows in rows.batches() {
                    let column =
                        |name| rows.column_by_name(name).unwrap().as_primitive::<UInt64Type>();
                    let values = column("item").values().iter().zip(column("count").values());
                    counts.extend(values);
                }
            }
            Self::Nothing => return None,
        }
        Some(counts)
    }
}

fn add_source(
    graph: &mut Graph,
    folder: &TempDir,
    index: usize,
    plan: &SourcePlan,
) -> (trommel::graph::StageId, Taken) {
    let (name, first) = (format!("source{index}"), first_item(index));
    if let SourceKind::Pipe = plan.kind {
        let path = folder.path().join(&name);
        let writer = PipeWriter::start(&path, first, plan.items);
        let batch = usize::try_from(plan.batch).unwrap();
        let read = Read::new([path.to_str().unwrap()], ReadFormat::U64le).batch(batch);
        return (graph.add(name, read), Taken::Pipe(writer));
    }
    let pause = if let SourceKind::Paced(pause) = plan.kind { Some(pause) } else { None };
    let taken = Arc::new(AtomicU64::new(0));
    if let SourceKind::Pieces(piece) = plan.kind {
        let pieces = Pieces {
            first,
            items: plan.items,
            batch: plan.batch,
            piece,
            next: Arc::default(),
            taken: Arc::clone(&taken),
            open: 0..0,
        };
        return (graph.add(name, pieces), Taken::Counted(taken));
    }
    let numbers = Numbers {
        first,
        items: plan.items,
        batch: plan.batch,
        pause,
        reads_ahead: matches!(plan.kind, SourceKind::ReadAhead),
        sent: 0,
        taken: Arc::clone(&taken),
    };
    (graph.add(name, numbers), Taken::Counted(taken))
}

fn add_sink(
    graph: &mut Graph,
    folder: &TempDir,
    index: usize,
    kind: SinkKind,
) -> (trommel::graph::StageId, Seen) {
    let name = format!("sink{index}");
    let write = |path: &str| Write::new(path, WriteFormat::Jsonl);
    match kind {
        SinkKind::Memory | SinkKind::SlowMemory(_) => {
            let work = if let SinkKind::SlowMemory(work) = kind { work } else { Duration::ZERO };
            let kept = Arc::new(Mutex::new(Vec::new()));
            let keep = Keep { work, kept: Arc::clone(&kept) };
            (graph.add(name, keep), Seen::Memory(kept))
        }
        SinkKind::File => {
            let path = folder.path().join(&name);
            (graph.add(name, write(path.to_str().unwrap())), Seen::File(path))
        }
        SinkKind::FullDisk => (graph.add(name, write("/dev/full")), Seen::Nothing),
        SinkKind::Counts => {
            let counts = graph.add(name, FrequentItems::new().counters(COUNTERS).n(COUNTERS));
            let (collect, rows) = Collect::new();
            graph.add_after(counts, format!("rows{index}"), collect);
            (counts, Seen::Counts(rows))
        }
    }
}
