//! Signals that ask for the end of a run, or for its files to be opened again.

use std::fs;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1};
use signal_hook::flag::register_conditional_default;
use signal_hook::iterator::backend::SignalDelivery;
use signal_hook::iterator::exfiltrator::SignalOnly;

/// The signals that end a run.
const ENDING: [i32; 3] = [SIGINT, SIGTERM, SIGHUP];
/// The signal after which files that grow are opened again.
pub(crate) const REOPEN: i32 = SIGUSR1;

/// Receives the signals while it lives. After that, those that ask for the end do end the process,
/// as by default, and [`REOPEN`] does nothing: a rotation of logs must not end a run that writes
/// its report. A signal that was ignored when the process started, such as by `nohup`, stays
/// ignored.
#[derive(Debug)]
pub(crate) struct RunSignals {
    signals: SignalDelivery<UnixStream, SignalOnly>,
    is_over: Arc<AtomicBool>,
}

impl RunSignals {
    pub(crate) fn receive() -> io::Result<Self> {
        let is_over = Arc::new(AtomicBool::new(false));
        let ignored = ignored_signals();
        let all = ENDING.into_iter().chain([REOPEN]);
        let received = all.filter(|signal| ignored & (1 << (signal - 1)) == 0);
        let received: Vec<i32> = received.collect();
        for &signal in received.iter().filter(|signal| ENDING.contains(signal)) {
            register_conditional_default(signal, Arc::clone(&is_over))?;
        }
        let (read, write) = UnixStream::pair()?;
        let signals = SignalDelivery::with_pipe(read, write, SignalOnly, received)?;
        Ok(Self { signals, is_over })
    }

    /// Readable when a signal has come.
    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.signals.get_read().as_fd()
    }

    /// The signals that have come since the last call.
    pub(crate) fn pending(&mut self) -> Vec<i32> {
        self.signals.pending().collect()
    }
}

impl Drop for RunSignals {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::SeqCst);
    }
}

/// The signals that this process ignores, signal 1 in the lowest bit; none where the operating
/// system does not tell.
fn ignored_signals() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or_default()
}
