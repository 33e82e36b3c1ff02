//! Layouts of papers and textbooks. No plan chooses these layouts: a program names them, and
//! measurements compare with them.

mod bitmap;
mod lists;
mod shared_bits;
mod triangle;

pub use self::bitmap::BitmapColumns;
pub use self::lists::ListColumns;
pub use self::triangle::TriangleRows;
