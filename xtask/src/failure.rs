//! Failures of commands.

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

/// The failure of a command.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// The metadata of the workspace cannot be read.
    #[error("cannot read the workspace: {0}")]
    Workspace(#[from] cargo_metadata::Error),
    /// A file or folder cannot be read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// The file or folder.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// The pinned compiler cannot be installed.
    #[error("the pinned CUDA compiler cannot be installed: {command} failed\n{stderr}")]
    NoToolchain {
        /// The command that failed.
        command: String,
        /// Its output.
        stderr: String,
    },
    /// A program cannot be started, or failed.
    #[error("{command} failed\n{stderr}")]
    Program {
        /// The program with its arguments.
        command: String,
        /// Its output.
        stderr: String,
    },
    /// A kernel does not compile.
    #[error("{file} for {target} does not compile\n{log}")]
    Compile {
        /// The source.
        file: String,
        /// The architecture.
        target: &'static str,
        /// The output of the compiler.
        log: String,
    },
    /// Another compiler than the pinned one was loaded.
    #[error("expected the compiler of CUDA {expected}, loaded another one: {found}")]
    OtherCompiler {
        /// The pinned version.
        expected: &'static str,
        /// The signature of the PTX.
        found: String,
    },
    /// Kernels spill registers.
    #[error("registers are spilled by {0}\n{1}")]
    Spills(String, String),
    /// Images of the repository are stale.
    #[error("the images {0} are stale; run `cargo xtask cuda`")]
    Stale(String),
    /// Pages differ from the stored outputs of benchmarks.
    #[error("pages differ from bench/results:\n{0}")]
    Pages(String),
}

impl Failure {
    /// 3 if the compiler cannot be installed, to distinguish that from wrong kernels.
    pub(crate) fn exit_code(&self) -> ExitCode {
        if matches!(self, Self::NoToolchain { .. }) { ExitCode::from(3) } else { ExitCode::FAILURE }
    }

    /// For `map_err` of file operations.
    pub(crate) fn file(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        |source| Self::File { path, source }
    }
}
