//! Programs in C++ that measure peers, compiled from sources that the user names.

use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::process::{Command, Output};

/// Compiler of the variable `variable`, or `default`.
pub(crate) fn compiler(variable: &str, default: &str) -> OsString {
    std::env::var_os(variable).unwrap_or_else(|| default.into())
}

/// Compiles `program` by `compiler` with these arguments.
///
/// # Errors
/// If the compiler is missing or fails.
pub(crate) fn compile(
    compiler: &OsString,
    program: &Path,
    arguments: &[OsString],
) -> io::Result<()> {
    let mut command = Command::new(compiler);
    let output = command.args(arguments).arg("-o").arg(program).output();
    successful(
        output.map_err(|error| io::Error::other(format!("{}: {error}", compiler.display())))?,
    )?;
    Ok(())
}

/// First line of what the compiler says of its version.
///
/// # Errors
/// If the compiler is missing or fails.
pub(crate) fn version(compiler: &OsString) -> io::Result<String> {
    let output = successful(Command::new(compiler).arg("--version").output()?)?;
    let text = String::from_utf8_lossy(&output.stdout);
    Ok(text.lines().next().unwrap_or_default().to_owned())
}

/// The output of a process, or its standard error if it failed.
///
/// # Errors
/// If the process failed.
pub(crate) fn successful(output: Output) -> io::Result<Output> {
    if output.status.success() {
        return Ok(output);
    }
    Err(io::Error::other(String::from_utf8_lossy(&output.stderr).trim().to_owned()))
}
