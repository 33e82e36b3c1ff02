//! The two steps from a part of a batch to rows, for each form of the output.
//!
//! | file | contents |
//! |---|---|
//! | `items` | a row for each token |
//! | `sets` | a set of numbers for each text |
//! | `text_sets` | a set of texts for each text |

pub(super) mod items;
pub(super) mod sets;
pub(super) mod text_sets;
