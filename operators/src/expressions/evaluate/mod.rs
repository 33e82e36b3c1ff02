//! The values of nodes over the rows of a batch.
//!
//! | file | contents |
//! |---|---|
//! | `node` | Nodes of a compiled expression |
//! | `frame` | Evaluation of nodes over all rows of a batch, or over some rows |
//! | `value` | The values of a node: one for each row, or one for all rows |
//! | `cast` | Conversions between types, as DuckDB makes them: a number that does not fit is an error, floats are rounded to the nearest even integer, texts may have blanks around them |
//! | `compare` | Comparisons |
//! | `membership` | Membership in a list of constants, by a hash table |
//! | `operators` | Operators: arithmetic, comparisons, tests and logic |
//! | `pattern` | `like` and `ilike`: `%` is any text, `_` any character; no character escapes unless `escape` names one |

pub(crate) mod cast;
pub(crate) mod compare;
pub(crate) mod frame;
pub(crate) mod membership;
pub(crate) mod node;
pub(crate) mod operators;
pub(crate) mod pattern;
pub(crate) mod value;
