//! The parameters of the operator, their checks, and the parts that they make.
//!
//! | file | contents |
//! |---|---|
//! | `operator` | Parameters of the operator `epsilon_join` |
//! | `options` | Enumerated parameters of an epsilon join |
//! | `bind` | Checks the parameters of the operator and makes its parts |
//! | `rules` | Parameters of a join, checked |
//! | `tuning` | Sizes that are no parameters |
//! | `error` | Errors of epsilon joins |

pub(crate) mod bind;
pub(crate) mod error;
pub(crate) mod operator;
pub(crate) mod options;
pub(crate) mod rules;
pub(crate) mod tuning;
