//! Peers in processes of their own, over the same items: databases with an approximate top-k, and
//! a library for C++.

use std::cmp::Reverse;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde::Deserialize;
use tempfile::TempDir;

use super::super::stream::{Answer, Estimate, Stream};
use super::super::table::Cell;
use crate::runner::python::Python;
use crate::runner::{PythonPeers, cpp};

/// Source of the program that measures DataSketches.
const CPP_SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/cpp/frequent_items.cpp");

/// Output of a process for one peer.
#[derive(Debug, Deserialize)]
struct Measured {
    name: String,
    seconds: Vec<f64>,
    /// Items and counts; no count if the peer only names items.
    rows: Vec<(u32, Option<u64>)>,
}

/// Peers that are installed, and their files.
pub(crate) struct Processes {
    python: Option<Python>,
    /// Program with the library for C++.
    cpp: Option<PathBuf>,
    /// Folder of that program.
    _folder: TempDir,
}

impl Processes {
    /// Prepares the Python packages, and compiles the library for C++ in the folder `datasketches`.
    /// Peers that fail are named and left out.
    ///
    /// # Errors
    /// If there is no folder for temporary files.
    pub(crate) fn prepare(python: PythonPeers, datasketches: Option<&Path>) -> io::Result<Self> {
        let folder = tempfile::tempdir()?;
        let report = |error: &io::Error| println!("left out: {error}\n");
        let python = python.prepare("frequent_items").inspect_err(report).ok();
        let cpp = datasketches
            .and_then(|library| compile(library, folder.path()).inspect_err(report).ok());
        Ok(Self { python: python.flatten(), cpp, _folder: folder })
    }

    /// Measures all peers on this stream, in rounds after one to warm up.
    ///
    /// # Errors
    /// If a process fails.
    pub(crate) fn measure(
        &self,
        stream: &Stream,
        rounds: usize,
    ) -> io::Result<Vec<(String, Cell)>> {
        let Self { python, cpp, .. } = self;
        if python.is_none() && cpp.is_none() {
            return Ok(Vec::new());
        }
        let path = stream.file();
        let mut measured: Vec<Measured> = Vec::new();
        if let Some(python) = python {
            measured.extend(python.measure::<Vec<Measured>>(&[
                ("--items", &[path.display().to_string()]),
                ("--counters", &[stream.counters.to_string()]),
                ("--rounds", &[rounds.to_string()]),
            ])?);
        }
        if let Some(cpp) = cpp {
            // Three quarters of the map are usable.
            let log_size = (stream.counters * 4 / 3).next_power_of_two().ilog2();
            let mut command = Command::new(cpp);
            command.arg(path).arg(log_size.to_string()).arg(rounds.to_string());
            let output = cpp::successful(command.output()?)?;
            measured.push(serde_json::from_slice(&output.stdout)?);
        }
        Ok(measured.into_iter().map(|peer| peer.into_cell(stream)).collect())
    }
}

/// Compiles the program for the sources of DataSketches in `library`, by `$CXX` or `c++`.
fn compile(library: &Path, folder: &Path) -> io::Result<PathBuf> {
    let program = folder.join("datasketches");
    let compiler = cpp::compiler("CXX", "c++");
    let mut arguments: Vec<OsString> =
        ["-O3", "-march=native", "-std=c++17"].map(OsString::from).to_vec();
    for part in ["fi", "common"] {
        arguments.extend(["-I".into(), library.join(part).join("include").into()]);
    }
    arguments.push(CPP_SOURCE.into());
    cpp::compile(&compiler, &program, &arguments)?;
    let version = cpp::version(&compiler)?;
    println!("DataSketches C++ of {}: {version}, -O3 -march=native\n", library.display());
    Ok(program)
}

impl Measured {
    fn into_cell(self, stream: &Stream) -> (String, Cell) {
        let estimate = |(item, count)| Estimate { item, count, error: None };
        let mut estimates: Vec<Estimate> = self.rows.into_iter().map(estimate).collect();
        estimates.sort_by_key(|estimate| Reverse(estimate.count));
        let times = self.seconds.into_iter().map(Duration::from_secs_f64).collect();
        let answer = Answer { estimates, ..Answer::default() };
        let cell = Cell::of_median(&self.name, stream, times, &answer);
        (self.name, cell)
    }
}
