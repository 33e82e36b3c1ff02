//! Shared parts of the measurements: the measured pipelines, repetition, and figures.

pub mod measure;
pub mod pipeline;
pub mod plot;
