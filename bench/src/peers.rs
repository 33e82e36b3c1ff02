//! The pipeline of the engine in other engines, each written as its users would write it.
//!
//! The work is not the same in all respects. Batches differ: timely has buffers of 1,024 numbers
//! and a source chunk of 4,096. Fused, renoir has no batches; its hop has ours, to one replica, on
//! threads that are not pinned. Its sink takes an item at a time, the others a batch.

use std::cell::RefCell;
use std::rc::Rc;

use renoir::operator::source::IteratorSource;
use renoir::{BatchMode, Replication, RuntimeConfig, StreamContext};
use timely::container::CapacityContainerBuilder;
use timely::dataflow::channels::pact::{Exchange, Pipeline};
use timely::dataflow::operators::Operator;
use timely::dataflow::operators::generic::operator::source;
use timely::dataflow::operators::vec::{Filter, Map};
use trommel_bench::measure::Candidate;
use trommel_bench::pipeline::{Sink, mix, passes};

/// Items that a timely source sends before other operators run.
const TIMELY_CHUNK: u64 = 4096;

/// Runs of the peers over `items` items, in batches of `batch` where they can be chosen.
pub(crate) fn candidates<'a>(items: u64, batch: u64, sink: &Sink) -> Vec<Candidate<'a>> {
    let mut candidates = Vec::new();
    for workers in [1, 2] {
        let (sink, plural) = (sink.clone(), if workers == 1 { "" } else { "s, exchange" });
        candidates.push(Candidate::new(format!("timely, {workers} worker{plural}"), move || {
            timely(items, &sink, workers)
        }));
    }
    for threads in [1, 2] {
        let (sink, plural) = (sink.clone(), if threads == 1 { "" } else { "s" });
        candidates
            .push(Candidate::new(format!("renoir, fused, {threads} thread{plural}"), move || {
                renoir(items, &sink, threads)
            }));
    }
    let sink = sink.clone();
    candidates.push(Candidate::new("renoir, one hop", move || renoir_hop(items, batch, &sink)));
    candidates
}

/// Sum of the answers of sinks that each took a part; every answer is a sum over items.
fn total(parts: impl IntoIterator<Item = u64>) -> u64 {
    parts.into_iter().fold(0, u64::wrapping_add)
}

fn timely(items: u64, sink: &Sink, workers: u64) -> u64 {
    let sink = sink.clone();
    let config = if workers == 1 {
        timely::Config::thread()
    } else {
        timely::Config::process(usize::try_from(workers).expect("few workers"))
    };
    let guards = timely::execute(config, move |worker| {
        let (index, sink) = (worker.index() as u64, Rc::new(RefCell::new(sink.clone())));
        let taken = Rc::clone(&sink);
        let (mut next, end) = (items * index / workers, items * (index + 1) / workers);
        worker.dataflow::<u64, _, _>(|scope| {
            let numbers = source(scope, "numbers", |capability, info| {
                let activator = scope.activator_for(info.address);
                let mut capability = Some(capability);
                move |output| {
                    if let Some(held) = &capability {
                        let until = end.min(next + TIMELY_CHUNK);
                        output.session(held).give_iterator(next..until);
                        next = until;
                    }
                    if next == end {
                        capability = None;
                    } else {
                        activator.activate();
                    }
                }
            });
            let passed = numbers.container::<Vec<u64>>().map(mix).filter(|&item| passes(item));
            macro_rules! sink_behind {
                ($pact:expr) => {
                    passed.unary::<CapacityContainerBuilder<Vec<()>>, _, _, _>(
                        $pact,
                        "sink",
                        move |_, _| {
                            move |input, _| {
                                input.for_each(|_, batch| {
                                    taken.borrow_mut().take_batch(batch);
                                });
                            }
                        },
                    )
                };
            }
            if workers == 1 {
                sink_behind!(Pipeline);
            } else {
                sink_behind!(Exchange::new(|&item: &u64| item >> 20));
            }
        });
        while worker.step() {}
        sink.borrow().answer()
    });
    let answers = guards.expect("timely starts").join();
    total(answers.into_iter().map(|answer| answer.expect("the worker ends")))
}

/// State of a fold of renoir, which requires plain serialisable data.
fn state(sink: &Sink) -> Vec<u64> {
    match sink {
        Sink::Light(sum) => vec![*sum],
        Sink::Hash(table) => table.clone(),
    }
}

#[expect(clippy::ptr_arg, reason = "renoir wants the type that it folds into")]
fn take(state: &mut Vec<u64>, item: u64) {
    match &mut state[..] {
        [sum] => *sum = sum.wrapping_add(item),
        table => table[trommel_bench::pipeline::slot(item)] += 1,
    }
}

#[expect(clippy::ptr_arg, reason = "renoir wants the type that it folds into")]
fn merge(state: &mut Vec<u64>, part: Vec<u64>) {
    for (sum, part) in state.iter_mut().zip(part) {
        *sum = sum.wrapping_add(part);
    }
}

fn answer(folded: Option<Vec<Vec<u64>>>) -> u64 {
    total(folded.into_iter().flatten().map(|state| match &state[..] {
        [sum] => Sink::Light(*sum).answer(),
        _ => Sink::Hash(state).answer(),
    }))
}

fn context(threads: u64) -> StreamContext {
    StreamContext::new(RuntimeConfig::local(threads).expect("a local configuration"))
}

fn renoir(items: u64, sink: &Sink, threads: u64) -> u64 {
    let context = context(threads);
    let folded = context
        .stream_par_iter(0..items)
        .map(mix)
        .filter(|&item| passes(item))
        .fold_assoc(state(sink), take, merge)
        .collect_vec();
    context.execute_blocking();
    answer(folded.get())
}

fn renoir_hop(items: u64, batch: u64, sink: &Sink) -> u64 {
    let batch = usize::try_from(batch).expect("batches fit memory");
    let context = context(2);
    let folded = context
        .stream(IteratorSource::new(0..items))
        .batch_mode(BatchMode::fixed(batch))
        .map(mix)
        .filter(|&item| passes(item))
        .replication(Replication::One)
        .fold_assoc(state(sink), take, merge)
        .collect_vec();
    context.execute_blocking();
    answer(folded.get())
}
