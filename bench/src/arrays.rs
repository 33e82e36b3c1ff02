//! The Rust side of `python/bench/throughput.py`: a join of two columns of sets and a count of an
//! array, which are in memory as the columns of a Python program are. The clock covers the whole
//! pipeline, from its configuration to its last row.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use arrow_array::{ArrayRef, ListArray, RecordBatch, UInt32Array};
use arrow_buffer::OffsetBuffer;
use arrow_schema::{DataType, Field, Schema};
use serde_json::json;
use trommel::sets::SetReader;
use trommel::{Collect, Memory, Supplied, load_supplied, registry};

use crate::runner::Runs;
use crate::runner::turns::{Measured, Run, Turns};

/// Rows of a batch, as the Python package cuts them.
const SET_ROWS: usize = 8_192;
const ITEM_ROWS: usize = 65_536;

/// Options of `arrays`.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Arguments {
    /// Folder with the files of `u32`: `items`, and `offsets` and `tokens` of `left` and `right`.
    folder: PathBuf,
    /// The fastest run is printed.
    #[command(flatten)]
    runs: Runs,
}

/// Prints the seconds and the answers of both tasks as JSON.
///
/// # Errors
/// If a file is missing, or a pipeline fails.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Box<dyn std::error::Error>> {
    let folder = &arguments.folder;
    let (left, right) = (sets(folder, "left")?, sets(folder, "right")?);
    let items: ArrayRef = Arc::new(numbers(&folder.join("items"))?);
    let item = Arc::new(Schema::new(vec![Field::new("item", DataType::UInt32, true)]));
    let items = RecordBatch::try_new(item, vec![items])?;

    let join = json!({ "stages": [
        { "id": "left", "operator": "memory" },
        { "id": "right", "operator": "memory" },
        { "id": "join", "operator": "set_similarity_join", "inputs": ["left", "right"],
          "with": { "threshold": "4/5" } },
        { "id": "rows", "operator": "collect", "inputs": ["join"] },
    ] });
    let count = json!({ "stages": [
        { "id": "items", "operator": "memory" },
        { "id": "top", "operator": "frequent_items", "inputs": ["items"],
          "with": { "counters": 1000, "n": 1, "parallel": "off", "seed": 1 } },
        { "id": "rows", "operator": "collect", "inputs": ["top"] },
    ] });
    let inputs = [("left", &left, SET_ROWS), ("right", &right, SET_ROWS)];
    let mut turns = Turns::<(), u64>::new(arguments.runs.or(3));
    turns.add("join", || {
        let (time, rows) = measured(&join, &inputs).expect("the pipeline is right");
        let pairs: usize = rows.iter().map(RecordBatch::num_rows).sum();
        Run { time, answer: (), rest: pairs as u64 }
    });
    turns.add("count", || {
        let inputs = [("items", &items, ITEM_ROWS)];
        let (time, rows) = measured(&count, &inputs).expect("the pipeline is right");
        let largest = rows[0].column(2).as_primitive::<UInt64Type>().value(0);
        Run { time, answer: (), rest: largest }
    });
    let seconds = |engine: &Measured<u64>| engine.fastest().as_secs_f64();
    let measured = turns.run();
    let (join, count) = (&measured[0], &measured[1]);
    let said = json!({
        "join": seconds(join), "pairs": join.rest(), "count": seconds(count), "largest": count.rest()
    });
    println!("{said}");
    Ok(())
}

/// Runs a pipeline over batches of some rows each; its time, and its rows.
fn measured(
    config: &serde_json::Value,
    inputs: &[(&str, &RecordBatch, usize)],
) -> Result<(Duration, Vec<RecordBatch>), Box<dyn std::error::Error>> {
    let begin = Instant::now();
    let mut supplied = Supplied::new();
    for &(id, batch, rows) in inputs {
        let starts = (0..batch.num_rows()).step_by(rows);
        let parts = starts.map(|start| batch.slice(start, rows.min(batch.num_rows() - start)));
        let parts = parts.collect::<Vec<_>>();
        supplied = supplied.stage(id, Memory::new(batch.schema(), parts));
    }
    let (sink, kept) = Collect::new();
    let supplied = supplied.stage("rows", sink);
    let pipeline = load_supplied(&config.to_string(), "arrays", &registry(), &[], supplied)?;
    pipeline.start()?.join()?;
    Ok((begin.elapsed(), kept.take()))
}

/// The sets of the files `{name}.offsets` and `{name}.tokens`.
fn sets(folder: &Path, name: &str) -> Result<RecordBatch, Box<dyn std::error::Error>> {
    let ends = numbers(&folder.join(format!("{name}.offsets")))?;
    let lengths = ends.values().windows(2).map(|ends| (ends[1] - ends[0]) as usize);
    let tokens = numbers(&folder.join(format!("{name}.tokens")))?;
    let item = Arc::new(Field::new_list_field(DataType::UInt32, true));
    let offsets = OffsetBuffer::from_lengths(lengths);
    let lists = ListArray::try_new(item, offsets, Arc::new(tokens), None)?;
    Ok(SetReader::new().read(0, &(Arc::new(lists) as ArrayRef))?)
}

fn numbers(path: &Path) -> io::Result<UInt32Array> {
    let bytes = fs::read(path)?;
    let numbers = bytes.as_chunks().0.iter().map(|&bytes| u32::from_le_bytes(bytes));
    Ok(UInt32Array::from_iter_values(numbers))
}
