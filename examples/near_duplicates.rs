//! Near-duplicates among the paragraphs of a folder: all pairs that share 80 % of their words.
//!
//! ```sh
//! cargo run --example near_duplicates -- 'docs/**/*.md'
//! ```

use std::error::Error;

use trommel::prelude::*;

fn main() -> Result<(), Box<dyn Error>> {
    let pattern = std::env::args().nth(1).unwrap_or_else(|| "kernels/cuda/*.cu*".to_owned());
    let mut graph = Graph::new();
    let paragraphs = graph.add("paragraphs", Read::new([pattern], ReadFormat::Paragraphs));
    let words = Tokenize::words().column("text").into_sets().carry(["path", "line_number"]);
    let sets = graph.add_after(paragraphs, "words", words);
    // Small paragraphs, such as headings, are alike by accident.
    let join = SetSimilarityJoin::new("4/5".parse()?).size_min(8).carry(["path", "line_number"]);
    let pairs = graph.add_after(sets, "similar", join);
    let columns =
        ["similarity", "left_path", "left_line_number", "right_path", "right_line_number"];
    graph.add_after(pairs, "print", Write::new("-", WriteFormat::Table).columns(columns));
    graph.build()?.run(RunOptions::new())?;
    Ok(())
}
