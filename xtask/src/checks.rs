//! Long checks: `cargo xtask soak`, `sanitize` and `fuzz`.

use std::path::Path;
use std::process::Command;

use clap::ValueEnum;

use crate::failure::Failure;
use crate::toolchain::folders;

/// The packages whose suites are run under sanitizers: all that have threads or unsafe code.
const SANITIZED: [&str; 4] = ["trommel-engine", "trommel-kernels", "trommel-operators", "trommel"];
/// The standard library is not built for a sanitizer, so its ABI differs.
const MISMATCH: &str = "-Cunsafe-allow-abi-mismatch=sanitizer";

/// The faults that a sanitizer looks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Sanitizer {
    /// Data races.
    Thread,
    /// Accesses to freed memory or outside of bounds, and leaks.
    Address,
}

impl Sanitizer {
    fn name(self) -> &'static str {
        match self {
            Self::Thread => "thread",
            Self::Address => "address",
        }
    }
}

/// Runs `graphs` random pipelines, the first one of `seed`, and a slow sink for `items` items.
pub(crate) fn soak(graphs: u64, seed: u64, items: u64) -> Result<(), Failure> {
    let mut command = cargo();
    command
        .args(["test", "--release", "--package", "trommel", "--test", "trommel"])
        .args(["soak::", "--", "--nocapture", "--test-threads=1"])
        .env("TROMMEL_SOAK_GRAPHS", graphs.to_string())
        .env("TROMMEL_SOAK_SEED", seed.to_string())
        .env("TROMMEL_SOAK_ITEMS", items.to_string());
    run(command)
}

/// Runs the suites under `sanitizer`, or the tests whose names contain `filter`.
pub(crate) fn sanitize(sanitizer: Sanitizer, filter: Option<&str>) -> Result<(), Failure> {
    let (workspace, target) = folders()?;
    let name = sanitizer.name();
    let suppressions = workspace.join("xtask/thread-sanitizer.txt");
    let mut flags = format!("-Zsanitizer={name} {MISMATCH}");
    if sanitizer == Sanitizer::Thread {
        flags += " --cfg=thread_sanitizer";
    }
    let mut command = cargo();
    command
        .args(["test", "--target", host(), "--lib", "--tests", "--no-fail-fast"])
        .arg("--target-dir")
        .arg(target.join(format!("sanitize-{name}")))
        // Enables the features of a nightly compiler in the pinned one.
        .env("RUSTC_BOOTSTRAP", "1")
        .env("RUSTFLAGS", flags)
        .env("TSAN_OPTIONS", format!("suppressions={}", suppressions.display()))
        .env("CARGO_PROFILE_DEV_OPT_LEVEL", "1");
    for package in SANITIZED {
        command.args(["--package", package]);
    }
    // Tests of the CUDA kernels run under sanitizers of their own, which exclude each other.
    command.args(filter).args(["--", "--skip", "stand_in::"]);
    run(command)
}

/// Builds the fuzz targets, and runs each of `targets`, or all, for `seconds`.
pub(crate) fn fuzz(targets: &[String], seconds: u64, only_build: bool) -> Result<(), Failure> {
    let (workspace, _) = folders()?;
    if !has_cargo_fuzz() {
        let mut install = cargo();
        install.args(["install", "--locked", "cargo-fuzz"]);
        run(install)?;
    }
    let mut build = cargo_fuzz(&workspace);
    build.arg("build");
    run(build)?;
    if only_build {
        return Ok(());
    }
    let all = fuzz_targets(&workspace)?;
    let targets = if targets.is_empty() { &all } else { targets };
    for target in targets {
        let mut fuzz = cargo_fuzz(&workspace);
        fuzz.args(["run", target, "--", "-timeout=20", "-rss_limit_mb=4096"]);
        fuzz.arg(format!("-max_total_time={seconds}"));
        run(fuzz)?;
    }
    Ok(())
}

/// The names of the files with targets.
fn fuzz_targets(workspace: &Path) -> Result<Vec<String>, Failure> {
    let folder = workspace.join("fuzz/fuzz_targets");
    let entries = std::fs::read_dir(&folder).map_err(Failure::file(&folder))?;
    let mut names = Vec::new();
    for entry in entries {
        let path = entry.map_err(Failure::file(&folder))?.path();
        if path.is_file() {
            names.extend(path.file_stem().map(|name| name.to_string_lossy().into_owned()));
        }
    }
    names.sort_unstable();
    Ok(names)
}

fn has_cargo_fuzz() -> bool {
    let version = cargo().args(["fuzz", "--version"]).output();
    version.is_ok_and(|output| output.status.success())
}

fn cargo_fuzz(workspace: &Path) -> Command {
    let mut command = cargo();
    command.arg("fuzz").current_dir(workspace).env("RUSTC_BOOTSTRAP", "1");
    // The profile for releases, without the parts that take longest to build.
    command
        .env("CARGO_PROFILE_RELEASE_LTO", "off")
        .env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16");
    command
}

fn cargo() -> Command {
    Command::new("cargo")
}

/// The target triple of this machine: sanitizers need it by name.
fn host() -> &'static str {
    if cfg!(target_arch = "aarch64") {
        "aarch64-unknown-linux-gnu"
    } else {
        "x86_64-unknown-linux-gnu"
    }
}

/// Runs a command that shares our output.
fn run(mut command: Command) -> Result<(), Failure> {
    let shown = format!("{command:?}");
    let failed = |stderr: String| Failure::Program { command: shown.clone(), stderr };
    let status = command.status().map_err(|error| failed(error.to_string()))?;
    if status.success() { Ok(()) } else { Err(failed(status.to_string())) }
}
