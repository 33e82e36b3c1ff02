//! The ways from documents and segments to the words of a segment.
//!
//! `build` gathers documents into lists, `encode` writes lists in the form that is the smallest for
//! their density, and `merge_segments` makes one segment from several.

mod build;
mod encode;
mod merge_segments;

pub use self::build::SegmentBuilder;
#[cfg(test)]
pub(super) use self::encode::Encoding;
pub use self::encode::{ListRun, SegmentBytes};
pub use self::merge_segments::{MergePart, MergedLists, MergedTerms, merge, merge_ranges};
