//! Data-parallel primitives: slices in, numbers out.
//!
//! A primitive is a folder: `mod.rs` states its contract and dispatches, its reference is in
//! `scalar.rs` or where the table of its files says, and one file per instruction set says how the
//! registers of that set do it. Every level returns the same bits, and one test suite runs over all
//! levels of the machine. A call names its level as an [`Isa`], chosen once per process by
//! [`Isa::selected`] and passed once per batch.
//!
//! What is absent: nothing here knows a batch, a thread, a channel or a configuration.

pub mod arrivals;
#[cfg(target_arch = "x86_64")]
mod bits;
pub mod cuda;
pub mod filter;
mod isa;
pub mod overlap;
pub mod postings;
mod prefetch;
pub mod sets;
pub mod sieve;
pub mod signatures;

pub use isa::{ISA_VARIABLE, Isa, IsaError};
