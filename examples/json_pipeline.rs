//! A pipeline from JSON inside a program, with the source supplied by the program.
#![expect(clippy::print_stdout, reason = "an example shows what it found")]

use std::error::Error;
use std::sync::Arc;

use trommel::arrow::array::{RecordBatch, StringArray};
use trommel::prelude::*;
use trommel::{Supplied, load_supplied, registry};

const PIPELINE: &str = r#"{
  "name": "words",
  "stages": [
    { "id": "texts", "operator": "memory" },
    { "id": "words", "operator": "tokenize", "inputs": ["texts"],
      "with": { "column": "text", "by": "words" } },
    { "id": "top", "operator": "frequent_items", "inputs": ["words"], "with": { "n": 3 } },
    { "id": "print", "operator": "write", "inputs": ["top"], "with": { "format": "table" } }
  ]
}"#;

fn main() -> Result<(), Box<dyn Error>> {
    let texts = StringArray::from(vec!["to be or not to be", "that is the question to ask"]);
    let batch = RecordBatch::try_from_iter([("text", Arc::new(texts) as _)])?;
    let source = Memory::new(batch.schema(), [batch]);
    let supplied = Supplied::new().stage("texts", source);
    // A mistake in the text is an error with its line, the allowed values and the nearest name.
    let pipeline = load_supplied(PIPELINE, "words.json", &registry(), &[], supplied)?;
    let metrics = pipeline.start()?.join()?;
    println!("{} words", metrics.stage("words").expect("a stage of the pipeline").items_out());
    Ok(())
}
