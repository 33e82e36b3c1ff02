//! The parts of the project commands that tests use too.
#![forbid(unsafe_code)]

pub mod figures;
