//! Why a command failed.

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// The workspace is not what it should be.
    #[error("cannot read the workspace: {0}")]
    Workspace(#[from] cargo_metadata::Error),
    /// A file or folder cannot be read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// Which one.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The pinned compiler cannot be installed.
    #[error("the pinned CUDA compiler cannot be had: {command} failed\n{stderr}")]
    NoToolchain {
        /// What was tried.
        command: String,
        /// What it said.
        stderr: String,
    },
    /// A program cannot be started or failed.
    #[error("{command} failed\n{stderr}")]
    Program {
        /// The program with its arguments.
        command: String,
        /// What it said.
        stderr: String,
    },
    /// A kernel does not compile.
    #[error("{file} for {target} does not compile\n{log}")]
    Compile {
        /// The source.
        file: String,
        /// The architecture.
        target: &'static str,
        /// What the compiler said.
        log: String,
    },
    /// The compiler that was loaded is another one.
    #[error("the compiler that was loaded is not that of CUDA {expected}: {found}")]
    OtherCompiler {
        /// What is pinned.
        expected: &'static str,
        /// What signed the PTX.
        found: String,
    },
    /// Kernels spill registers.
    #[error("registers are spilled by {0}\n{1}")]
    Spills(String, String),
    /// The images of the repository are others.
    #[error("not what the sources compile to: {0}; run `cargo xtask cuda`")]
    Stale(String),
}

impl Failure {
    /// 3 where the compiler cannot be had, so that others can tell it from kernels that are wrong.
    pub(crate) fn exit_code(&self) -> ExitCode {
        if matches!(self, Self::NoToolchain { .. }) { ExitCode::from(3) } else { ExitCode::FAILURE }
    }

    /// For `map_err` of file operations.
    pub(crate) fn file(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        |source| Self::File { path, source }
    }
}
