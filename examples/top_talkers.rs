//! The busiest addresses of an access log, in one pass and bounded memory.
//!
//! ```sh
//! cargo run --example top_talkers -- access.log
//! ```

use std::error::Error;
use std::fs;

use trommel::prelude::*;

fn main() -> Result<(), Box<dyn Error>> {
    let path = match std::env::args().nth(1) {
        Some(path) => path,
        None => sample()?,
    };
    let mut graph = Graph::new();
    let lines = graph.add("lines", Read::new([path], ReadFormat::Lines));
    let addresses = graph.add_after(lines, "addresses", Tokenize::field(1).column("line"));
    // With 1,000 counters, a count is at most a thousandth of the log too high; `error` bounds it.
    let top = graph.add_after(addresses, "top", FrequentItems::new().counters(1_000).n(10));
    graph.add_after(top, "print", Write::new("-", WriteFormat::Table));
    graph.build()?.run(RunOptions::new())?;
    Ok(())
}

/// A small log, for a first try.
fn sample() -> Result<String, Box<dyn Error>> {
    let path = std::env::temp_dir().join(format!("access-{}.log", std::process::id()));
    let line = |n: u32| format!("10.0.0.{} - - \"GET /{n} HTTP/1.1\" 200 512\n", n % 97 % 11);
    fs::write(&path, (0..10_000).map(line).collect::<String>())?;
    Ok(path.to_string_lossy().into_owned())
}
