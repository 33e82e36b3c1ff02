//! Failures of a command: exit codes other than 0.

use std::fmt;

use trommel::ConfigErrors;

/// The run failed.
pub(crate) const RUN_FAILED: u8 = 1;
/// Bad usage or a bad configuration; the code of `clap`, too.
pub(crate) const BAD_USAGE: u8 = 2;

/// The message on standard error before the process exits.
#[derive(Debug)]
pub(crate) struct Failure {
    status: u8,
    message: String,
}

impl Failure {
    /// The command line is wrong or names a thing that does not exist.
    pub(crate) fn usage(message: impl fmt::Display) -> Self {
        Self { status: BAD_USAGE, message: format!("error: {message}") }
    }

    /// The command failed while it ran.
    pub(crate) fn run(message: impl fmt::Display) -> Self {
        Self { status: RUN_FAILED, message: format!("error: {message}") }
    }

    /// The code the process exits with.
    pub(crate) fn status(&self) -> u8 {
        self.status
    }
}

impl From<ConfigErrors> for Failure {
    /// Each mistake begins with its place, as editors and terminals expect it.
    fn from(errors: ConfigErrors) -> Self {
        Self { status: BAD_USAGE, message: errors.to_string() }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}
