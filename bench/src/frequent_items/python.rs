//! Databases that have their own approximate top-k, through their Python packages: a script with an
//! environment of its own measures them over the same items.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde::Deserialize;

use super::stream::{Answer, Estimate, Stream};
use super::table::Cell;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/python_peers.py");

/// The script, ready to run.
pub(crate) struct Python {
    environment: PathBuf,
    rounds: usize,
}

/// What the script says of one peer.
#[derive(Debug, Deserialize)]
struct Measured {
    name: String,
    seconds: Vec<f64>,
    /// Item and count; no count if the peer only names the item.
    rows: Vec<(u32, Option<u64>)>,
}

impl Python {
    /// Makes the environment with its packages below the folder that cargo builds into.
    ///
    /// # Errors
    /// What Python or pip says, if they are missing or find no network.
    pub(crate) fn prepare(rounds: usize) -> io::Result<Self> {
        let program = std::env::current_exe()?;
        let target = program.ancestors().nth(2).unwrap_or(Path::new("target"));
        let environment = target.join("python-peers");
        let python = Self { environment, rounds };
        let versions = python.run(&["--prepare".to_owned()])?;
        println!("Python peers: {}\n", versions.trim());
        Ok(python)
    }

    /// Measures all of its peers on this stream.
    ///
    /// # Errors
    /// If the script fails.
    pub(crate) fn measure(&self, stream: &Stream) -> io::Result<Vec<(String, Cell)>> {
        let path = self.environment.join("items.u32le");
        let mut file = io::BufWriter::new(fs::File::create(&path)?);
        for items in stream.items().chunks(1 << 16) {
            let bytes: Vec<u8> = items.iter().flat_map(|item| item.to_le_bytes()).collect();
            file.write_all(&bytes)?;
        }
        file.flush()?;
        let options = [
            ("--items", path.display().to_string()),
            ("--counters", stream.counters.to_string()),
            ("--rounds", self.rounds.to_string()),
        ];
        let options: Vec<String> =
            options.into_iter().flat_map(|(name, value)| [name.to_owned(), value]).collect();
        let output = self.run(&options);
        fs::remove_file(&path)?;
        let measured: Vec<Measured> = serde_json::from_str(&output?)?;
        Ok(measured.into_iter().map(|peer| peer.into_cell(stream)).collect())
    }

    /// Its standard output; its standard error, if it fails.
    fn run(&self, options: &[String]) -> io::Result<String> {
        let mut command = Command::new("python3");
        command.arg(SCRIPT).arg("--environment").arg(&self.environment).args(options);
        let output = command.stdin(Stdio::null()).output()?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        Err(io::Error::other(String::from_utf8_lossy(&output.stderr).trim().to_owned()))
    }
}

impl Measured {
    fn into_cell(self, stream: &Stream) -> (String, Cell) {
        let estimate = |(item, count)| Estimate { item, count, error: None };
        let estimates = self.rows.into_iter().map(estimate).collect();
        let times = self.seconds.into_iter().map(Duration::from_secs_f64).collect();
        let answer = Answer { estimates, ..Answer::default() };
        let cell = Cell::of(&self.name, stream, times, &answer);
        (self.name, cell)
    }
}
