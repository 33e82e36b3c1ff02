//! Signals that ask for the end of a run.

use std::fs;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag::register_conditional_default;
use signal_hook::iterator::backend::SignalDelivery;
use signal_hook::iterator::exfiltrator::SignalOnly;

/// The signals that end a run.
const ENDING: [i32; 3] = [SIGINT, SIGTERM, SIGHUP];

/// Receives the signals while it lives; after that they end the process, as they do by default. A
/// signal that was ignored when the process started, such as by `nohup`, stays ignored.
#[derive(Debug)]
pub(crate) struct EndSignals {
    signals: SignalDelivery<UnixStream, SignalOnly>,
    is_over: Arc<AtomicBool>,
}

impl EndSignals {
    pub(crate) fn receive() -> io::Result<Self> {
        let is_over = Arc::new(AtomicBool::new(false));
        let ignored = ignored_signals();
        let received = ENDING.into_iter().filter(|signal| ignored & (1 << (signal - 1)) == 0);
        let received: Vec<i32> = received.collect();
        for &signal in &received {
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

impl Drop for EndSignals {
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
