//! Packages that find near vectors: the crate kiddo, and those of Python.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::json;
use tempfile::TempDir;

use super::data::Workload;
use crate::runner::crates::Crates;
use crate::runner::python::Python;
use crate::runner::{PythonPeers, RustPeers};

/// A measurement of a peer, or the reason why it is missing.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum Peer {
    /// Seconds, and a file of pairs.
    Joined {
        name: String,
        build: f64,
        join: f64,
        pairs: PathBuf,
    },
    Missing {
        name: String,
        missing: String,
    },
}

/// The peers that are asked for.
pub(super) struct Peers {
    crates: Option<Crates>,
    python: Option<Python>,
    folder: TempDir,
}

impl Peers {
    /// Builds what is needed.
    ///
    /// # Errors
    /// If cargo or Python fails.
    pub(super) fn prepare(crates: RustPeers, python: PythonPeers) -> io::Result<Self> {
        let crates = crates.start()?;
        let python = python.prepare("epsilon_join")?;
        Ok(Self { crates, python, folder: tempfile::tempdir()? })
    }

    /// Measures all peers on these vectors, which are in a file: arguments and pipes are too small
    /// for millions of them.
    ///
    /// # Errors
    /// If a program fails.
    pub(super) fn measure(
        &self,
        Workload { dims, epsilon, .. }: Workload,
        values: &[f32],
        rounds: usize,
    ) -> io::Result<Vec<Peer>> {
        if self.crates.is_none() && self.python.is_none() {
            return Ok(Vec::new());
        }
        let file = |name| self.folder.path().join(name);
        let (vectors, pairs) = (file("vectors.f32"), file("kiddo.pairs"));
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        fs::write(&vectors, bytes)?;
        let mut measured = Vec::new();
        if let Some(crates) = &self.crates {
            measured.extend(crates.ask::<Vec<Peer>>(&json!({
                "table": "epsilon-join", "vectors": vectors, "dims": dims, "epsilon": epsilon,
                "rounds": rounds, "pairs": pairs
            }))?);
        }
        if let Some(python) = &self.python {
            measured.extend(python.measure::<Vec<Peer>>(&[
                ("--vectors", &[vectors.display().to_string()]),
                ("--dims", &[dims.to_string()]),
                ("--epsilon", &[epsilon.to_string()]),
            ])?);
        }
        fs::remove_file(&vectors)?;
        Ok(measured)
    }
}

/// The pairs of a file, which is removed.
///
/// # Errors
/// If it cannot be read.
pub(super) fn pairs(path: &Path) -> io::Result<Vec<(u32, u32)>> {
    let bytes = fs::read(path)?;
    fs::remove_file(path)?;
    let rows = bytes.as_chunks::<4>().0.as_chunks::<2>().0;
    Ok(rows
        .iter()
        .map(|[left, right]| (u32::from_le_bytes(*left), u32::from_le_bytes(*right)))
        .collect())
}
