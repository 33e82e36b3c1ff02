//! The parameters of the operator, their checks, and the parts that they make.
//!
//! | file | contents |
//! |---|---|
//! | `operator` | Parameters of the operator `conjunctive_query` |
//! | `options` | Values of the parameters |
//! | `bind` | Checks the parameters of the operator and makes its parts |
//! | `tuning` | Sizes that are no parameters |

pub(crate) mod bind;
pub(crate) mod operator;
pub(crate) mod options;
pub(crate) mod tuning;
