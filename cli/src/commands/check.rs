//! `trommel check`: every mistake of every file.

use crate::args::CheckArguments;
use crate::config::ConfigText;
use crate::failure::{BAD_USAGE, Failure};

pub(super) fn run(arguments: &CheckArguments) -> Result<u8, Failure> {
    let mut status = 0;
    for file in &arguments.files {
        match check(file) {
            Ok(()) => crate::print(&format!("{file}: ok\n"))?,
            Err(failure) => {
                crate::say(&failure.to_string());
                status = BAD_USAGE;
            }
        }
    }
    Ok(status)
}

fn check(file: &str) -> Result<(), Failure> {
    ConfigText::read(file)?.load(&[])?;
    Ok(())
}
