//! Exact set-similarity join: all pairs of sets that are at least as similar as a threshold.
//!
//! ```text
//! sets ──► collection: tokens by ascending frequency, sets by size
//!            └─► prepare: index, candidates ──► chunk ──► verify ──► chunk, overlaps ──► pairs
//! ```
//!
//! **Collection.** When the inputs have ended, tokens are numbered by ascending frequency, so that
//! rare tokens come first in each set. In the published joins, each set looks up the tokens of its
//! prefix in an index of the earlier sets, which are not larger. `auto` takes the way that costs
//! least by its model: the posting list of each token is joined to itself, the signatures of all
//! pairs are compared, or PPJoin is used. `gpu_signatures` has no index. The candidate pairs that
//! pass the filters are verified in chunks of bounded size. A chunk needs nothing but its sets, so
//! another part or a device can verify the chunk while the next chunk is filled.
//!
//! **Stream.** With a `window`, or to deduplicate, each set is joined on arrival to the earlier
//! sets.
//!
//! Sources: Mann, Augsten, Bouros, *An Empirical Evaluation of Set Similarity Join Techniques*,
//! PVLDB 9(9), 2016, for the filters; Bellas, Gounaris, *Speeding-up the Verification Phase of Set
//! Similarity Joins in the GPGPU paradigm*, 2018, §3, for the chunks. Departures from the papers:
//! bounds are exact integers ([`Threshold`]), an entry of a chunk has both ends of its range, and
//! the algorithm `auto` is new.
//!
//! | folder or file | contents |
//! |---|---|
//! | `parameters` | the parameters, their checks, and the parts that they make |
//! | `similarity` | exact thresholds; required overlaps, partner sizes and prefix lengths |
//! | `postings` | prefixes, lengths of posting lists, and signatures of sets |
//! | `plan` | costs: the way of `auto`, and what a device does |
//! | `candidates` | candidate pairs, and tiles of pairs |
//! | `find` | finders of candidates; the published joins |
//! | `prepare` | PREPARE: collects sets, then fills chunks |
//! | `stream` | PREPARE of a stream: windows, and deduplication |
//! | `answer` | KERNEL: the chunk, its verification on the CPU and on a device, and tasks of the CPU |
//! | `rows` | COLLECT: rows of pairs |
//! | `join` | a join as a library |

mod answer;
mod candidates;
mod find;
mod join;
mod parameters;
mod plan;
mod postings;
mod prepare;
mod rows;
mod similarity;
mod stream;
#[cfg(test)]
mod tests;

pub use self::candidates::chunk::CandidateChunk;
pub use self::candidates::joined_sets::JoinedSets;
pub use self::candidates::pairs::SimilarPair;
pub use self::find::JoinCounters;
pub use self::join::SetJoin;
pub use self::parameters::error::JoinError;
pub use self::parameters::operator::SetSimilarityJoin;
pub use self::parameters::options::{JoinAlgorithm, JoinMode, JoinOutput, VerifyMode};
pub use self::similarity::{Similarity, Threshold, ThresholdError};
pub use self::stream::JoinWindow;
pub use crate::shared::budget::BudgetFull;
pub use crate::shared::sets::{SetBlock, SetCollection, SetCollector, SetError, Side, TOKENS_MAX};
