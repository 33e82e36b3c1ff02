//! DuckDB and polars, whose questions `python/scaling.py` has. The packages are those of the Python
//! that the user names; nothing is installed.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::Deserialize;
use serde_json::Value;

use super::machine::FirstCores;
use super::questions::Question;

/// The program has the script, since another machine may have the program alone.
const SCRIPT: &str = include_str!("../../python/scaling.py");

/// Peers, by the names of their packages.
pub(super) const PEERS: [&str; 2] = ["duckdb", "polars"];

/// Peers that are installed.
#[derive(Debug)]
pub(super) struct Peers {
    python: PathBuf,
    versions: HashMap<String, String>,
}

/// Output of the script.
#[derive(Debug, Deserialize)]
struct Answer {
    seconds: f64,
    rows: Value,
}

impl Peers {
    /// The packages that this Python can import; none, if there is no such Python.
    pub(super) fn find(python: &Path) -> Self {
        let output = script(python).arg("--versions").output().ok();
        let versions = output.and_then(|output| serde_json::from_slice(&output.stdout).ok());
        Self { python: python.to_owned(), versions: versions.unwrap_or_default() }
    }

    pub(super) fn has(&self, peer: usize) -> bool {
        self.versions.contains_key(PEERS[peer])
    }

    /// The versions of all peers.
    pub(super) fn versions(&self) -> String {
        let version = |peer| self.versions.get(peer).map_or("not installed", String::as_str);
        PEERS.map(|peer| format!("{peer} {}", version(peer))).join("; ")
    }

    /// Lets a peer answer a question in a process of its own. Returns the seconds after its start,
    /// and its rows.
    ///
    /// # Errors
    /// If it fails.
    pub(super) fn run(
        &self,
        peer: usize,
        question: Question,
        file: &Path,
        cores: &FirstCores,
    ) -> Result<(f64, Value), String> {
        let mut command = script(&self.python);
        command.args(["--peer", PEERS[peer]]).arg("--file").arg(file);
        command.args(["--threads", &cores.count.to_string()]);
        command.arg("--question").args(question.name_for_peers());
        let output = cores.run(|| command.output()).map_err(|error| error.to_string())?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            return Err(said.lines().last().unwrap_or("no message").to_owned());
        }
        let answer = serde_json::from_slice::<Answer>(&output.stdout);
        answer.map(|answer| (answer.seconds, answer.rows)).map_err(|error| error.to_string())
    }
}

fn script(python: &Path) -> Command {
    let mut command = Command::new(python);
    command.env("PYTHONDONTWRITEBYTECODE", "1").args(["-c", SCRIPT]).stdin(Stdio::null());
    command
}
