//! The pipeline of the engine in other engines, each written as its users would write it.
//!
//! The work is not the same in all respects. Batches differ: timely has buffers of 1,024 numbers
//! and a source chunk of 4,096. Fused, renoir has no batches; its hop has ours, to one replica, on
//! threads that are not pinned. Its sink takes an item at a time, the others a batch.

use std::cell::RefCell;
use std::error::Error;
use std::rc::Rc;
use std::time::Instant;

use renoir::operator::source::IteratorSource;
use renoir::{BatchMode, Replication, RuntimeConfig, StreamContext};
use serde::Deserialize;
use serde_json::{Value, json};
use timely::container::CapacityContainerBuilder;
use timely::dataflow::channels::pact::{Exchange, Pipeline};
use timely::dataflow::operators::Operator;
use timely::dataflow::operators::generic::operator::source;
use timely::dataflow::operators::vec::{Filter, Map};

use crate::work::{Sink, mix, passes, slot};

/// Items that a timely source sends before other operators run.
const TIMELY_CHUNK: u64 = 4096;

/// A run of an engine.
#[derive(Debug, Deserialize)]
pub(crate) struct Job {
    /// Name of the engine, as in the table.
    engine: String,
    items: u64,
    /// Items of a batch, where an engine lets its users choose.
    batch: u64,
    sink: SinkName,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum SinkName {
    Light,
    Hash,
}

impl Job {
    pub(crate) fn run(&self) -> Result<Value, Box<dyn Error>> {
        let Self { items, batch, .. } = *self;
        let sink = match self.sink {
            SinkName::Light => Sink::light(),
            SinkName::Hash => Sink::hash(),
        };
        let begin = Instant::now();
        let answer = match self.engine.as_str() {
            "timely, 1 worker" => timely(items, &sink, 1),
            "timely, 2 workers, exchange" => timely(items, &sink, 2),
            "renoir, fused, 1 thread" => renoir(items, &sink, 1),
            "renoir, fused, 2 threads" => renoir(items, &sink, 2),
            "renoir, one hop" => renoir_hop(items, batch, &sink),
            other => return Err(format!("no engine has the name {other:?}").into()),
        };
        Ok(json!({ "seconds": begin.elapsed().as_secs_f64(), "answer": answer }))
    }
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
        table => table[slot(item)] += 1,
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
