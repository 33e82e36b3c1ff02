//! Operators without an output port.

mod collect;
mod discard;
mod for_each;
mod write;

pub use collect::{Collect, Collected};
pub use discard::Discard;
pub use for_each::ForEach;
pub use write::{Rotate, RotateCompression, ValueError, Write, WriteError, WriteFormat};
