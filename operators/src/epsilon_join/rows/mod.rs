//! COLLECT: rows of pairs, counts, partners and first vectors.
//!
//! | file | contents |
//! |---|---|
//! | `collect` | COLLECT: rows of pairs, their number, or rows of vectors |

pub(crate) mod collect;
