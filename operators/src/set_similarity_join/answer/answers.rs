//! Answers of a chunk: the outcome of its verification.

use trommel_kernels::signatures::{Counted, Joined};

#[cfg(doc)]
use crate::set_similarity_join::parameters::options::JoinOutput;

/// Answer of a chunk of pairs. The next chunk uses the same memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct OverlapAnswer {
    /// For each pair: its overlap, or `REJECTED`. Empty for [`JoinOutput::Count`].
    pub(crate) overlaps: Vec<u32>,
    /// Number of similar pairs. Only for [`JoinOutput::Count`].
    pub(crate) count: u64,
}

/// Answer of a chunk of tiles. The next chunk uses the same memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TilesAnswer {
    /// The matches, and the tiles for whose matches there was no room. Empty for
    /// [`JoinOutput::Count`].
    pub(crate) joined: Joined,
    /// Numbers of matches and survivors.
    pub(crate) counted: Counted,
}
