//! The binary `trommel`; its code is in the library of this crate.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    trommel_cli::main()
}
