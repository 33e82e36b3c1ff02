//! Windows of `frequent_items` in running pipelines.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use arrow_array::cast::AsArray;
use arrow_array::types::{TimestampMillisecondType, UInt32Type, UInt64Type};
use arrow_array::{ArrayRef, RecordBatch, UInt32Array, UInt64Array};
use arrow_schema::SchemaRef;
use crossbeam_channel::bounded;
use proptest::prelude::*;
use trommel::error::BindError;
use trommel::operator::{
    BindContext, Fragment, Load, OperatorError, OperatorSpec, Output, Source, SourceFlow,
};
use trommel::{Collect, Decay, ForEach, FrequentItems, Graph, Memory, Request, RunOptions, Window};

use crate::support::watched;

/// Sends one batch, then nothing for an hour.
struct Once(Option<RecordBatch>);

impl Source for Once {
    fn next(&mut self, out: &mut Output) -> Result<SourceFlow, OperatorError> {
        self.0.take().into_iter().for_each(|records| out.send(records));
        Ok(SourceFlow::Idle(Duration::from_secs(3600)))
    }
}

impl OperatorSpec for Once {
    fn operator(&self) -> &'static str {
        "once"
    }

    fn input_ports(&self) -> RangeInclusive<usize> {
        0..=0
    }

    fn bind(self: Box<Self>, _: &[SchemaRef], _: BindContext) -> Result<Fragment, BindError> {
        let schema = self.0.as_ref().expect("not sent yet").schema();
        Ok(Fragment::source(Load::Light, *self, schema))
    }
}

#[test]
fn a_window_of_time_closes_although_nothing_comes() {
    let column: ArrayRef = Arc::new(UInt32Array::from(vec![7, 7, 1]));
    let batch = RecordBatch::try_from_iter_with_nullable([("item", column, false)]).unwrap();
    let (sender, receiver) = bounded(16);
    let mut graph = Graph::new();
    let once = graph.add("once", Once(Some(batch)));
    let window = Window::seconds(0.2).slide(0.1);
    let top = graph.add_after(once, "top", FrequentItems::new().window(window));
    graph.add_after(top, "rows", ForEach::new(move |rows| Ok(sender.send(rows)?)));
    watched(move || {
        let running = graph.build().unwrap().start(RunOptions::new()).unwrap();
        for _ in 0..2 {
            let rows: RecordBatch = receiver.recv().unwrap();
            let border = |name| {
                let column = rows.column_by_name(name).unwrap();
                column.as_primitive::<TimestampMillisecondType>().value(0)
            };
            assert_eq!(border("window_end") - border("window_start"), 200);
            assert_eq!(border("window_end") % 100, 0);
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis();
            assert!(i64::try_from(now).unwrap() >= border("window_end"), "it has passed");
            let counts = rows.column_by_name("count").unwrap().as_primitive::<UInt64Type>();
            assert_eq!(counts.values(), &[2, 1]);
        }
        let live = running.query("top", &Request::new("top")).unwrap();
        assert_eq!(live.num_rows(), 0, "the item has left the window");
        running.stop();
        running.join().unwrap();
        assert!(receiver.is_empty());
    });
}

/// Batches of these sizes, in turn, of a stream of items with weights.
fn batches(stream: &[(u32, u64)], sizes: &[usize]) -> Vec<RecordBatch> {
    let (mut rest, mut sizes) = (stream, sizes.iter().cycle());
    let mut batches = Vec::new();
    while !rest.is_empty() {
        let (batch, after) = rest.split_at(rest.len().min(*sizes.next().unwrap()));
        let items: ArrayRef =
            Arc::new(UInt32Array::from_iter_values(batch.iter().map(|row| row.0)));
        let weights: ArrayRef =
            Arc::new(UInt64Array::from_iter_values(batch.iter().map(|row| row.1)));
        batches.push(RecordBatch::try_from_iter([("item", items), ("weight", weights)]).unwrap());
        rest = after;
    }
    batches
}

/// The rows that this number of workers with `spec` emits.
fn emitted(spec: FrequentItems, batches: Vec<RecordBatch>, workers: usize) -> Vec<RecordBatch> {
    let mut graph = Graph::new();
    let items = graph.add("items", Memory::new(batches[0].schema(), batches));
    let top = graph.add_after(items, "top", spec);
    graph.workers(top, workers);
    let (sink, rows) = Collect::new();
    graph.add_after(top, "rows", sink);
    watched(move || graph.build().unwrap().run(RunOptions::new())).unwrap();
    rows.take()
}

fn numbers<'a>(rows: &'a RecordBatch, column: &str) -> &'a [u64] {
    rows.column_by_name(column).unwrap().as_primitive::<UInt64Type>().values()
}

fn items_of(rows: &RecordBatch) -> &[u32] {
    rows.column_by_name("item").unwrap().as_primitive::<UInt32Type>().values()
}

/// The weight of each item in a part of a stream.
fn weights_of(stream: &[(u32, u64)]) -> BTreeMap<u32, u64> {
    let mut weights = BTreeMap::new();
    for &(item, weight) in stream {
        *weights.entry(item).or_default() += weight;
    }
    weights
}

/// Checks the rows of a window: bounds of the true weights, and every item above N / k.
fn check_window(rows: &RecordBatch, stream: &[(u32, u64)], counters: u64) {
    let mut truth = weights_of(stream);
    let bound = truth.values().sum::<u64>() / counters;
    let (counts, errors) = (numbers(rows, "count"), numbers(rows, "error"));
    for ((item, &count), &error) in items_of(rows).iter().zip(counts).zip(errors) {
        let truth = truth.remove(item).unwrap_or(0);
        assert!(count - error <= truth && truth <= count && error <= bound, "{item}: {truth}");
    }
    assert!(truth.values().all(|&count| count <= bound), "missed, above {bound}: {truth:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn windows_of_items_do_not_depend_on_the_number_of_workers(
        stream in prop::collection::vec((0_u32..60, 0_u64..4), 1..1500),
        sizes in prop::collection::vec(1_usize..200, 1..6),
        (pane, panes) in (1_usize..200, 1_usize..5),
        counters in prop::sample::select(vec![5_usize, 100]),
    ) {
        let window = Window::items((pane * panes) as u64).slide(pane as f64);
        let spec = || FrequentItems::new().counters(counters).weight("weight").window(window.clone());
        let batches = batches(&stream, &sizes);
        let spans = |rows: &[RecordBatch]| -> Vec<(u64, u64)> {
            let span = |rows: &RecordBatch| {
                (numbers(rows, "window_start")[0], numbers(rows, "window_end")[0])
            };
            rows.iter().map(span).collect()
        };
        let one = emitted(spec(), batches.clone(), 1);
        for workers in [2, 3, 8] {
            let several = emitted(spec(), batches.clone(), workers);
            prop_assert_eq!(spans(&several), spans(&one));
            for rows in &several {
                let end = numbers(rows, "window_end")[0].min(stream.len() as u64);
                let begin = numbers(rows, "window_start")[0];
                let range = usize::try_from(begin).unwrap()..usize::try_from(end).unwrap();
                check_window(rows, &stream[range], counters as u64);
            }
            if counters > 60 {
                prop_assert_eq!(&several, &one, "all counts are exact");
            }
        }
    }

    #[test]
    fn faded_counts_of_workers_are_within_their_bounds(
        stream in prop::collection::vec((0_u32..60, 0_u64..4), 1..3000),
        sizes in prop::collection::vec(1_usize..200, 1..6),
        half_life in 1_u64..400,
        counters in prop::sample::select(vec![20_usize, 100]),
    ) {
        let spec = || {
            let decay = Decay::items(half_life);
            FrequentItems::new().counters(counters).weight("weight").decay(decay)
        };
        // The curve of the documentation: 64 steps of a half-life.
        let step = |position: usize| position as u64 * 64 / half_life;
        let part = |step: u64| ((step % 64) as f64 / 64.0 + 16.0).exp2().round();
        // A weight beside that of the newest item, so that no power of two exceeds the floats.
        let now = step(stream.len() - 1);
        let weight = |step: u64| {
            let halvings = (now / 64 - step / 64) as f64;
            part(step) / part(now) * (-halvings).exp2()
        };
        let mut truth: BTreeMap<u32, f64> = BTreeMap::new();
        for (position, &(item, own)) in stream.iter().enumerate() {
            *truth.entry(item).or_default() += own as f64 * weight(step(position));
        }
        let observed: f64 = truth.values().sum();
        let bound = observed / counters as f64 + 2.0;
        for workers in [1, 2, 3, 8] {
            let rows = emitted(spec(), batches(&stream, &sizes), workers);
            let mut missed = truth.clone();
            for rows in &rows {
                let (counts, errors) = (numbers(rows, "count"), numbers(rows, "error"));
                for ((item, &count), &error) in items_of(rows).iter().zip(counts).zip(errors) {
                    let truth = missed.remove(item).unwrap_or(0.0);
                    let (least, most) = ((count - error) as f64, count as f64);
                    let slack = 1e-6 * truth + 1e-6;
                    prop_assert!(least <= truth + slack && truth <= most + slack, "{item}: {truth}");
                    prop_assert!(error as f64 <= bound + slack, "{error} of {bound}, {workers} workers");
                }
            }
            prop_assert!(missed.values().all(|&count| count <= bound + 1e-6), "{missed:?}");
        }
    }
}

#[test]
fn a_query_of_a_window_sees_one_position_of_the_stream() {
    // Each item comes once in 7, so the counts of a window of one position differ by at most 1.
    let stream: Vec<(u32, u64)> = (0..400_000).map(|n| (n % 7, 1)).collect();
    let window = Window::items(3_000).slide(1_000.0);
    for workers in [2, 3] {
        let mut graph = Graph::new();
        let batches = batches(&stream, &[97, 301, 5]);
        let items = graph.add("items", Memory::new(batches[0].schema(), batches));
        let top = graph.add_after(items, "top", FrequentItems::new().window(window.clone()).n(7));
        graph.workers(top, workers);
        let (sink, rows) = Collect::new();
        graph.add_after(top, "rows", sink);
        let asked = watched(move || {
            let mut running = graph.build().unwrap().start(RunOptions::new()).unwrap();
            let mut asked = 0;
            while !running.wait(Duration::from_micros(100)) {
                let Ok(rows) = running.query("top", &Request::new("top")) else { continue };
                let counts = numbers(&rows, "count");
                asked += usize::from(!counts.is_empty());
                assert!(counts.iter().sum::<u64>() <= 3_000, "{counts:?}");
                if counts.len() == 7 {
                    assert!(counts[0] - counts[6] <= 1, "{counts:?} of {workers} workers");
                }
                assert!(numbers(&rows, "error").iter().all(|&error| error == 0));
            }
            running.join().unwrap();
            asked
        });
        assert!(asked > 0, "no query came in time");
        // Windows of 1000, 2000, and then 3000 items, one after each 1000.
        assert_eq!(rows.rows(), 400 * 7);
    }
}
