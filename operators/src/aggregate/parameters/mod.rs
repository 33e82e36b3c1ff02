//! The parameters of the operator, and the way from parameters to parts.
//!
//! | file | contents |
//! |---|---|
//! | `operator` | The declaration of the parameters |
//! | `bind` | From the parameters of the operator to its parts |
//! | `plan` | The columns of the rows, and the accumulators that make the columns |

pub(crate) mod bind;
pub(crate) mod operator;
pub(crate) mod plan;
