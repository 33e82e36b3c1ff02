//! Pipeline files.

use std::fs;
use std::io;

use trommel::{ConfigErrors, Override, Pipeline};

use crate::failure::Failure;

/// The name that stands for standard input.
const STDIN: &str = "-";

/// The text of a pipeline file.
pub(crate) struct ConfigText {
    name: String,
    pub(crate) text: String,
}

impl ConfigText {
    /// Reads the file, or standard input if it is `-`.
    pub(crate) fn read(file: &str) -> Result<Self, Failure> {
        let (name, text) = match file {
            STDIN => ("standard input", io::read_to_string(io::stdin())),
            file => (file, fs::read_to_string(file)),
        };
        let text = text.map_err(|error| Failure::usage(format!("cannot read {name}: {error}")))?;
        Ok(Self { name: name.to_owned(), text })
    }

    /// Makes the pipeline, checked and bound to its inputs.
    pub(crate) fn load(&self, overrides: &[Override]) -> Result<Pipeline, ConfigErrors> {
        trommel::load(&self.text, &self.name, &trommel::registry(), overrides)
    }
}
