//! Candidates between a finder and the verification: pairs, and tiles of all pairs.
//!
//! | file | contents |
//! |---|---|
//! | `chunk` | candidate pairs |
//! | `tiles` | tiles |
//! | `joined_sets` | the sets of candidate pairs and of tiles |
//! | `pairs` | similar pairs |

pub(crate) mod chunk;
pub(crate) mod joined_sets;
pub(crate) mod pairs;
pub(crate) mod tiles;
