//! Operators without an input port.

mod generate;
mod memory;
mod read;

pub use generate::{Generate, GenerateKind, VectorDistribution, Zipf, ZipfError};
pub use memory::Memory;
pub use read::{NpyError, OnError, Read, ReadError, ReadFormat};
