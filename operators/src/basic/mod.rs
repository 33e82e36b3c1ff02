//! Operators without an algorithm of their own.

mod map;
mod union;

pub use map::Map;
pub use union::Union;
