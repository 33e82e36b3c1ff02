//! Pipelines written in JSON.
//!
//! ```text
//! text ── document ──► tree with places ── check ──► fits the schema ── raw ──► structs ── resolve ──► Topology
//! ```
//!
//! Every step reports all mistakes that it finds. The next step goes on with the stages that have
//! no mistakes and whose inputs have none; each error has file, line, column, JSON path, the value
//! and the allowed values. The schema is generated from the structs (see [`schema`]).

mod check;
mod document;
mod error;
mod overrides;
mod raw;
mod resolve;

mod supplied;
#[cfg(test)]
mod tests;

pub use error::{ConfigError, ConfigErrors};
pub use overrides::{Override, OverrideError};
pub use raw::schema;
pub use resolve::{Pipeline, load, load_supplied};
pub use supplied::Supplied;
