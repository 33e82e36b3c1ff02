//! Peers that are crates. The program of `bench/peers` reads jobs, each a line of JSON, and prints
//! a line of JSON with the answer of each job.

use std::cell::RefCell;
use std::env;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::turns::Run;

const MANIFEST: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/peers/Cargo.toml");

/// Variable with the path of a program that has been built before.
const PROGRAM: &str = "TROMMEL_PEERS";

/// The running program.
pub(crate) struct Crates {
    process: Child,
    pipes: RefCell<(ChildStdin, BufReader<ChildStdout>)>,
}

/// What the program says of a job whose answer is a number.
#[derive(Deserialize)]
struct Done {
    seconds: f64,
    answer: u64,
}

impl Crates {
    /// Builds the program, in the build folder of cargo, and starts it.
    ///
    /// # Errors
    /// If cargo is missing or fails.
    pub(crate) fn start() -> io::Result<Self> {
        let program = env::var_os(PROGRAM).map_or_else(build, |path| Ok(PathBuf::from(path)))?;
        let mut command = Command::new(program);
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let pipes = process.stdin.take().zip(process.stdout.take());
        let (jobs, answers) = pipes.ok_or_else(|| io::Error::other("the peers have no pipes"))?;
        Ok(Self { process, pipes: RefCell::new((jobs, BufReader::new(answers))) })
    }

    /// Lets the program do a job.
    ///
    /// # Errors
    /// If the program fails, which says why on standard error.
    pub(crate) fn ask<T: DeserializeOwned>(&self, job: &Value) -> io::Result<T> {
        let (jobs, answers) = &mut *self.pipes.borrow_mut();
        writeln!(jobs, "{job}")?;
        let mut line = String::new();
        if answers.read_line(&mut line)? == 0 {
            return Err(io::Error::other("the program of the peers ended"));
        }
        Ok(serde_json::from_str(&line)?)
    }

    /// A run of a job whose answer is a number.
    ///
    /// # Panics
    /// If the program fails.
    pub(crate) fn run(&self, job: &Value) -> Run<u64> {
        let Done { seconds, answer } = self.ask(job).expect("the peers work");
        Run { time: Duration::from_secs_f64(seconds), answer, rest: () }
    }
}

impl Drop for Crates {
    fn drop(&mut self) {
        // The program would end with its standard input, which is still open here.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn build() -> io::Result<PathBuf> {
    let program = env::current_exe()?;
    let target = program.ancestors().nth(2).unwrap_or(Path::new("target")).join("rust-peers");
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["build", "--release", "--locked", "--manifest-path", MANIFEST, "--target-dir"]);
    let status = cargo.arg(&target).status()?;
    if !status.success() {
        return Err(io::Error::other("cargo could not build the peers"));
    }
    Ok(target.join("release/trommel-peers"))
}
