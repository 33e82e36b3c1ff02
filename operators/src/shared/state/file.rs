//! Snapshots in files.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use trommel_engine::error::BindError;
use trommel_engine::operator::{BindContext, Claim, Ending, OperatorError};

use crate::shared::files::{Destination, FileError};
use crate::shared::parameters::refuse;
use crate::shared::state::{HEADER_BYTES, RestoreError, Stamp, declared_bytes};

/// Maximum size of a snapshot: 8 GiB.
const FILE_BYTES_MAX: u64 = 8 << 30;

/// Behaviour of a stage whose file of `restore` is not there: the parameter `missing`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum MissingState {
    /// An error.
    #[default]
    Fail,
    /// The stage begins without a state, such as on the first day of a pipeline that goes on with
    /// its own state.
    Begin,
}

impl MissingState {
    /// The file of a state; `None` if the stage begins without the file.
    pub(crate) fn present(self, file: Option<&Path>) -> Option<&Path> {
        // A file that cannot be checked is opened later, which reports the reason.
        file.filter(|file| self == Self::Fail || file.try_exists().unwrap_or(true))
    }
}

/// Refuses a stage that continues from its own state while its input begins again in each run, as a
/// followed file does: a state does not know up to which place its input was read.
pub(crate) fn check_input(
    restore: Option<&Path>,
    snapshot: Option<&Path>,
    context: &BindContext,
) -> Result<(), BindError> {
    let (true, Some(restore), Some(_)) = (context.rereads, restore, snapshot) else {
        return Ok(());
    };
    let value = format!("{:?} beside `snapshot`, of followed files", restore.display().to_string());
    let allowed = "a run reads followed files from their beginning, and would count once more what \
                   the state has; let the source begin at the end (`from`), or omit `restore` or \
                   `snapshot`";
    Err(refuse("restore", value, allowed))
}

/// Reason why a snapshot cannot be read from a file or written to a file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SnapshotFileError {
    /// Reading failed.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: String,
        /// The error of the system.
        source: io::Error,
    },
    /// The file does not begin as a snapshot does, or its length differs from the length in its
    /// header.
    #[error("{path}: {source}")]
    Invalid {
        /// The file.
        path: String,
        /// The mistake.
        source: RestoreError,
    },
    /// The file is larger than any snapshot.
    #[error("{path} has more than {FILE_BYTES_MAX} bytes, the limit of a snapshot")]
    TooLarge {
        /// The file.
        path: String,
    },
    /// Writing failed; the file keeps its content.
    #[error("the state was not saved: {0}")]
    NotSaved(#[source] FileError),
}

fn failed(path: &Path) -> impl Fn(io::Error) -> SnapshotFileError {
    move |source| SnapshotFileError::Io { path: path.display().to_string(), source }
}

/// All bytes of a file that holds a snapshot. The header is read first: a file of another kind, or
/// with another length than its header states, is not read as a whole.
pub(crate) fn read_file(path: &Path) -> Result<Vec<u8>, SnapshotFileError> {
    let bytes = read_bytes(path)?;
    // A damaged stamp is reported together with all other damage.
    if Stamp::of(&bytes).is_ok_and(|stamp| stamp.is_stopped()) {
        let state = path.display();
        tracing::warn!(%state, "the run that wrote the state was stopped before the end of its input");
    }
    Ok(bytes)
}

/// As [`read_file`], without a message about a run that was stopped.
pub(crate) fn read_bytes(path: &Path) -> Result<Vec<u8>, SnapshotFileError> {
    let name = || path.display().to_string();
    let invalid = |source| SnapshotFileError::Invalid { path: name(), source };
    let mut file = File::open(path).map_err(failed(path))?;
    let mut bytes = Vec::new();
    let mut header = (&mut file).take(HEADER_BYTES as u64);
    header.read_to_end(&mut bytes).map_err(failed(path))?;
    let expected = declared_bytes(&bytes).map_err(invalid)?;
    if expected > FILE_BYTES_MAX {
        return Err(SnapshotFileError::TooLarge { path: name() });
    }
    let found = file.metadata().map_err(failed(path))?;
    if found.is_file() && found.len() != expected {
        let found = usize::try_from(found.len()).unwrap_or(usize::MAX);
        return Err(invalid(RestoreError::Length { expected, found }));
    }
    // One further byte shows whether the file is longer than its header states.
    let rest = expected - HEADER_BYTES as u64 + 1;
    file.take(rest).read_to_end(&mut bytes).map_err(failed(path))?;
    Ok(bytes)
}

/// A file to which snapshots are written, each in place of the last snapshot.
#[derive(Debug, Clone)]
pub(crate) struct SnapshotFile {
    destination: Arc<Destination>,
    stamp: Stamp,
}

impl SnapshotFile {
    /// Checks that the file could be written, without writing the file.
    pub(crate) fn new(path: &Path) -> Result<Self, FileError> {
        let stamp = Stamp { ending: Some(Ending::Whole), ..Stamp::default() };
        Ok(Self { destination: Arc::new(Destination::file(path)?), stamp })
    }

    /// Sets the label of the state, the name of the things that were counted.
    pub(crate) fn labelled(mut self, label: &str) -> Self {
        label.clone_into(&mut self.stamp.label);
        self
    }

    /// Notes how an input ended, for the stamp of the state.
    pub(crate) fn input_ended(&mut self, ending: Ending) {
        self.stamp.ending = self.stamp.ending.max(Some(ending));
    }

    /// The stamp that the state will have.
    pub(crate) fn stamp(&self) -> &Stamp {
        &self.stamp
    }

    pub(crate) fn claim(&self) -> Option<Claim> {
        self.claim_as("snapshot")
    }

    /// As [`Self::claim`], for the parameter that names the file.
    pub(crate) fn claim_as(&self, parameter: &'static str) -> Option<Claim> {
        self.destination.claim(parameter)
    }

    /// Makes sure that the file can be written now.
    pub(crate) fn probe(&self) -> Result<(), OperatorError> {
        Ok(self.destination.probe().map_err(SnapshotFileError::NotSaved)?)
    }

    /// Writes the file as a whole: the name leads to the old bytes or to the new bytes, also after
    /// a crash.
    pub(crate) fn write(&self, mut bytes: Vec<u8>) -> Result<(), SnapshotFileError> {
        self.stamp.put_on(&mut bytes);
        if bytes.len() as u64 > FILE_BYTES_MAX {
            return Err(SnapshotFileError::TooLarge { path: "the state".to_owned() });
        }
        self.write_parts(&[&bytes])
    }

    /// As [`Self::write`], for bytes in several parts, without a limit.
    pub(crate) fn write_parts(&self, parts: &[&[u8]]) -> Result<(), SnapshotFileError> {
        let written = self.destination.replace().and_then(|mut file| {
            parts.iter().try_for_each(|bytes| file.write(bytes))?;
            file.commit()
        });
        written.map_err(SnapshotFileError::NotSaved)
    }
}
