//! What the measurements share: the pipelines that are measured, and how.

pub mod measure;
pub mod pipeline;
