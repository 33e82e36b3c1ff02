//! Batmaps on a device, as in the paper.
//!
//! Maps are sent once; a chunk counts the supports of all pairs of two ranges of maps.

mod map_pairs;
mod maps;

pub use self::map_pairs::{MAP_PAIRS_MIN, MapJob, MapPairs, MapsAnswered, MapsKept};
pub use self::maps::DeviceMaps;
