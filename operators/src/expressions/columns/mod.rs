//! Expressions in the place of columns: of inputs, of `select`, of calls, and of conditions on
//! blocks.
//!
//! | file | contents |
//! |---|---|
//! | `input` | Columns that a parameter names: a column of the input, or an expression over its columns |
//! | `select` | Columns of `select`: expressions with names, all columns, and lists whose values become rows |
//! | `calls` | Calls of functions that an operator knows, with expressions as arguments |
//! | `rows` | Expressions over the rows of a batch, in which some rows may have no value |
//! | `bounds` | Conditions on the least and the greatest value of each column, for blocks of rows whose bounds a file states |

pub(crate) mod bounds;
pub(crate) mod calls;
pub(crate) mod input;
pub(crate) mod rows;
pub(crate) mod select;
