//! Signals that ask for the end of a run.

use std::fs;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag::register_conditional_default;
use signal_hook::iterator::Signals;

/// The signals that end a run.
const ENDING: [i32; 3] = [SIGINT, SIGTERM, SIGHUP];

/// Receives the signals while it lives; after that they end the process, as they do by default. A
/// signal that was ignored when the process started, such as by `nohup`, stays ignored.
#[derive(Debug)]
pub(crate) struct EndSignals {
    signals: Signals,
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
        Ok(Self { signals: Signals::new(received)?, is_over })
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
