//! Operators that hold no algorithm of their own.

mod map;

pub use map::Map;
