//! End-to-end tests of the facade: whole pipelines, against oracles that share no code with them.
//!
//! Tests of the binary are in `tests/cli`.
#![expect(clippy::unwrap_used, reason = "a test that fails says where")]

mod examples;
mod expressions;
mod frequent_items;
mod memory;
mod pipelines;
mod queries;
mod set_similarity_join;
mod set_streams;
mod snapshots;
mod soak;
mod support;
mod tables;
mod unions;
mod windows;
