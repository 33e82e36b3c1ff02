//! Pipelines written in JSON.
//!
//! ```text
//! text ── document ──► tree with places ── check ──► fits the schema ── raw ──► structs ── resolve ──► Topology
//! ```
//!
//! Every step reports all that it finds before the next one begins; each error says file, line,
//! column, JSON path, what stands there and what is allowed. The schema is generated from the
//! structs (see [`schema`]).

mod check;
mod document;
mod error;
mod overrides;
mod raw;
mod resolve;
mod suggest;
#[cfg(test)]
mod tests;

pub use error::{ConfigError, ConfigErrors};
pub use overrides::{Override, OverrideError};
pub use raw::schema;

use crate::graph::Topology;
use crate::registry::Registry;
use crate::runtime::RunOptions;

/// A pipeline that was read from JSON: checked, bound, ready to start.
#[derive(Debug)]
#[non_exhaustive]
pub struct Pipeline {
    /// Its name; the file's if it has none.
    pub name: String,
    /// Its stages.
    pub topology: Topology,
    /// How it wants to be run.
    pub options: RunOptions,
}

impl Pipeline {
    /// Starts the pipeline with the options it was configured with.
    ///
    /// # Errors
    /// As [`Topology::start`].
    pub fn start(self) -> Result<crate::runtime::Running, crate::error::RunError> {
        self.topology.start(self.options)
    }
}

/// Reads a pipeline from JSON text. `file` is what errors call the text; `overrides` replace values
/// of it.
///
/// # Errors
/// Everything that is wrong with the text, as far as one mistake does not hide another.
pub fn load(
    text: &str,
    file: &str,
    registry: &Registry,
    overrides: &[Override],
) -> Result<Pipeline, ConfigErrors> {
    let source = error::SourceText::new(text, file, overrides);
    resolve::load(&source, registry).map_err(|mistakes| source.errors(mistakes))
}
