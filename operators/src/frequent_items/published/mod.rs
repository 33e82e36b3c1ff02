//! The Parallel Filter, as it was published.
//!
//! | file | contents |
//! |---|---|
//! | `parallel_filter` | Algorithm Parallel Filter: the filter's two halves as two parts, which may run on two cores |

pub(crate) mod parallel_filter;
