//! Peers that are Python packages: a script with its own environment measures them and prints
//! results as JSON.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::de::DeserializeOwned;

const SCRIPTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/python");

/// Script with its environment.
pub(crate) struct Python {
    script: PathBuf,
    environment: PathBuf,
}

impl Python {
    /// Creates the environment of the script `bench/python/{name}.py` with its packages, in the
    /// build folder of cargo, and prints their versions.
    ///
    /// # Errors
    /// If Python or pip is missing or fails, or there is no network.
    pub(crate) fn prepare(name: &str) -> io::Result<Self> {
        let program = std::env::current_exe()?;
        let target = program.ancestors().nth(2).unwrap_or(Path::new("target"));
        let environment = target.join("python-peers").join(name);
        let python = Self { script: Path::new(SCRIPTS).join(format!("{name}.py")), environment };
        let versions = python.run(&[("--prepare", &[])])?;
        println!("Python peers: {}\n", versions.trim());
        Ok(python)
    }

    /// Path of a file for the script.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.environment.join(name)
    }

    /// Runs the script with these options and parses its results.
    ///
    /// # Errors
    /// If the script fails.
    pub(crate) fn measure<T: DeserializeOwned>(
        &self,
        options: &[(&str, &[String])],
    ) -> io::Result<T> {
        Ok(serde_json::from_str(&self.run(options)?)?)
    }

    /// Runs the script and returns its standard output, or its standard error if it fails.
    fn run(&self, options: &[(&str, &[String])]) -> io::Result<String> {
        let mut command = Command::new("python3");
        command.env("PYTHONDONTWRITEBYTECODE", "1");
        command.arg(&self.script).arg("--environment").arg(&self.environment);
        for (name, values) in options {
            command.arg(name).args(*values);
        }
        let output = command.stdin(Stdio::null()).output()?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        Err(io::Error::other(String::from_utf8_lossy(&output.stderr).trim().to_owned()))
    }
}
