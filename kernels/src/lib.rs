//! Data-parallel primitives: slices in, numbers out.
//!
//! A primitive is a folder: `mod.rs` states its contract, its loop is written once over a trait
//! of registers, and one file per instruction set implements that trait. Every level returns the
//! same bits, and one test suite runs over all levels of the machine. A call names its level as
//! an [`Isa`], chosen once per process by [`Isa::selected`] and passed once per batch. Primitives
//! that also run on GPUs have a launcher in [`cuda`].
//!
//! Rooms inside of a primitive have the same names everywhere: `levels` has the trait and a file
//! for each instruction set, `published` has algorithms of papers that no program chooses by
//! itself, and `tests` compares all levels with loops that call no code of the crate.
//!
//! | module | primitive |
//! |---|---|
//! | [`filter`] | searches each item in a handful of bins |
//! | [`sieve`] | takes the few hottest keys out of a batch, and counts codes in a table |
//! | [`sets`] | sets of tokens: their signatures, and their sorting |
//! | [`overlap`] | the overlap of candidate pairs of sets |
//! | [`postings`] | candidates by lists of postings, sorted by size |
//! | [`stream_postings`] | candidates by lists of postings in the order of arrival |
//! | [`signatures`] | all pairs of sets by their signatures, tile by tile |
//! | [`supports`] | the supports of all pairs of items, in several layouts |
//! | [`batmap`] | supports of pairs and triples of tid lists, by a comparison of bytes |
//! | [`inverted`] | conjunctive queries over inverted lists |
//! | [`text`] | kinds of the bytes of a text, its lower case, lines of integers, columns of texts |
//! | [`vectors`] | pairs of vectors within a distance |
//! | [`memory`] | huge pages for large tables, and pages back to the system |
//! | [`stdio`] | standard streams that were closed when the program started |
//!
//! [`run_compiled_for`] runs loops of other crates, compiled for a level; [`prefetch`] fetches
//! memory that these loops will read.
//!
//! Absent on purpose: no primitive knows a batch, a thread, a channel or a configuration.

pub mod batmap;
mod compiled;
pub mod cuda;
pub mod filter;
pub mod inverted;
mod isa;
pub mod memory;
pub mod overlap;
pub mod postings;
pub mod sets;
pub mod sieve;
pub mod signatures;
mod simd;
#[cfg(target_os = "linux")]
pub mod stdio;
pub mod stream_postings;
pub mod supports;
pub mod text;
pub mod vectors;

pub use compiled::{Routine, run_compiled_for};
pub use isa::{ISA_VARIABLE, Isa, IsaError};
pub use simd::prefetch;
