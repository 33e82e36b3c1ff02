//! Trommel finds what is frequent, what is similar and what occurs together in streams and tables,
//! while they are read, and says how exact each answer is.
//!
//! | | operator |
//! |---|---|
//! | the most frequent items, with a bound on every count: of a stream, of windows, fading | [`FrequentItems`] |
//! | all pairs of similar sets, such as near-duplicates of texts, exactly | [`SetSimilarityJoin`] |
//! | all pairs and triples of items that occur together often | [`FrequentPairs`] |
//! | the documents that have all terms of a query, while documents arrive | [`ConjunctiveQuery`] |
//! | all pairs of vectors within a distance, exactly | [`EpsilonJoin`] |
//!
//! They read from [`Read`], [`Generate`], [`Memory`] and [`Feed`] (a source that a program fills),
//! over [`Filter`], [`Select`], [`Tokenize`], [`Map`], [`Union`] and [`HeavyFilter`], and write to
//! [`Write`], [`Collect`], [`ForEach`] and [`Discard`]. A pipeline is a graph of such stages. It
//! runs on threads that are joined by bounded channels; between stages travel Arrow record batches
//! (version 60, re-exported as [`arrow`]); operators answer queries while the stream runs, and use
//! a GPU where one pays. The cargo feature `cuda-images`, on by default, has the kernels for GPUs.
//!
//! **Count without a pipeline.** The data structures are plain types:
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
//! **Run a pipeline, and ask it while it runs:**
//!
//! ```
//! use trommel::prelude::*;
//!
//! let mut graph = Graph::new();
//! let items = graph.add("items", Generate::zipf(10_000, 1.2).items(500_000));
//! let top = graph.add_after(items, "top", FrequentItems::new().counters(500).n(3));
//! let (sink, rows) = Collect::new();
//! graph.add_after(top, "rows", sink);
//!
//! let running = graph.build()?.start(RunOptions::new())?;
//! // An error if the stream has ended before.
//! if let Ok(so_far) = running.query("top", &Request::new("top").with("n", 5)) {
//!     println!("{} items so far", so_far.num_rows());
//! }
//! let metrics = running.join()?;
//! assert_eq!(metrics.stage("top").unwrap().items_in(), 500_000);
//! assert_eq!(rows.rows(), 3);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The folder `examples` of the repository has a program for each thing that people come for; among
//! them an own source, an own operator and an own sink, and a pipeline from JSON
//! ([`load`]). Signals are the program's: [`RunHandle::stop`](runtime::RunHandle::stop), from any
//! thread, lets everything that was read pass through.
//!
//! The types at the root and in [`prelude`] are those that programs name. The modules below have
//! the rest: the [operators' contract](operator), [graphs](graph), [runs](runtime), and the data
//! structures of each operator. Names under [`unstable`] change without notice.
#![forbid(unsafe_code)]

pub use trommel_engine::config::{
    ConfigError, ConfigErrors, Override, OverrideError, Pipeline, Supplied, load, load_supplied,
    schema,
};
pub use trommel_engine::graph::{Graph, Topology};
pub use trommel_engine::metrics::Metrics;
pub use trommel_engine::operator::{Operator, OperatorError, OperatorSpec, Source};
pub use trommel_engine::query::{QueryError, Request};
pub use trommel_engine::registry::{Configured, Registry};
pub use trommel_engine::runtime::{
    Latest, QueryHandle, RunHandle, RunOptions, RunPhase, Running, Watch,
};
pub use trommel_engine::{
    batch, channel, error, graph, memory, metrics, operator, placement, query, registry, report,
    runtime,
};
pub use trommel_operators::wave::Device;
pub use trommel_operators::{
    Aggregate, Algorithm, Clusters, Collect, Collected, ConjunctiveQuery, Decay, DictionaryFull,
    Discard, Duplicates, Emit, EpsilonAlgorithm, EpsilonJoin, EpsilonOutput, Feed, FeedError,
    Feeder, Filter, ForEach, FrequentItems, FrequentPairs, Generate, GenerateKind, HeavyFilter,
    Invalid, Isa, JoinAlgorithm, JoinMode, JoinOutput, JoinWindow, Keep, Lookup, LookupMode, Map,
    Memory, MissingState, Names, NpyError, OnError, Parallel, Read, ReadError, ReadFormat,
    ReadFrom, Rotate, RotateCompression, SchemaMismatch, Select, SetSimilarityJoin, Share,
    ShareError, Similarity, TableError, Threshold, Tokenize, TokenizeBy, TokenizeError,
    TokenizeInto, Union, ValueError, VectorDistribution, VectorWindow, VerifyMode, Window, Write,
    WriteError, WriteFormat, Zipf, ZipfError,
};
pub use trommel_operators::{
    conjunctive_query, epsilon_join, expressions, files, frequent_items, frequent_pairs, items,
    register_all, set_similarity_join, sets, summary,
};

/// Names that most programs need: `use trommel::prelude::*;`.
pub mod prelude {
    pub use crate::{
        Collect, ConjunctiveQuery, Discard, EpsilonJoin, EpsilonOutput, Feed, Filter, ForEach,
        FrequentItems, FrequentPairs, Generate, Graph, HeavyFilter, JoinWindow, Map, Memory, Read,
        ReadFormat, Request, RunHandle, RunOptions, Running, Select, SetSimilarityJoin, Tokenize,
        Union, Window, Write, WriteFormat,
    };
}

/// The version of Arrow that batches are made of.
pub mod arrow {
    pub use arrow_array as array;
    pub use arrow_schema as schema;
}

/// The protocol of operators that use a GPU, and the layer below it. No promise holds here: names
/// and types change between any two versions.
pub mod unstable {
    pub use trommel_operators::{cuda, wave};
}

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
