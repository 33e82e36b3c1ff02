//! Layouts of papers and textbooks, which no plan chooses by itself: a program names them, and
//! measurements compare with them.

pub(super) mod bitmap;
pub(super) mod lists;
mod shared_bits;
pub(super) mod triangle;
