//! One file a command. Each returns the code to exit with, or why it failed.

mod check;
mod completions;
mod dedup;
mod devices;
mod eval;
mod explain;
mod inputs;
mod operators;
mod run;
mod schema;
mod top;

use crate::args::Command;
use crate::failure::Failure;

/// Runs the command of the command line.
pub(crate) fn run(command: &Command) -> Result<u8, Failure> {
    match command {
        Command::Run(arguments) => run::run(arguments),
        Command::Check(arguments) => check::run(arguments),
        Command::Explain(arguments) => explain::run(arguments),
        Command::Top(arguments) => top::run(arguments),
        Command::Dedup(arguments) => dedup::run(arguments),
        Command::Eval(arguments) => eval::run(arguments),
        Command::Operators(arguments) => operators::run(arguments),
        Command::Schema => schema::run(),
        Command::Devices => devices::run(),
        Command::Completions(arguments) => completions::run(arguments),
    }
}
