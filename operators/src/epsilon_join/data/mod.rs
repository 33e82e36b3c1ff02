//! Vectors of an input: collected, made ready in rounds of tasks, and ready.
//!
//! | file | contents |
//! |---|---|
//! | `side` | The vectors of one input while they are collected |
//! | `vectors` | The vectors of an input: a column of lists, an expression, or a column for each coordinate |
//! | `building` | Vectors of an input while they are made ready, in rounds of tasks that kernels do side by side |
//! | `built` | Vectors that are ready to be joined, with ids and columns for their rows |
//! | `copies` | Copies of vectors: equal ones are joined once |
//! | `crowds` | Crowds: vectors with many partners, of which an output of first ones needs one |

pub(crate) mod building;
pub(crate) mod built;
pub(crate) mod copies;
pub(crate) mod crowds;
pub(crate) mod side;
pub(crate) mod vectors;
