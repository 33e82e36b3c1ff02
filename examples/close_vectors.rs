//! All pairs of vectors within a distance, such as embeddings of texts that mean the same.

use std::error::Error;
use std::sync::Arc;

use trommel::arrow::array::types::Float32Type;
use trommel::arrow::array::{FixedSizeListArray, RecordBatch, StringArray, UInt32Array};
use trommel::prelude::*;

fn main() -> Result<(), Box<dyn Error>> {
    let names = ["tea", "coffee", "cocoa", "lorry", "truck"];
    let vectors = [[0.9, 0.1], [0.8, 0.2], [0.7, 0.2], [0.1, 0.9], [0.1, 0.8]];
    let rows = vectors.map(|vector| Some(vector.map(Some)));
    let vectors = FixedSizeListArray::from_iter_primitive::<Float32Type, _, _>(rows, 2);
    let batch = RecordBatch::try_from_iter([
        ("id", Arc::new(UInt32Array::from_iter_values(0..5)) as _),
        ("vector", Arc::new(vectors) as _),
        ("name", Arc::new(StringArray::from(names.to_vec())) as _),
    ])?;
    let mut graph = Graph::new();
    let vectors = graph.add("vectors", Memory::new(batch.schema(), [batch]));
    // A pair within 0.15 in float64 is found, and no other one.
    let close = graph.add_after(vectors, "close", EpsilonJoin::new(0.15).carry(["name"]));
    let columns = ["left_name", "right_name", "distance"];
    graph.add_after(close, "print", Write::new("-", WriteFormat::Csv).columns(columns));
    graph.build()?.run(RunOptions::new())?;
    Ok(())
}
