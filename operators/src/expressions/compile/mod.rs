//! From the text of an expression to nodes.
//!
//! | file | contents |
//! |---|---|
//! | `tree` | From trees to nodes: names, fields, conditional expressions, calls |
//! | `parse` | From texts to trees of the crate `sqlparser` |
//! | `literals` | Literals |
//! | `types` | Types in which two operands meet |

pub(crate) mod literals;
pub(crate) mod parse;
pub(crate) mod tree;
pub(crate) mod types;
