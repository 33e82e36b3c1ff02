//! Standard output and standard error of the command.
//!
//! Names of files, of stages and of parameters come from anybody, and so do the lines of a
//! configuration that errors show. Everything that is no data of a user goes through here, where
//! characters that would act on a terminal are escaped. Writing to standard error never fails: a
//! message that nobody can read must not end a run.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use clap::Parser;
use signal_hook::consts::SIGXFSZ;
use tracing_subscriber::filter::LevelFilter;
use trommel::files::{FileError, printable, printable_lines, write_stdout};

use crate::failure::Failure;

/// The beginning of a message that a terminal shows in colour.
const ERROR: &str = "error:";
/// The same in bold red, as `clap` shows its own.
const ERROR_STYLED: &str = "\u{1b}[1m\u{1b}[31merror:\u{1b}[0m";

/// Reads the command line of this process.
///
/// # Errors
/// The exit code, after the help or the mistake has been shown.
pub(crate) fn parse<P: Parser>() -> Result<P, u8> {
    P::try_parse().map_err(|error| {
        // The same mistake, told of arguments without characters that act on a terminal.
        let shown = std::env::args_os().map(|word| printable(&word.to_string_lossy()).into_owned());
        let error = P::try_parse_from(shown).err().unwrap_or(error);
        let code = u8::try_from(error.exit_code()).unwrap_or(crate::failure::BAD_USAGE);
        match error.print() {
            Err(refused) if !error.use_stderr() && refused.kind() != io::ErrorKind::BrokenPipe => {
                say(&format!("error: cannot write standard output: {refused}"));
                crate::failure::RUN_FAILED
            }
            _ => code,
        }
    })
}

/// Prepares the process: messages of libraries, and a limit of the size of files that is an error
/// like that of a full disk.
pub(crate) fn prepare(is_verbose: bool) {
    let level = if is_verbose { LevelFilter::DEBUG } else { LevelFilter::WARN };
    tracing_subscriber::fmt()
        // Else colours depend on the features that other crates want.
        .with_ansi(false)
        .with_max_level(level)
        .with_writer(|| Messages)
        .log_internal_errors(false)
        .with_target(false)
        .without_time()
        .init();
    // A signal that is received does not end the process; the write fails with an error instead.
    let received = Arc::new(AtomicBool::new(false));
    if let Err(error) = signal_hook::flag::register(SIGXFSZ, received) {
        say(&format!("warning: a limit of the size of files ends the process silently: {error}"));
    }
}

/// Writes a message to standard error, if that is open.
pub(crate) fn say(message: &str) {
    let message = printable_lines(message);
    let styled = match message.strip_prefix(ERROR) {
        Some(rest) => format!("{ERROR_STYLED}{rest}"),
        None => message.into_owned(),
    };
    // Without colours where standard error is no terminal, or where `NO_COLOR` asks for none.
    let _ = writeln!(anstream::stderr(), "{styled}");
}

/// Writes a whole answer to standard output. A reader that has left is no failure.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    match write_stdout(printable_lines(text).as_bytes()) {
        Err(FileError::Io { source, .. }) if source.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written.map_err(Failure::run),
    }
}

/// The writer of the messages of libraries.
struct Messages;

impl Write for Messages {
    fn write(&mut self, message: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(message);
        let _ = io::stderr().write_all(printable_lines(&text).as_bytes());
        Ok(message.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
