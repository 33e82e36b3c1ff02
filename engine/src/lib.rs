//! The dataflow runtime of Trommel, which moves batches between operators and knows no operator.
//!
//! ```text
//! JSON ── config ──┐
//!                  ├──► graph ──► placement ──► runtime: one thread a group ──► metrics
//! Rust ── graph ───┘      │                        ▲        ▲
//!                 operator (traits)            channel    query
//! ```
//!
//! | module | contents |
//! |---|---|
//! | [`batch`] | the payload of edges: record batches between operators, chunks inside one |
//! | [`operator`] | the traits of sources and operators, and how they enter a graph |
//! | [`graph`] | a pipeline, described and then checked |
//! | [`placement`] | parts that share a thread, and its core |
//! | [`channel`] | bounded edges between threads, and the doorbell to wait on |
//! | [`runtime`] | the threads: start, stage loop, queries, stop, first cause of a failure |
//! | [`query`] | questions to a running operator |
//! | [`memory`] | the budget of bytes that the stages of a pipeline share |
//! | [`metrics`] | the numbers of every stage |
//! | [`report`] | the same as JSON |
//! | [`config`] | pipelines in JSON, and every mistake in them |
//! | [`registry`] | the operators that a configuration may name |
//! | [`error`] | errors of building and running |
//!
//! The engine contains no algorithm and no SIMD, and threads are made in [`runtime`] only.
#![forbid(unsafe_code)]

pub mod batch;
pub mod channel;
pub mod config;
pub mod error;
pub mod graph;
pub mod memory;
pub mod metrics;
pub mod operator;
pub mod placement;
pub mod query;
pub mod registry;
pub mod report;
pub mod runtime;
pub mod suggest;
mod sync;
