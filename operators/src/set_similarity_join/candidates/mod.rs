//! Candidates on their way from a finder to the verification: pairs, and tiles of all pairs.
//!
//! | file | contents |
//! |---|---|
//! | `chunk` | candidate pairs |
//! | `tiles` | tiles |
//! | `joined_sets` | the sets that both name |
//! | `pairs` | similar pairs |

pub(crate) mod chunk;
pub(crate) mod joined_sets;
pub(crate) mod pairs;
pub(crate) mod tiles;
