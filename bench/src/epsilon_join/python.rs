//! Python packages that find near vectors.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::data::Workload;
use crate::python::Python;

/// Output of the script: a measurement of a peer, or the reason why it is missing.
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

/// Creates the environment of the script.
///
/// # Errors
/// If Python fails.
pub(super) fn prepare() -> io::Result<Python> {
    Python::prepare("epsilon_join")
}

/// Measures all peers of the script on these vectors.
///
/// # Errors
/// If the script fails.
pub(super) fn measure(
    python: &Python,
    workload: Workload,
    values: &[f32],
) -> io::Result<Vec<Peer>> {
    let path = python.file("vectors.f32");
    let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    // Arguments and pipes are too small for millions of vectors.
    fs::write(&path, bytes)?;
    let measured = python.measure(&[
        ("--vectors", &[path.display().to_string()]),
        ("--dims", &[workload.dims.to_string()]),
        ("--epsilon", &[workload.epsilon.to_string()]),
    ]);
    fs::remove_file(&path)?;
    measured
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
