//! The parameters of the operator, their checks, and the parts that they make.
//!
//! | file | contents |
//! |---|---|
//! | `operator` | `frequent_items` as an operator of a pipeline: its parameters |
//! | `bind` | From the parameters of the operator to its parts |

pub(crate) mod bind;
pub(crate) mod operator;
