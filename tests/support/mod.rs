//! Shared parts of the tests.

pub(crate) mod oracle;
pub(crate) mod streams;

use std::time::Duration;

use crossbeam_channel::{RecvTimeoutError, bounded};

/// Time limit, far above the time of any test.
const WATCHDOG: Duration = Duration::from_secs(60);

/// Runs `test` and fails if it does not return.
pub(crate) fn watched<T: Send + 'static>(test: impl FnOnce() -> T + Send + 'static) -> T {
    let (done, result) = bounded(1);
    let thread = std::thread::Builder::new().spawn(move || done.send(test())).unwrap();
    match result.recv_timeout(WATCHDOG) {
        Ok(value) => value,
        Err(RecvTimeoutError::Timeout) => panic!("the test hangs"),
        Err(RecvTimeoutError::Disconnected) => {
            std::panic::resume_unwind(thread.join().expect_err("it panicked"))
        }
    }
}
