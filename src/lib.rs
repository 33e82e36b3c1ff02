//! Trommel: streaming dataflow operators that find frequent items and similar sets.
//!
//! A pipeline is a graph of stages. It runs on threads that are joined by bounded channels;
//! batches are Arrow record batches; operators answer queries while the stream runs. There are
//! three entry points, and a way to add operators.
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
//! **Build a graph** and query it while it runs:
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
//!     if let Some(latest) = so_far.latest()
//!         && let Ok(rows) = latest.answer()
//!     {
//!         println!("{} items, {:?} ago", rows.num_rows(), latest.age());
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
//! **Write an operator**: plain state with methods, which the engine calls once a batch. To use
//! it in JSON, implement [`registry::Configured`] too and register it.
//!
//! ```
//! use std::ops::RangeInclusive;
//!
//! use arrow_schema::SchemaRef;
//! use trommel::batch::Payload;
//! use trommel::error::BindError;
//! use trommel::operator::{
//!     BindContext, Flow, Fragment, Load, Operator, OperatorError, OperatorSpec, Output,
//! };
//! use trommel::{Collect, Generate, Graph, RunOptions};
//!
//! /// Lets the first rows of every batch pass.
//! struct Head(usize);
//!
//! impl Operator for Head {
//!     fn process(
//!         &mut self,
//!         _port: usize,
//!         input: Payload,
//!         out: &mut Output,
//!     ) -> Result<Flow, OperatorError> {
//!         let records = input.into_records();
//!         out.send(records.slice(0, self.0.min(records.num_rows())));
//!         Ok(Flow::NeedInput)
//!     }
//! }
//!
//! impl OperatorSpec for Head {
//!     fn operator(&self) -> &'static str {
//!         "head"
//!     }
//!
//!     fn input_ports(&self) -> RangeInclusive<usize> {
//!         1..=1
//!     }
//!
//!     fn bind(
//!         self: Box<Self>,
//!         inputs: &[SchemaRef],
//!         _: BindContext,
//!     ) -> Result<Fragment, BindError> {
//!         Ok(Fragment::operator(Load::Light, *self, inputs.to_vec()))
//!     }
//! }
//!
//! let mut graph = Graph::new();
//! let items = graph.add("items", Generate::zipf(100, 1.0).items(10_000).batch(1_000));
//! let head = graph.add_after(items, "head", Head(5));
//! let (sink, rows) = Collect::new();
//! graph.add_after(head, "rows", sink);
//! graph.build()?.run(RunOptions::new())?;
//! assert_eq!(rows.rows(), 50);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

pub use trommel_engine::config::{
    ConfigError, ConfigErrors, Override, OverrideError, Pipeline, Supplied, load, load_supplied,
    schema,
};
pub use trommel_engine::graph::{Graph, Topology};
pub use trommel_engine::metrics::Metrics;
pub use trommel_engine::query::{QueryError, Request};
pub use trommel_engine::registry::Registry;
pub use trommel_engine::runtime::{Latest, QueryHandle, RunOptions, Running, Watch};
pub use trommel_engine::{
    batch, channel, error, graph, memory, metrics, operator, placement, query, registry, report,
    runtime,
};
pub use trommel_operators::*;

/// The examples of the documents, compiled with the tests.
#[cfg(doctest)]
mod documents {
    #[doc = include_str!("../README.md")]
    pub struct Readme;
    #[doc = include_str!("../docs/guide.md")]
    pub struct Guide;
    #[doc = include_str!("../docs/adding-an-operator.md")]
    pub struct AddingAnOperator;
}

/// A registry with all operators of Trommel.
///
/// # Examples
/// ```
/// let registry = trommel::registry();
/// let union = registry.entry("union").unwrap();
/// assert_eq!(union.summary(), "join several inputs of one schema into one stream");
/// ```
#[must_use]
pub fn registry() -> Registry {
    let mut registry = Registry::new();
    register_all(&mut registry);
    registry
}
