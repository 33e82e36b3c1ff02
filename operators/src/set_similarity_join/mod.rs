//! Exact set-similarity join: all pairs of sets that are at least as similar as a threshold.
//!
//! ```text
//! sets ──► collection: tokens by ascending frequency, sets by size
//!            └─► filter: index, candidates ──► chunk ──► verify ──► chunk, overlaps ──► pairs
//! ```
//!
//! Collection mode: when all sets have come, tokens are numbered anew so that rare ones come first.
//! In the published joins each set in turn looks up the tokens of its prefix in an index of those
//! before it, which are not larger; `auto` joins the list of postings of each token to itself, and
//! `gpu_signatures` has no index. What the filters leave goes to the verification in chunks of
//! bounded size, which describe themselves, so that another part, or a device, may verify one while
//! the next is made.
//!
//! Stream mode, with a `window` or to deduplicate: each set is joined to those before it when it
//! comes.
//!
//! Sources: Mann, Augsten, Bouros, *An Empirical Evaluation of Set Similarity Join Techniques*,
//! PVLDB 9(9), 2016, for the filters; Bellas, Gounaris, *Speeding-up the Verification Phase of Set
//! Similarity Joins in the GPGPU paradigm*, 2018, §3, for the chunks. Departures: bounds are exact
//! integers ([`Threshold`]), and entries of a chunk name both their ends. `auto` is ours.
//!
//! | room | contents |
//! |---|---|
//! | `operator`, `options`, `bind` | the parameters, and the parts that follow from them |
//! | `similarity` | exact thresholds; required overlaps, sizes and prefixes |
//! | `candidates` | pairs and tiles on their way to the verification |
//! | `find` | PREPARE: finders of candidates |
//! | `cost` | where candidates are verified, and which sizes are joined by tiles |
//! | `verify` | KERNEL: the verification on the CPU and on a device |
//! | `collect` | COLLECT: rows of pairs |
//! | `prepare` | the first part of the operator: sets, then chunks of candidates |
//! | `join` | a join as a library |
//! | `stream` | the join of a stream: windows, and duplicates |

mod bind;
mod candidates;
mod collect;
mod cost;
mod error;
mod find;
mod join;
mod operator;
mod options;
mod prepare;
mod similarity;
mod stream;
#[cfg(test)]
mod tests;
mod verify;

pub use self::candidates::chunk::CandidateChunk;
pub use self::candidates::joined_sets::JoinedSets;
pub use self::candidates::pairs::SimilarPair;
pub use self::error::JoinError;
pub use self::find::JoinCounters;
pub use self::join::SetJoin;
pub use self::operator::SetSimilarityJoin;
pub use self::options::{JoinAlgorithm, JoinMode, JoinOutput, VerifyMode};
pub use self::similarity::{Similarity, Threshold, ThresholdError};
pub use self::stream::JoinWindow;
pub use crate::budget::BudgetFull;
pub use crate::sets::{SetBlock, SetCollection, SetCollector, SetError, Side, TOKENS_MAX};
