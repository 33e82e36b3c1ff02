//! The supports of item pairs: the number of transactions that hold both items.
//!
//! Data lies vertically: an item has the ascending list of the transactions that hold it, its *tid
//! list*. Items are numbered; in a pair, the item with the higher number is the *row* and the item
//! with the lower number the *column*:
//!
//! ```text
//!            columns 0..512        512..1024
//!          ┌───────────────────┬──────────────
//!   row 1  │ x                 │
//!   row 2  │ x x               │        a pair is counted in the row of its higher item,
//!    ..    │ x x x             │        below the diagonal
//!   row n  │ x x x x ..        │ x x x ..
//!          └───────────────────┴──────────────
//! ```
//!
//! A *layout* is a form of the data that makes counting cheap. All layouts give the same pairs:
//!
//! | layout | data | cost of a pair |
//! |---|---|---|
//! | [`SlicedColumns`] | transactions as rows of bits of 512 columns | 1 / 512 of adding a row for each transaction of the higher item |
//! | [`BitmapColumns`] | for each item a bit for each transaction | `transactions / 8` bytes of two bitmaps |
//! | [`ListColumns`] | tid lists | both lists |
//! | [`SparseRows`] | transactions as lists, counters of a row | two additions for each common transaction |
//! | [`TriangleRows`] | transactions as lists, counters of all pairs | an addition for each common transaction |
//!
//! **Triples.** A row may also be a pair of items with the list of their common transactions
//! ([`Rows::pairs`], [`Marks`]). Then the columns are before the first item, and answers are
//! triples. Batmaps have [triples](crate::batmap::triple_support) of their own.
//!
//! If items are numbered by descending support, the blocks of columns go from dense to sparse, and
//! each block can have another layout.
//!
//! Source: sliced columns are ours; Amossen, Pagh, *A New Data Layout For Set Intersection on
//! GPUs*, IPDPS 2011, §I, names all further layouts for comparison or as a basis.
//!
//! | file | contents |
//! |---|---|
//! | `answer` | the pairs found |
//! | `rows`, `marks` | items or pairs as rows; the common transactions of a pair |
//! | `sliced`, `sparse` | the layouts that a plan chooses |
//! | `sliced/bit_row`, `sliced/digits` | rows of 512 bits as a trait of levels; sums of rows, digit by digit |
//! | `published` | layouts for comparison: `bitmap`, with `shared_bits` as a trait of levels, `lists` and `triangle` |
//! | `transactions` | transactions as lists, made of tid lists |

mod answer;
mod marks;
mod published;
mod rows;
mod sliced;
mod sparse;
#[cfg(test)]
mod tests;
mod transactions;

pub use self::answer::{FoundPairs, Pair};
pub use self::marks::Marks;
pub use self::published::{BitmapColumns, ListColumns, TriangleRows};
pub use self::rows::{RowPair, Rows};
pub use self::sliced::{COLUMNS, SlicedColumns};
pub use self::sparse::SparseRows;
