//! The published joins: AllPairs, PPJoin with and without the bitmap filter, and GroupJoin.
//!
//! | file | contents |
//! |---|---|
//! | `prefix_index` | the index of prefixes |
//! | `prefix_join` | AllPairs, PPJoin, PPJoin with the bitmap filter |
//! | `group_join` | GroupJoin |

pub(crate) mod group_join;
pub(crate) mod prefix_index;
pub(crate) mod prefix_join;
