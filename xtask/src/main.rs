//! Project commands: `cuda` compiles the CUDA kernels; `figures` takes the tables of the
//! documentation from results; `soak`, `sanitize` and `fuzz` are checks that take longer than a
//! change waits for.
#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, reason = "tables are the output of this program")]
#![expect(clippy::print_stderr, reason = "and so are errors")]

mod checks;
mod compile;
mod cuda;
mod failure;
mod resources;
mod toolchain;

use std::fs;
use std::process::ExitCode;

use clap::Parser;
use failure::Failure;
use xtask::figures;

/// Project commands.
#[derive(Parser)]
#[command(name = "cargo xtask")]
enum Command {
    /// Compiles kernels/cuda/*.cu to the images that the binary embeds, and prints their
    /// resources.
    ///
    /// The compiler is the one of CUDA 12.0, so that drivers from version 525 on load its PTX. It
    /// is installed from Python wheels into a folder below the target folder, which needs python3
    /// with venv and pip. A kernel that spills registers is an error.
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
        /// Number of items for a sink that is a hundred times slower than its source.
        #[arg(long, default_value_t = 100_000_000)]
        items: u64,
    },
    /// Runs the suites of engine, kernels, operators and facade under a sanitizer.
    Sanitize {
        /// The faults to look for.
        #[arg(value_enum)]
        sanitizer: checks::Sanitizer,
        /// Run only tests whose names contain this.
        filter: Option<String>,
    },
    /// Builds the fuzz targets and runs each for some time. Installs cargo-fuzz if it is missing.
    Fuzz {
        /// Targets to run; all if none is named.
        targets: Vec<String>,
        /// Seconds for each target.
        #[arg(long, default_value_t = 900)]
        seconds: u64,
        /// Builds the targets and runs none.
        #[arg(long)]
        build: bool,
    },
    /// Rebuilds the tables of the documentation from stored outputs of benchmarks, and compares
    /// the numbers of its text with them.
    Figures {
        /// Compares the tables too, instead of writing them.
        #[arg(long)]
        check: bool,
    },
}

fn main() -> ExitCode {
    let result = match Command::parse() {
        Command::Cuda { check } => cuda::run(check).map(|report| println!("{report}")),
        Command::Soak { graphs, seed, items } => checks::soak(graphs, seed, items),
        Command::Sanitize { sanitizer, filter } => checks::sanitize(sanitizer, filter.as_deref()),
        Command::Fuzz { targets, seconds, build } => checks::fuzz(&targets, seconds, build),
        Command::Figures { check } => figures(check),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("error: {failure}");
            failure.exit_code()
        }
    }
}

/// Compares the documentation with stored outputs; writes stale pages unless `check` is set.
fn figures(check: bool) -> Result<(), Failure> {
    let (root, _) = toolchain::folders()?;
    let pages = figures::pages(&root).map_err(Failure::file(&root))?;
    let mut faults = String::new();
    for page in pages {
        let name = page.path.display();
        page.faults.iter().for_each(|fault| faults += &format!("{name}, {fault}\n"));
        if page.is_stale && check {
            faults += &format!("{name}: other tables; run `cargo xtask figures`\n");
        } else if page.is_stale {
            fs::write(&page.path, &page.text).map_err(Failure::file(&page.path))?;
            println!("wrote {name}");
        }
    }
    if faults.is_empty() { Ok(()) } else { Err(Failure::Pages(faults)) }
}
