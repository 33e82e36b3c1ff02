//! Pipeline for measurements of the engine: numbers, a map, a filter that passes three of four,
//! and a sink.
//!
//! The same functions over the same batches are called by a hand-written loop and by the stages
//! of a Trommel pipeline, so that the difference is the cost of the engine.

use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use arrow_array::{ArrayRef, RecordBatch, UInt64Array};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use trommel::placement::Placement;
use trommel::{ForEach, Graph, Map, Memory, RunOptions};

use crate::work::slot;
pub use crate::work::{Sink, mix, passes};

/// Schema of every batch: one column.
#[must_use]
pub fn schema() -> SchemaRef {
    Arc::new(Schema::new(vec![Field::new("n", DataType::UInt64, false)]))
}

fn batch(schema: &SchemaRef, values: Vec<u64>) -> RecordBatch {
    let column: ArrayRef = Arc::new(UInt64Array::from(values));
    RecordBatch::try_new(Arc::clone(schema), vec![column]).expect("one column of this type")
}

/// Numbers of a batch.
#[must_use]
pub fn values(records: &RecordBatch) -> &[u64] {
    records.column(0).as_primitive::<UInt64Type>().values()
}

/// Batches of the numbers below `items`.
pub fn numbers(items: u64, batch_items: u64) -> impl Iterator<Item = RecordBatch> + Send {
    let schema = schema();
    (0..items.div_ceil(batch_items)).map(move |index| {
        let start = index * batch_items;
        count_up(&schema, start, items.min(start + batch_items))
    })
}

/// Batch of the source. Like the other functions over batches it is not inlined: the same machine
/// code runs by hand and in the engine.
#[inline(never)]
fn count_up(schema: &SchemaRef, start: u64, end: u64) -> RecordBatch {
    batch(schema, (start..end).collect())
}

/// Map of a batch.
#[inline(never)]
#[must_use]
pub fn map(schema: &SchemaRef, records: &RecordBatch) -> RecordBatch {
    batch(schema, values(records).iter().map(|&item| mix(item)).collect())
}

/// Filter of a batch, without a branch per item. It takes eight items per round: the time of a
/// shorter loop depends on its placement by the linker (12 % if one byte is in the next cache
/// line).
#[inline(never)]
#[must_use]
pub fn filter(schema: &SchemaRef, records: &RecordBatch) -> RecordBatch {
    let items = values(records);
    let mut kept = vec![0; items.len()];
    let mut count = 0;
    let mut keep = |item: u64| {
        kept[count] = item;
        count += usize::from(passes(item));
    };
    let (rounds, rest) = items.as_chunks::<8>();
    rounds.iter().for_each(|round| round.iter().for_each(|&item| keep(item)));
    rest.iter().for_each(|&item| keep(item));
    kept.truncate(count);
    batch(schema, kept)
}

/// Plain loop, item by item, as written without an engine.
#[must_use]
pub fn item_loop(items: u64, mut sink: Sink) -> u64 {
    for item in (0..items).map(mix).filter(|&item| passes(item)) {
        match &mut sink {
            Sink::Light(sum) => *sum = sum.wrapping_add(item),
            Sink::Hash(table) => table[slot(item)] += 1,
        }
    }
    sink.answer()
}

/// Fused pipeline by hand: batch after batch through the same functions, on a pinned thread as
/// the engine uses one (the allocator treats the main thread differently).
///
/// # Panics
/// If the thread does.
#[must_use]
pub fn batch_loop(items: u64, batch_items: u64, mut sink: Sink) -> u64 {
    let schema = schema();
    let core = core_affinity::get_core_ids().and_then(|cores| cores.first().copied());
    std::thread::scope(|scope| {
        let worker = scope.spawn(move || {
            let _ = core.is_some_and(core_affinity::set_for_current);
            for records in numbers(items, batch_items) {
                sink.take_batch(values(&filter(&schema, &map(&schema, &records))));
            }
            sink.answer()
        });
        worker.join().expect("it does not panic")
    })
}

/// Pipeline with one hop by hand: the sink is on a second thread, connected by a bounded channel.
///
/// # Panics
/// If the second thread does.
#[must_use]
pub fn batch_loop_with_hop(items: u64, batch_items: u64, mut sink: Sink) -> u64 {
    let schema = schema();
    let (sender, receiver) = crossbeam_channel::bounded::<RecordBatch>(8);
    let cores = core_affinity::get_core_ids().unwrap_or_default();
    let (first, last) = (cores.first().copied(), cores.last().copied());
    let pin =
        |core: Option<core_affinity::CoreId>| core.is_some_and(core_affinity::set_for_current);
    std::thread::scope(|scope| {
        let consumer = scope.spawn(move || {
            pin(last);
            receiver.iter().for_each(|records| sink.take_batch(values(&records)));
            sink.answer()
        });
        let producer = scope.spawn(move || {
            pin(first);
            for records in numbers(items, batch_items) {
                sender.send(filter(&schema, &map(&schema, &records))).expect("the consumer waits");
            }
        });
        producer.join().expect("it does not panic");
        consumer.join().expect("it does not panic")
    })
}

/// Placement of the four stages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// All on one thread.
    Fused,
    /// The sink on the second core.
    OneHop,
    /// Four heavy stages, placed by the engine on the cores there are.
    Auto,
}

/// Runs the pipeline in Trommel; with `pin`, every thread has a core of its own.
///
/// # Panics
/// If the pipeline does not run.
#[must_use]
pub fn trommel(items: u64, batch_items: u64, sink: Sink, shape: Shape, pin: bool) -> u64 {
    let (schema, sink) = (schema(), Arc::new(Mutex::new(sink)));
    let (mapped, filtered, place) = (Arc::clone(&schema), Arc::clone(&schema), Arc::clone(&sink));
    let map_stage = Map::new(Arc::clone(&schema), move |records| Ok(map(&mapped, &records)));
    let filter_stage =
        Map::new(Arc::clone(&schema), move |records| Ok(filter(&filtered, &records)));
    let sink_stage = ForEach::new(move |records| {
        place.lock().unwrap_or_else(PoisonError::into_inner).take_batch(values(&records));
        Ok(())
    });
    let mut graph = Graph::new();
    let source = graph.add("numbers", Memory::new(schema, numbers(items, batch_items)));
    let map = graph.add_after(source, "map", map_stage.heavy());
    let filter = graph.add_after(map, "filter", filter_stage.heavy());
    let end = graph.add_after(filter, "sink", sink_stage);
    graph.pin(pin);
    match shape {
        Shape::Auto => {}
        Shape::Fused => {
            graph.placement(Placement::Fused);
        }
        Shape::OneHop => {
            let cores = trommel::placement::available_cores();
            for stage in [source, map, filter] {
                graph.cores(stage, [cores[0]]);
            }
            graph.cores(end, [cores[cores.len() - 1]]);
        }
    }
    graph.build().expect("the graph is right").run(RunOptions::new()).expect("it runs");
    sink.lock().unwrap_or_else(PoisonError::into_inner).answer()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shape_gives_the_same_answer() {
        for (items, batch_items) in [(0, 10), (1, 10), (10_007, 100), (10_000, 10_000)] {
            for sink in [Sink::light(), Sink::hash()] {
                let expected = item_loop(items, sink.clone());
                assert_eq!(batch_loop(items, batch_items, sink.clone()), expected);
                assert_eq!(batch_loop_with_hop(items, batch_items, sink.clone()), expected);
                for shape in [Shape::Fused, Shape::OneHop, Shape::Auto] {
                    for pin in [false, true] {
                        let answer = trommel(items, batch_items, sink.clone(), shape, pin);
                        assert_eq!(answer, expected);
                    }
                }
            }
        }
    }
}
