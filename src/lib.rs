//! Trommel: streaming dataflow operators that find what is frequent, what is similar and what
//! occurs together.
//!
//! A pipeline is a graph of stages. It runs on threads that are pinned to cores and joined by
//! bounded channels; batches are Arrow record batches; operators answer queries while the stream
//! runs. There are three ways in.
//!
//! **Call a data structure directly**, without any engine:
//!
//! ```
//! use trommel::frequent_items::SpaceSaving;
//!
//! let mut summary = SpaceSaving::<u32>::new(1_000)?;
//! summary.observe(&[7, 7, 3, 7][..]);
//! let top = &summary.top(1)[0];
//! assert_eq!((top.item, top.count, top.error), (7, 3, 0));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! **Build a graph** and ask it while it runs:
//!
//! ```
//! use std::time::Duration;
//! use trommel::{Collect, FrequentItems, Generate, Graph, Request, RunOptions};
//!
//! let mut graph = Graph::new();
//! let items = graph.add("items", Generate::zipf(10_000, 1.2).items(500_000));
//! let top = graph.add_after(items, "top", FrequentItems::new().counters(500).n(3));
//! let (sink, rows) = Collect::new();
//! graph.add_after(top, "rows", sink);
//!
//! let mut running = graph.build()?.start(RunOptions::new())?;
//! let so_far = running.watch("top", Request::new("top").with("n", 5))?;
//! while !running.wait(Duration::from_millis(1)) {
//!     if let Some(latest) = so_far.latest() {
//!         println!("{} items, {:?} ago", latest.answer()?.num_rows(), latest.age());
//!     }
//! }
//! let metrics = running.join()?;
//! assert_eq!(metrics.stage("top").unwrap().items_in(), 500_000);
//! assert_eq!(rows.rows(), 3);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! **Load JSON**, as the command line does:
//!
//! ```
//! let text = r#"{ "stages": [
//!   { "id": "items", "operator": "generate", "with": { "items": 100000, "alphabet": 1000 } },
//!   { "id": "top", "operator": "frequent_items", "inputs": ["items"], "with": { "n": 3 } },
//!   { "id": "end", "operator": "discard", "inputs": ["top"] } ] }"#;
//! let pipeline = trommel::load(text, "example.json", &trommel::registry(), &[])?;
//! let metrics = pipeline.start()?.join()?;
//! assert_eq!(metrics.stage("top").unwrap().items_out(), 3);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! To write an operator of your own, implement [`operator::Operator`] and
//! [`operator::OperatorSpec`]; to use it in JSON, implement [`registry::Configured`] and register
//! it.
#![forbid(unsafe_code)]

pub use trommel_engine::config::{
    ConfigError, ConfigErrors, Override, OverrideError, Pipeline, load, schema,
};
pub use trommel_engine::graph::{Graph, Topology};
pub use trommel_engine::metrics::Metrics;
pub use trommel_engine::query::{QueryError, QueryHandle, Request};
pub use trommel_engine::registry::Registry;
pub use trommel_engine::runtime::{RunOptions, Running};
pub use trommel_engine::{
    batch, channel, error, graph, metrics, operator, placement, query, registry, runtime,
};
pub use trommel_operators::*;

/// A registry with all operators of Trommel.
#[must_use]
pub fn registry() -> Registry {
    let mut registry = Registry::new();
    register_all(&mut registry);
    registry
}
