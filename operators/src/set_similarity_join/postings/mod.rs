//! Postings of a collection: prefixes, lengths of lists, and signatures of sets, from which costs
//! follow and indexes are made.
//!
//! | file | contents |
//! |---|---|
//! | `prefix` | prefix lengths, ranges of partner sizes, posting lists |
//! | `lists` | the lengths of posting lists, cut into slices |
//! | `signatures` | signatures of all sets, and their length |
//! | `planning` | lengths of posting lists and signatures, in tasks for several cores |

pub(crate) mod lists;
pub(crate) mod planning;
pub(crate) mod prefix;
pub(crate) mod signatures;
