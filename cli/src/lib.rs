//! The command `trommel`: pipelines from JSON files, and counting without a file.
//!
//! Results go to standard output, all other text to standard error. The exit code is 0 after
//! success, also after a drain that SIGTERM, SIGHUP or `POST /stop` asked for, 1 when a run failed
//! or was aborted, 2 for bad usage or a bad configuration, and 130 after Ctrl-C. A reader of
//! standard output that leaves is no failure.
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
mod console;
mod failure;
mod progress;
#[doc(hidden)]
pub mod server;
mod session;
mod signals;
mod units;

use std::process::ExitCode;

use crate::args::Arguments;
use crate::console::{print, say};

/// Runs the command line of this process.
#[must_use]
pub fn main() -> ExitCode {
    let arguments: Arguments = match console::parse() {
        Ok(arguments) => arguments,
        Err(code) => return ExitCode::from(code),
    };
    console::prepare(arguments.verbose);
    match commands::run(&arguments.command) {
        Ok(status) => ExitCode::from(status),
        Err(failure) => {
            say(&failure.to_string());
            ExitCode::from(failure.status())
        }
    }
}
