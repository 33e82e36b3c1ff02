//! What the measurements share: the pipelines that are measured, how, and how it is drawn.

pub mod measure;
pub mod pipeline;
pub mod plot;
