//! The parameters of the operator, their checks, and the parts that they make.
//!
//! | file | contents |
//! |---|---|
//! | `operator` | Parameters of the operator `set_similarity_join` |
//! | `options` | Enumerated parameters of a join |
//! | `bind` | Checks the parameters of the operator and makes its parts |
//! | `tuning` | Sizes of a join that are no parameters: they change its speed and its limits, not its results |
//! | `error` | Errors of joins |

pub(crate) mod bind;
pub(crate) mod error;
pub(crate) mod operator;
pub(crate) mod options;
pub(crate) mod tuning;
