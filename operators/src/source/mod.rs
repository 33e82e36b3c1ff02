//! Operators without an input port.

mod feed;
mod generate;
mod memory;
mod read;

pub use feed::{Feed, FeedError, Feeder};
pub use generate::{Generate, GenerateKind, VectorDistribution, Zipf, ZipfError};
pub use memory::Memory;
pub use read::{Invalid, NpyError, Read, ReadError, ReadFormat, ReadFrom, TableError};
