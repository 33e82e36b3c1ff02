//! Sets of tokens, in the form that all primitives over sets take.
//!
//! ```text
//! set       |   0   | 1 |    2    |
//! offsets   0       3   4         7      one more than sets
//! tokens    | 3 8 9 | 4 | 2 3 5 8 |      strictly ascending within a set
//! ```
//!
//! [`Sets`] borrows such arrays and has checked them; [`SetStore`] owns such arrays, for many
//! calls.

mod sign;
mod sort;
mod store;
#[cfg(test)]
mod tests;

pub use self::sign::{sign, sign_sets};
pub use self::sort::sort_lists;
pub use self::store::{SetStore, Sets};
