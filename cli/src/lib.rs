//! The command `trommel`: pipelines from JSON files, and counting without a file.
//!
//! Results go to standard output, all other text to standard error. The exit code is 0 after
//! success, 1 when a run failed, 2 for bad usage or a bad configuration, and 130 (128 + signal)
//! after Ctrl-C. A reader of standard output that leaves is no failure.
//!
//! ```text
//! args ──► commands ──► session (waits, signals, progress) ──► report
//!                           ┊
//!                        server (HTTP), on a thread of its own
//! ```
//!
//! The main thread only waits for the pipeline and for signals, and draws progress.
#![forbid(unsafe_code)]

mod args;
mod commands;
mod config;
mod failure;
mod progress;
#[doc(hidden)]
pub mod server;
mod session;
mod signals;
mod units;

use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::Parser;
use tracing_subscriber::filter::LevelFilter;

use crate::args::Arguments;
use crate::failure::Failure;

/// Runs the command line of this process.
#[must_use]
pub fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let level = if arguments.verbose { LevelFilter::DEBUG } else { LevelFilter::WARN };
    tracing_subscriber::fmt()
        // Else colours depend on the features that other crates want.
        .with_ansi(false)
        .with_max_level(level)
        .with_writer(io::stderr)
        .with_target(false)
        .without_time()
        .init();
    match commands::run(&arguments.command) {
        Ok(status) => ExitCode::from(status),
        Err(failure) => {
            say(&failure.to_string());
            ExitCode::from(failure.status())
        }
    }
}

/// Writes a line to standard error, if that is open.
fn say(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// Writes a whole answer to standard output. A reader that has left is no failure.
fn print(text: &str) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::run(format!("cannot write standard output: {error}")))
        }
        _ => Ok(()),
    }
}
