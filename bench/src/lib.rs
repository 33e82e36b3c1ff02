//! The pipeline of the engine's measurements, which the micro-benchmarks share.

pub mod pipeline;
pub mod work;
