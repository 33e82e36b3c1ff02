//! COLLECT: rows of pairs and triples.
//!
//! | file | contents |
//! |---|---|
//! | `collect` | COLLECT: rows of frequent pairs and triples |

pub(crate) mod collect;
