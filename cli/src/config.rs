//! Pipeline files.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use trommel::files::input_claims;
use trommel::operator::Claim;
use trommel::{Override, Pipeline, Topology};

use crate::failure::Failure;

/// The name that stands for standard input.
const STDIN: &str = "-";

/// Maximum bytes of a pipeline file: far more than any person or program writes.
const BYTES_MAX: u64 = 16 << 20;

/// The text of a pipeline file.
pub(crate) struct ConfigText {
    name: String,
    is_stdin: bool,
    text: String,
}

impl ConfigText {
    /// Reads the file, or standard input if it is `-`.
    pub(crate) fn read(file: &str) -> Result<Self, Failure> {
        let (name, text) = match file {
            STDIN => ("standard input", read_limited(io::stdin())),
            file => (file, File::open(file).and_then(read_limited)),
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
    pub(crate) fn load(&self, overrides: &[Override]) -> Result<Pipeline, Failure> {
        let mut pipeline = trommel::load(&self.text, &self.name, &trommel::registry(), overrides)?;
        if !self.is_stdin {
            claim(&mut pipeline.topology, input_claims(Path::new(&self.name), "FILE"))?;
        }
        Ok(pipeline)
    }
}

/// Claims files that the command itself reads or writes beside the stages.
///
/// # Errors
/// If a stage reads a file that is written, or writes a file that is read or written.
pub(crate) fn claim(
    topology: &mut Topology,
    claims: impl IntoIterator<Item = Claim>,
) -> Result<(), Failure> {
    claims.into_iter().try_for_each(|ours| topology.claim(&ours)).map_err(Failure::usage)
}

/// Reads a text of at most [`BYTES_MAX`] bytes.
fn read_limited(input: impl Read) -> io::Result<String> {
    let mut text = String::new();
    input.take(BYTES_MAX + 1).read_to_string(&mut text)?;
    if text.len() as u64 > BYTES_MAX {
        let reason = format!("it has more than {} MiB, the limit of a pipeline", BYTES_MAX >> 20);
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, reason));
    }
    Ok(text)
}
