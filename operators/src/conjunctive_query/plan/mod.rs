//! Queries that wait, batches of queries, and their costs.
//!
//! | file | contents |
//! |---|---|
//! | `waiting` | Queries that have arrived, before they are in buckets: each batch waits for its index |
//! | `queries` | Queries that are answered together |
//! | `buckets` | Buckets of queries whose shortest lists have similar lengths: the semi-sort of the paper (§III), for queries that arrive one after the other |
//! | `cost` | Costs of a batch of queries on a device, in nanoseconds |
//! | `limits` | Limits of a device: the largest chunk, and the memory for the index |

pub(crate) mod buckets;
pub(crate) mod cost;
pub(crate) mod limits;
pub(crate) mod queries;
pub(crate) mod waiting;
