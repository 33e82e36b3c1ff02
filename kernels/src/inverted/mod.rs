//! Conjunctive queries over inverted lists: the documents that have all terms of a query.
//!
//! An index has for each term the list of the ascending ids of its documents. A [`Segment`] is an
//! immutable part of an index, in memory as in its file: words of 32 bits, little-endian, that a
//! program may map into memory and query without a copy.
//!
//! ```text
//! header   16 words   documents, terms, postings (two words), zeros
//! table     4 words a term: length, form and width of buckets, place, groups; or two ids
//! lists               in the order of terms, each with its groups, if it has them; bitmaps and
//!                     groups aligned to 64 bytes
//! margin   16 words   zeros, so that a block that begins in a list ends in the segment
//! ```
//!
//! The header, the table and the first list begin at multiples of 64 bytes. A list has the form
//! that its density makes cheapest:
//!
//! | form | lists | bytes an id | search of an id |
//! |---|---|---|---|
//! | inline | at most two ids | 0: the ids are in the table | compares blocks, or gallops |
//! | plain | so few ids that a directory is larger | 4 | compares blocks, or gallops |
//! | buckets | up to a document in 64 | 2.3 to 2.7; up to 4 if they are few | one word of a directory, one block |
//! | bits | denser lists | 8 down to 1/8 | one bit |
//!
//! The ids of a list in buckets are cut into buckets of `1 << shift` documents, the smallest width
//! with an average of at least six ids in a bucket. The bucket tells the upper part of an id, and
//! the lower 16 bits are stored:
//!
//! ```text
//! directory   0       7      12      12   ..        one word a bucket, and the end of the last
//!             │       │       └───────┴─ empty
//! halves      h h h h h h h│h h h h h│h h ..        id = upper 16 bits of the bucket | half
//!                          └─ 16 halves from here are compared with that of an id at once
//! ```
//!
//! A list whose ids are close to each other, as in text, has *groups* after it: the words of the
//! groups of 64 documents that are not empty, and a summary with a bit for each group. Groups are
//! another copy of the ids; a list has groups only if they take at most 14 bytes for each id. A
//! bitmap has a summary if at most half of its groups have a document. Devices do not read groups.
//!
//! A query begins with the ids of its shortest list, drops the ids that are not in the second
//! shortest list, and so on: its work is proportional to the shortest list. Each step takes the
//! cheapest way:
//!
//! ```text
//! all lists are bitmaps               words of all of them at once
//! or have groups, and one a summary   words of the groups that all of them share
//! the list is at most 4 times longer  merge, 16 ids with 16 ids; halves are decoded before
//! else                                a bit, a bucket, or a gallop for each id
//! ```
//!
//! The last step of a count writes nothing.
//!
//! Source: Wu, Zhang, Ao, Wang, Liu, Wang, *A Batched GPU Algorithm for Set Intersection*, ISPAN
//! 2009: §I (shortest list first), §II (a search for each id of that list), §III (batches).
//! Departures:
//!
//! - A directory replaces the binary search (§II), which misses the cache a dozen times for each
//!   id of a long list.
//! - The paper has one form of list. Bitmaps and halves are smaller, and searched faster.
//! - Lists of similar lengths are merged. The paper partitions them (§II), which pays from 100,000
//!   ids on.
//! - Lists of close ids are combined by groups, which skips the documents between them.
//! - A search that fails ends the work for its id; the paper marks the id, scans the marks and
//!   compacts (§III), since its threads proceed together.
//!
//! Left out: positions, weights and deletions of documents; compression below two bytes for each
//! id, since each search would have to decode.
//!
//! | file | contents |
//! |---|---|
//! | `query`, `document_set` | a query; documents from outside |
//! | `one`, `batch`, `fetch` | the answer to one query; queries that are answered together; the fetch of their lists into the cache |
//! | `plan`, `scratch` | the order of the lists of a query; memory that is used again |
//! | `cost` | the time of a query, by a model |
//! | `segment` | a segment: its bytes as words (`cast`), places and forms of lists (`layout`), its parts (`view`), the check of its bytes (`validate`), a list in its form (`list`), lists by groups of 64 documents (`groups`), the lists that a batch names (`named`) |
//! | `writing` | documents into lists (`build`), lists into words (`encode`), several segments into one (`merge_segments`) |
//! | `levels` | blocks of 16 ids and lines of 512 bits, as traits, and a file for each level |
//! | `answers` | the answer to a query, as a trait: the reference (`scalar`) and the answer by registers (`steps`) |
//! | `answers/probe`, `answers/merge_lists` | a step: by searches, by a merge |
//! | `answers/dense`, `answers/common_groups` | bitmaps alone, also for all queries of a batch; lists with groups alone |
//! | `answers/sink`, `answers/line_sink` | counts or documents, of ids and of lines |

mod answers;
mod batch;
mod cost;
mod document_set;
mod fetch;
mod levels;
mod one;
mod plan;
mod query;
mod scratch;
mod segment;
#[cfg(test)]
mod tests;
mod writing;

pub use self::batch::{BatchScratch, FoundDocuments, QueryBatch};
pub use self::document_set::DocumentSet;
pub use self::query::Query;
pub use self::scratch::QueryScratch;
pub use self::segment::{ListNamer, NamedLists, Segment, SegmentError};
pub use self::writing::{
    ListRun, MergePart, MergedLists, MergedTerms, SegmentBuilder, SegmentBytes, merge, merge_ranges,
};
