//! Batmaps on a device, as in the paper.
//!
//! Maps are sent once; a chunk counts the supports of all pairs of two ranges of maps.

pub(super) mod map_pairs;
pub(super) mod maps;
