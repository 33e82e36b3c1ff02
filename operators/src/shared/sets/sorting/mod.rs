//! From the order of arrival to the order of a collection, in rounds of tasks.
//!
//! | file | contents |
//! |---|---|
//! | `rounds` | Sorts collected sets in rounds of tasks, which several cores can do at the same time |
//! | `shelves` | Shelves: sets between the order of arrival and the order of a collection |
//! | `order` | The order of sets in a collection: by size, side and tokens |

pub(crate) mod order;
pub(crate) mod rounds;
pub(crate) mod shelves;
