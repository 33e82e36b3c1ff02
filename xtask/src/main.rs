//! Project commands: `cuda` compiles the CUDA kernels; `soak`, `sanitize` and `fuzz` are checks
//! that take longer than a change waits for.
#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, reason = "tables are the output of this program")]
#![expect(clippy::print_stderr, reason = "so is what goes wrong")]

mod checks;
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
    /// Runs random pipelines against a model that counts every item, and a slow sink.
    Soak {
        /// Number of pipelines.
        #[arg(long, default_value_t = 10_000)]
        graphs: u64,
        /// Seed of the first one.
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// Items that a sink gets which is a hundred times slower than its source.
        #[arg(long, default_value_t = 100_000_000)]
        items: u64,
    },
    /// Runs the suites of engine, kernels, operators and facade under a sanitizer.
    Sanitize {
        /// What to look for.
        #[arg(value_enum)]
        sanitizer: checks::Sanitizer,
        /// Run only tests whose names contain this.
        filter: Option<String>,
    },
    /// Builds the fuzz targets and runs them, each for some time. Installs cargo-fuzz if it is
    /// missing.
    Fuzz {
        /// The targets to run; all when none is named.
        targets: Vec<String>,
        /// Seconds for each target.
        #[arg(long, default_value_t = 900)]
        seconds: u64,
        /// Builds them and runs none.
        #[arg(long)]
        build: bool,
    },
}

fn main() -> ExitCode {
    let result = match Command::parse() {
        Command::Cuda { check } => cuda::run(check).map(|report| println!("{report}")),
        Command::Soak { graphs, seed, items } => checks::soak(graphs, seed, items),
        Command::Sanitize { sanitizer, filter } => checks::sanitize(sanitizer, filter.as_deref()),
        Command::Fuzz { targets, seconds, build } => checks::fuzz(&targets, seconds, build),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("error: {failure}");
            failure.exit_code()
        }
    }
}
