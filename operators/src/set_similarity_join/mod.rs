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
//! | file | what it holds |
//! |---|---|
//! | `threshold`, `bounds` | exact rationals; required overlaps, sizes and prefixes |
//! | `collector`, `collection` | sets as they come; numbered and sorted |
//! | `prefix` | what the published filters, buckets and streams share |
//! | `prefix_join`, `group_join` | AllPairs, PPJoin; GroupJoin |
//! | `signature_join` | `auto`, on the kernels of `postings` |
//! | `tile_join` | all pairs in tiles, on the kernels of `signatures` |
//! | `buckets` | which sizes `auto` compares with all, on a device |
//! | `chunk`, `join` | candidates to be verified; a join as a library |
//! | `verify_mode`, `price` | how and where candidates are verified; when a device pays |
//! | `operator`, `stages` | the operator of a pipeline; its first and last part |
//! | `input`, `carried`, `rows` | what comes in, what goes along, what comes out |
//! | `candidates`, `outbox` | what travels between the parts, as a chunk of a [wave](crate::wave) |
//! | `stream` | the join of a stream: windows, and duplicates |

mod bounds;
mod buckets;
mod candidates;
mod carried;
mod chunk;
mod collection;
mod collector;
mod group_join;
mod input;
mod join;
mod operator;
mod outbox;
mod prefix;
mod prefix_join;
mod price;
mod rows;
mod signature_join;
mod stages;
mod stream;
#[cfg(test)]
mod tests;
mod threshold;
mod tile_join;
mod verify_mode;

pub use self::bounds::Similarity;
pub use self::chunk::{CandidateChunk, JoinedSets};
pub use self::collection::SetCollection;
pub use self::collector::{JoinError, SetCollector, Side, TOKENS_MAX};
pub use self::join::{JoinAlgorithm, JoinCounters, SetJoin, SimilarPair};
pub use self::operator::{JoinMode, JoinOutput, SetSimilarityJoin};
pub use self::stream::JoinWindow;
pub use self::threshold::{Threshold, ThresholdError};
pub use self::verify_mode::VerifyMode;
