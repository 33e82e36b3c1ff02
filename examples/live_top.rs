//! The most frequent items of a stream, asked from another thread while the stream runs.
#![expect(clippy::print_stdout, reason = "an example shows what it found")]

use std::error::Error;
use std::thread;
use std::time::Duration;

use trommel::QueryError;
use trommel::arrow::array::cast::AsArray;
use trommel::arrow::array::types::{UInt32Type, UInt64Type};
use trommel::prelude::*;

fn main() -> Result<(), Box<dyn Error>> {
    let mut graph = Graph::new();
    let items = graph.add("items", Generate::zipf(1_000_000, 1.1).items(20_000_000));
    let top = graph.add_after(items, "top", FrequentItems::new().counters(1_000).n(5));
    // The rows at the end of the stream are of no interest here.
    graph.add_after(top, "end", Discard::new());
    let running = graph.build()?.start(RunOptions::new())?;

    let queries = running.queries();
    let asking = thread::Builder::new().spawn(move || -> Result<u32, QueryError> {
        let mut answers = 0;
        loop {
            // An answer is exact between two batches, and does not hold up the stream.
            let rows = match queries.query("top", &Request::new("top").with("n", 1)) {
                Ok(rows) => rows,
                Err(QueryError::Finished { .. }) => return Ok(answers),
                Err(error) => return Err(error),
            };
            answers += 1;
            if let Some(item) = rows["item"].as_primitive::<UInt32Type>().iter().next().flatten() {
                let count = rows["count"].as_primitive::<UInt64Type>().value(0);
                println!("answer {answers}: item {item}, at most {count} times so far");
            }
            thread::park_timeout(Duration::from_millis(5));
        }
    })?;
    let metrics = running.join()?;
    let answers = asking.join().expect("the thread does not panic")?;
    println!(
        "{answers} answers; {} items",
        metrics.stage("top").expect("a stage of the pipeline").items_in()
    );
    Ok(())
}
