//! What all tables share: flags, repetition by turns, printing, figures, and the programs of peers.
//!
//! A table is a file with a function that declares engines and prints rows. The smallest table is
//! `engine/mod.rs`; the README of the bench explains how to add a table.

pub(crate) mod cpp;
pub(crate) mod crates;
pub(crate) mod memory;
pub(crate) mod numbers;
pub(crate) mod paced;
pub(crate) mod pipelines;
pub(crate) mod plot;
pub(crate) mod python;
pub(crate) mod report;
pub(crate) mod turns;

use std::io;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use trommel::Isa;

use self::crates::Crates;
use self::python::Python;

/// How often each engine runs.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(crate) struct Runs {
    /// Runs of each engine, by turns; the median is shown where nothing else is said.
    #[arg(long, visible_alias = "runs", value_parser = positive)]
    pub(crate) rounds: Option<usize>,
    /// Seconds of all runs of an engine after which the engine does not run again.
    #[arg(long, default_value_t = f64::INFINITY)]
    pub(crate) seconds: f64,
}

impl Runs {
    /// The number of runs, which is `usual` if the user names none.
    pub(crate) fn rounds(self, usual: usize) -> usize {
        self.rounds.unwrap_or(usual)
    }

    /// The flags of the user, with `usual` runs if the user names no number.
    pub(crate) fn or(self, usual: usize) -> Self {
        Self { rounds: Some(self.rounds(usual)), ..self }
    }
}

/// A whole number from 1.
pub(crate) fn positive(text: &str) -> Result<usize, String> {
    text.parse().map(NonZeroUsize::get).map_err(|error| error.to_string())
}

/// Python packages in the same run.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(crate) struct PythonPeers {
    /// Measure Python packages, too; the first use downloads the packages.
    #[arg(long = "python-peers", id = "python_peers")]
    pub(crate) are_wanted: bool,
}

/// Crates in the same run.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(crate) struct RustPeers {
    /// Measure crates, too; the first use builds the program of `bench/peers`.
    #[arg(long = "rust-peers", id = "rust_peers")]
    are_wanted: bool,
}

impl PythonPeers {
    /// The script `name`, with its environment, if it is wanted.
    ///
    /// # Errors
    /// If Python fails.
    pub(crate) fn prepare(self, name: &str) -> io::Result<Option<Python>> {
        self.are_wanted.then(|| Python::prepare(name)).transpose()
    }
}

impl RustPeers {
    /// The program with the crates, if it is wanted.
    ///
    /// # Errors
    /// If cargo fails.
    pub(crate) fn start(self) -> io::Result<Option<Crates>> {
        self.are_wanted.then(Crates::start).transpose()
    }
}

/// Where figures go.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Figures {
    /// Folder for the figures of the tables.
    #[arg(long)]
    figures: Option<PathBuf>,
}

impl Figures {
    pub(crate) fn folder(&self) -> Option<&Path> {
        self.figures.as_deref()
    }
}

/// Level of the processor that this process uses.
///
/// # Panics
/// If `TROMMEL_ISA` names no level of this machine.
pub(crate) fn isa() -> Isa {
    Isa::selected().expect("TROMMEL_ISA names a level of this machine")
}

/// Description of the machine in one line, without which no number has a meaning.
pub(crate) fn machine() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(": "))
        .map_or("unknown processor", |(_, model)| model);
    let level = Isa::selected().map_or_else(|error| error.to_string(), |isa| isa.to_string());
    let cores = trommel::placement::available_cores().len();
    format!("{model}, {cores} cores available, {level}")
}
