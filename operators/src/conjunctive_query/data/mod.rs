//! Documents on their way from a batch to an index, and the index as a file.
//!
//! | file | contents |
//! |---|---|
//! | `sets` | The sets of a batch, documents or queries, and the names of documents |
//! | `segments` | Segments of an index: their terms and names, and how they are built |
//! | `merging` | A merge of segments, in rounds of tasks |
//! | `growth` | An index that grows: blocks of documents, their segments, and merges of these |
//! | `index` | An index: segments that follow each other, and the answers to batches of queries |
//! | `stored` | The index as a file |

pub(crate) mod growth;
pub(crate) mod index;
pub(crate) mod merging;
pub(crate) mod segments;
pub(crate) mod sets;
pub(crate) mod stored;
