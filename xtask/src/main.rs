//! Project commands: `cargo xtask cuda` compiles the CUDA kernels.
#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, reason = "tables are the output of this program")]
#![expect(clippy::print_stderr, reason = "so is what goes wrong")]

mod compile;
mod cuda;
mod failure;
mod resources;
mod toolchain;

use std::process::ExitCode;

use clap::Parser;

/// Project commands.
#[derive(Parser)]
#[command(name = "cargo xtask")]
enum Command {
    /// Compiles kernels/cuda/*.cu to the images that the binary embeds, and prints what they use.
    ///
    /// The compiler is that of CUDA 12.0, so that drivers from version 525 on load its PTX. It
    /// comes as Python wheels into a folder of its own below the target folder; python3 with venv
    /// and pip has to be there. A kernel that spills registers is an error.
    Cuda {
        /// Compares the images with those in the repository instead of writing them.
        #[arg(long)]
        check: bool,
    },
}

fn main() -> ExitCode {
    let Command::Cuda { check } = Command::parse();
    match cuda::run(check) {
        Ok(report) => {
            println!("{report}");
            ExitCode::SUCCESS
        }
        Err(failure) => {
            eprintln!("error: {failure}");
            failure.exit_code()
        }
    }
}
