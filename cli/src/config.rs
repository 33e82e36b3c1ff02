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
    is_stdin: bool,
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
        Ok(Self { name: name.to_owned(), text, is_stdin: file == STDIN })
    }

    /// Makes the pipeline to run it. Standard input cannot hold both the pipeline and its data.
    pub(crate) fn load_to_run(&self, overrides: &[Override]) -> Result<Pipeline, Failure> {
        let pipeline = self.load(overrides)?;
        let mut stages = pipeline.topology.stages().iter();
        match stages.find(|stage| self.is_stdin && stage.reads_stdin) {
            None => Ok(pipeline),
            Some(stage) => Err(Failure::usage(format!(
                "stage `{}` reads standard input, where the pipeline came from; put the pipeline into a file",
                stage.id
            ))),
        }
    }

    /// Makes the pipeline, checked and bound to its inputs.
    pub(crate) fn load(&self, overrides: &[Override]) -> Result<Pipeline, ConfigErrors> {
        trommel::load(&self.text, &self.name, &trommel::registry(), overrides)
    }
}
