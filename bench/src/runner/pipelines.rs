//! Parts of the pipelines that are measured.

use std::sync::Arc;
use std::time::Duration;

use arrow_array::builder::{ListBuilder, UInt32Builder};
use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field};
use trommel::metrics::{Metrics, StageMetrics};
use trommel::{Collected, Graph, Memory, RunOptions};

use super::turns::timed;

/// Builds a pipeline, and runs it to its end within the clock.
///
/// # Panics
/// If the graph is not whole, or a stage fails.
pub(crate) fn run(graph: Graph) -> (Duration, Metrics) {
    let topology = graph.build().expect("the graph is whole");
    let (time, metrics) = timed(|| topology.run(RunOptions::new()));
    (time, metrics.expect("no stage fails"))
}

/// A source of batches in memory, at least one.
pub(crate) fn memory(batches: Vec<RecordBatch>) -> Memory {
    Memory::new(batches[0].schema(), batches)
}

/// The number that a stage has counted, or 0 if there is no such stage.
pub(crate) fn counter(metrics: &Metrics, stage: &str, name: &str) -> u64 {
    metrics.stage(stage).map_or(0, |stage| stage.counter(name))
}

/// Rows that a stage has sent, or 0 if there is no such stage.
pub(crate) fn rows_of(metrics: &Metrics, stage: &str) -> u64 {
    metrics.stage(stage).map_or(0, StageMetrics::items_out)
}

/// The number in the only row of a stage that counts; 0 without a row.
pub(crate) fn count(rows: &Collected) -> u64 {
    let count = |rows: &RecordBatch| rows.column(0).as_primitive::<UInt64Type>().value(0);
    rows.take().first().map_or(0, count)
}

/// A column of sets of numbers.
pub(crate) fn sets<'a>(sets: impl IntoIterator<Item = &'a [u32]>) -> ArrayRef {
    let item = Arc::new(Field::new_list_field(DataType::UInt32, false));
    let mut lists = ListBuilder::new(UInt32Builder::new()).with_field(item);
    for set in sets {
        lists.values().append_slice(set);
        lists.append(true);
    }
    Arc::new(lists.finish())
}

/// A batch with the column `set`.
pub(crate) fn batch_of_sets<'a>(of: impl IntoIterator<Item = &'a [u32]>) -> RecordBatch {
    let columns = [("set", sets(of), false)];
    RecordBatch::try_from_iter_with_nullable(columns).expect("one column")
}

/// The counts in the rows of `frequent_items`.
pub(crate) fn column_of_counts(rows: &Collected) -> Vec<u64> {
    let counts = |rows: &RecordBatch| {
        let counts = rows.column_by_name("count").expect("frequent items have counts");
        counts.as_primitive::<UInt64Type>().values().to_vec()
    };
    rows.take().iter().flat_map(counts).collect()
}
