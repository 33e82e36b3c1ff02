//! Sets of an input: of a column or a program, with ids and carried columns.
//!
//! | file | contents |
//! |---|---|
//! | `column` | The sets of an input: a column or an expression, a list of integers or of texts |
//! | `reader` | Sets of a program, in the form that joins take |
//! | `source` | The rows of an input of a join of sets: ids, sets and carried columns |
//! | `carrier` | Carried columns during the collection of the sets |

pub(crate) mod carrier;
pub(crate) mod column;
pub(crate) mod reader;
pub(crate) mod source;
