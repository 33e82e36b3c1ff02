//! KERNEL: the chunk of the operator, and its answer on the CPU.
//!
//! | file | contents |
//! |---|---|
//! | `chunk` | The chunk of the operator: blocks to be transposed, lists to be joined, tasks to be counted |
//! | `count` | KERNEL: transposes blocks, joins lists, and counts the pairs and triples of tasks |
//! | `columns` | Blocks of columns in their layouts |
//! | `triples` | The triples of pairs with the items of a block of columns |

pub(crate) mod chunk;
pub(crate) mod columns;
pub(crate) mod count;
pub(crate) mod triples;
