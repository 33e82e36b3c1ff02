//! Documents and segments into the words of a segment.
//!
//! `build` gathers documents into lists, `encode` writes lists in the form that is the smallest for
//! their density, and `merge_segments` makes one segment of several.

pub(super) mod build;
pub(super) mod encode;
pub(super) mod merge_segments;
