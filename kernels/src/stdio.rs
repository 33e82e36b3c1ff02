//! Standard streams that were open when the program started.
//!
//! The run time of Rust opens `/dev/null` in the place of a standard stream that its parent closed
//! (`program >&-`), so that no file gets the number of the stream by accident. After that, a closed
//! stream cannot be distinguished from a stream that was redirected to `/dev/null`, and all rows
//! written there would be lost without an error. A function in the list of initialisers looks
//! before the run time does. In a library that another program loads, such as an extension of
//! Python, it looks when the library is loaded.
#![expect(unsafe_code, reason = "an initialiser of the program is named in a section of its file")]

use std::sync::atomic::{AtomicU8, Ordering};

use rustix::fd::BorrowedFd;
use rustix::stdio::{stderr, stdin, stdout};

/// Standard stream of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stdio {
    /// Standard input.
    Input,
    /// Standard output.
    Output,
    /// Standard error.
    Error,
}

/// A bit for each stream that was closed; the lowest bit is standard input.
static CLOSED: AtomicU8 = AtomicU8::new(0);

// SAFETY: the section holds pointers to functions of this type, which the loader calls once before
// `main`. The function calls the kernel and changes an atomic number; it needs nothing that the run
// time of Rust prepares.
#[unsafe(link_section = ".init_array")]
#[used]
static LOOK: extern "C" fn() = look;

extern "C" fn look() {
    let is_closed = |stream: BorrowedFd<'_>| u8::from(rustix::io::fcntl_getfd(stream).is_err());
    let closed = is_closed(stdin()) | is_closed(stdout()) << 1 | is_closed(stderr()) << 2;
    // Relaxed: no other thread runs yet.
    CLOSED.store(closed, Ordering::Relaxed);
}

/// Whether `stream` was closed when the program started.
///
/// # Examples
/// ```
/// use trommel_kernels::stdio::{Stdio, was_closed};
/// assert!(!was_closed(Stdio::Output));
/// ```
#[must_use]
pub fn was_closed(stream: Stdio) -> bool {
    CLOSED.load(Ordering::Relaxed) & 1 << stream as u8 != 0
}
