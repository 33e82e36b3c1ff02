//! Operators without an algorithm of their own.

mod evaluation;
mod filter;
mod map;
mod select;
mod union;

pub use filter::Filter;
pub use map::Map;
pub use select::Select;
pub use union::Union;
