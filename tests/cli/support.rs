//! Runs the binary under a watchdog, so that a hang is a failure and not an endless wait.

use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{self, ChildStderr, ChildStdout, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// Time limit: ten times the longest run of a test.
const LIMIT: Duration = Duration::from_secs(60);

/// Folder of relative paths in the configurations.
pub(crate) fn repository() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

/// Command line of the binary.
pub(crate) fn trommel<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Trommel {
    let mut command = Command::new(env!("CARGO_BIN_EXE_trommel"));
    command.args(arguments).current_dir(repository());
    Trommel { command, input: Vec::new(), stdout: None }
}

pub(crate) struct Trommel {
    command: Command,
    input: Vec<u8>,
    /// Standard output, if it is no pipe of the test.
    stdout: Option<fs::File>,
}

impl Trommel {
    /// Passes `input` on standard input; it must fit the buffer of a pipe.
    pub(crate) fn input(mut self, input: impl Into<Vec<u8>>) -> Self {
        self.input = input.into();
        assert!(self.input.len() < 60_000, "the pipe would block");
        self
    }

    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.command.env(name, value);
        self
    }

    /// Appends standard output to a file, as `>>` of a shell does.
    pub(crate) fn append_to(mut self, path: &str) -> Self {
        let file = fs::File::options().append(true).create(true).open(path);
        self.stdout = Some(file.expect("a file"));
        self
    }

    /// Starts it.
    pub(crate) fn start(mut self) -> Live {
        let command = &mut self.command;
        let stdout = self.stdout.map_or_else(Stdio::piped, Stdio::from);
        command.stdin(Stdio::piped()).stdout(stdout).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the binary was built");
        // The process may end without reading its input.
        let _ = child.stdin.take().expect("piped").write_all(&self.input);
        let stdout = child.stdout.take().map(BufReader::new);
        let stderr = BufReader::new(child.stderr.take().expect("piped"));
        let watchdog = watch(pid_of(&child));
        Live { child, stdout, stderr, watchdog }
    }

    /// Runs it to its end.
    pub(crate) fn end(self) -> Ended {
        self.start().end()
    }
}

fn pid_of(child: &process::Child) -> Pid {
    i32::try_from(child.id()).ok().and_then(Pid::from_raw).expect("a process has a number")
}

/// Kills the process unless the returned end of a channel is dropped in time.
fn watch(pid: Pid) -> Sender<()> {
    let (sender, ended) = channel::<()>();
    let watch = move || {
        if ended.recv_timeout(LIMIT) == Err(RecvTimeoutError::Timeout) {
            let _ = kill_process(pid, Signal::KILL);
        }
    };
    thread::Builder::new().spawn(watch).expect("a thread");
    sender
}

/// Running process.
pub(crate) struct Live {
    child: process::Child,
    stdout: Option<BufReader<ChildStdout>>,
    stderr: BufReader<ChildStderr>,
    /// Dropped when the process has ended, which stops the watchdog.
    watchdog: Sender<()>,
}

impl Live {
    /// The next line of standard output.
    pub(crate) fn line(&mut self) -> String {
        next_line(self.stdout.as_mut().expect("not closed"))
    }

    /// The next line of standard error.
    pub(crate) fn error_line(&mut self) -> String {
        next_line(&mut self.stderr)
    }

    /// Closes the reading end of its standard output.
    pub(crate) fn close_stdout(&mut self) {
        self.stdout = None;
    }

    /// Waits until it has opened a file.
    pub(crate) fn wait_for_open(&self, path: &str) {
        while !self.has_open(path) {
            thread::yield_now();
        }
    }

    /// Whether it has opened a file that is still there.
    pub(crate) fn has_open(&self, path: &str) -> bool {
        let folder = format!("/proc/{}/fd", self.child.id());
        let mut links = fs::read_dir(&folder).expect("it is running").flatten();
        links.any(|link| fs::read_link(link.path()).is_ok_and(|file| file == Path::new(path)))
    }

    /// Waits until it takes the signals that end it.
    pub(crate) fn wait_for_signals(&self) {
        let status = format!("/proc/{}/status", self.child.id());
        let is_ready = || {
            let status = fs::read_to_string(&status).expect("it is running");
            let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
            let caught = u64::from_str_radix(caught.expect("a mask").trim(), 16).expect("a mask");
            caught & (1 << (Signal::TERM.as_raw() - 1)) != 0
        };
        while !is_ready() {
            thread::yield_now();
        }
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(pid_of(&self.child), signal).expect("it is running");
    }

    pub(crate) fn is_running(&mut self) -> bool {
        self.child.try_wait().expect("it was started").is_none()
    }

    /// Waits for the end without reading any more output; returns the exit code.
    pub(crate) fn wait(mut self) -> i32 {
        let status = self.child.wait().expect("it was started");
        drop(self.watchdog);
        status.code().unwrap_or_else(|| panic!("{status}"))
    }

    /// Reads the remaining output and waits for the end.
    pub(crate) fn end(mut self) -> Ended {
        let (mut stdout, mut stderr) = (String::new(), String::new());
        if let Some(pipe) = &mut self.stdout {
            pipe.read_to_string(&mut stdout).expect("text");
        }
        self.stderr.read_to_string(&mut stderr).expect("text");
        let status = self.child.wait().expect("it was started");
        drop(self.watchdog);
        let status = status.code().unwrap_or_else(|| panic!("{status}; it said: {stderr}"));
        Ended { status, stdout, stderr }
    }
}

fn next_line(pipe: &mut impl BufRead) -> String {
    let mut line = String::new();
    pipe.read_line(&mut line).expect("text");
    assert!(line.ends_with('\n'), "it ended; its last words are {line:?}");
    line
}

/// Ended process.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) status: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ended {
    /// Standard output of a process that succeeded and wrote nothing to standard error.
    #[track_caller]
    pub(crate) fn ok(self) -> String {
        assert_eq!((self.status, self.stderr.as_str()), (0, ""), "{}", self.stdout);
        self.stdout
    }

    /// Standard error of a process that ended with `status` and printed nothing.
    #[track_caller]
    pub(crate) fn refused(self, status: i32) -> String {
        assert_eq!((self.status, self.stdout.as_str()), (status, ""), "{}", self.stderr);
        self.stderr
    }
}

/// Runs a line of the shell, in which `trommel` is the binary, in `folder`.
pub(crate) fn shell(folder: &Files, line: &str) -> Ended {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", line]).current_dir(folder.folder.path());
    let binary = Path::new(env!("CARGO_BIN_EXE_trommel"));
    let path = std::env::join_paths([binary.parent().expect("a folder"), "/usr/bin".as_ref()]);
    command.env("PATH", path.expect("paths"));
    Trommel { command, input: Vec::new(), stdout: None }.end()
}

/// A folder of files for one test.
pub(crate) struct Files {
    folder: TempDir,
}

impl Files {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().expect("a folder for temporary files") }
    }

    /// The path of a file that need not exist.
    pub(crate) fn path(&self, name: &str) -> String {
        self.path_buf(name).into_os_string().into_string().expect("temporary paths are text")
    }

    fn path_buf(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Makes a named pipe; returns its path.
    pub(crate) fn fifo(&self, name: &str) -> String {
        use rustix::fs::{CWD, FileType, Mode, mknodat};
        let path = self.path(name);
        mknodat(CWD, path.as_str(), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("a pipe");
        path
    }

    /// Writes a file; returns its path.
    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        fs::write(self.path_buf(name), content).expect("a temporary file");
        self.path(name)
    }

    pub(crate) fn read_bytes(&self, name: &str) -> Vec<u8> {
        fs::read(self.path_buf(name)).expect(name)
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path_buf(name)).expect(name)
    }
}

/// Pipeline that prints its input, read in this format.
pub(crate) fn reading(path: &str, format: &str) -> String {
    format!(
        r#"{{ "name": "reading", "stages": [
            {{ "id": "in", "operator": "read", "with": {{ "paths": ["{path}"], "format": "{format}" }} }},
            {{ "id": "out", "operator": "write", "inputs": ["in"] }} ] }}"#
    )
}
