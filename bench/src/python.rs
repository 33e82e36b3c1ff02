//! Peers that are Python packages: a script with an environment of its own measures them, and says
//! what it measured as JSON.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::de::DeserializeOwned;

const SCRIPTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/python");

/// A script, ready to run.
pub(crate) struct Python {
    script: PathBuf,
    environment: PathBuf,
}

impl Python {
    /// Makes the environment of the script `bench/python/{name}.py` with its packages, below the
    /// folder that cargo builds into, and prints their versions.
    ///
    /// # Errors
    /// What Python or pip says, if they are missing or find no network.
    pub(crate) fn prepare(name: &str) -> io::Result<Self> {
        let program = std::env::current_exe()?;
        let target = program.ancestors().nth(2).unwrap_or(Path::new("target"));
        let environment = target.join("python-peers").join(name);
        let python = Self { script: Path::new(SCRIPTS).join(format!("{name}.py")), environment };
        let versions = python.run(&[("--prepare", &[])])?;
        println!("Python peers: {}\n", versions.trim());
        Ok(python)
    }

    /// Where a file for the script may be.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.environment.join(name)
    }

    /// What the script says it measured, with these options and their values.
    ///
    /// # Errors
    /// If the script fails.
    pub(crate) fn measure<T: DeserializeOwned>(
        &self,
        options: &[(&str, &[String])],
    ) -> io::Result<T> {
        Ok(serde_json::from_str(&self.run(options)?)?)
    }

    /// Its standard output; its standard error, if it fails.
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
