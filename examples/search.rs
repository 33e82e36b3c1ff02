//! The documents that have all words of a query: here the configurations that use two operators.

use std::error::Error;
use std::sync::Arc;

use trommel::arrow::array::{RecordBatch, StringArray};
use trommel::prelude::*;

fn main() -> Result<(), Box<dyn Error>> {
    let queries = StringArray::from(vec!["heavy_filter union", "epsilon_join"]);
    let queries = RecordBatch::try_from_iter([("line", Arc::new(queries) as _)])?;
    let mut graph = Graph::new();
    let files = graph.add("files", Read::new(["configs/*.json"], ReadFormat::Files));
    let documents = Tokenize::words().column("text").into_text_sets().carry(["path"]);
    let documents = graph.add_after(files, "documents", documents);
    let lines = graph.add("lines", Memory::new(queries.schema(), [queries]));
    let terms = Tokenize::words().column("line").into_text_sets().carry(["line"]);
    let queries = graph.add_after(lines, "queries", terms);
    // Queries wait until all documents are there; they can also be answered as documents arrive.
    let search = ConjunctiveQuery::new().name("path").carry(["line"]);
    let found = graph.add_after(documents, "search", search);
    graph.connect(queries, found);
    graph.add_after(
        found,
        "print",
        Write::new("-", WriteFormat::Jsonl).columns(["line", "documents"]),
    );
    graph.build()?.run(RunOptions::new())?;
    Ok(())
}
