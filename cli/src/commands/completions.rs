//! `trommel completions`: a script that completes the command line in a shell.

use clap::CommandFactory;

use crate::args::{Arguments, CompletionsArguments};
use crate::failure::Failure;

pub(super) fn run(arguments: &CompletionsArguments) -> Result<u8, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut Arguments::command(), "trommel", &mut script);
    crate::print(&String::from_utf8_lossy(&script))?;
    Ok(0)
}
