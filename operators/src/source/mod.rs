//! Operators without an input port.

mod generate;
mod memory;
mod read;

pub use generate::{Generate, GenerateKind, Zipf, ZipfError};
pub use memory::Memory;
pub use read::{OnError, Read, ReadError, ReadFormat};
