//! Similar pairs.

use super::chunk::CandidateChunk;
use super::joined_sets::{JoinedSets, Partner};
use crate::set_similarity_join::similarity::Similarity;
use crate::shared::columns::pairs::PairSide;

/// Two similar sets.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SimilarPair {
    /// Id of the left set; in a self-join, the smaller id.
    pub left: u32,
    /// Id of the right set.
    pub right: u32,
    /// Number of common tokens.
    pub overlap: u32,
    /// Similarity of the sets.
    pub similarity: f64,
}

/// A similar pair and its sets.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Match<'a> {
    pub(crate) left: Partner<'a>,
    pub(crate) right: Partner<'a>,
    /// Number of common tokens.
    pub(crate) overlap: u32,
}

impl<'a> Match<'a> {
    /// The pair `probe` and `candidate` of `sets`, which have `overlap` common tokens.
    pub(crate) fn new(sets: &'a JoinedSets, probe: u32, candidate: u32, overlap: u32) -> Self {
        let [left, right] = sets.partners(probe, candidate);
        Self { left, right, overlap }
    }

    /// The two sets as sides of a row.
    pub(crate) fn sides(&self) -> [PairSide<'a>; 2] {
        [self.left, self.right].map(Partner::as_side)
    }

    /// The ids and the similarity.
    pub(crate) fn pair(&self, similarity: Similarity) -> SimilarPair {
        let Self { left, right, overlap } = *self;
        let similarity = similarity.of(overlap, left.size(), right.size());
        SimilarPair { left: left.id(), right: right.id(), overlap, similarity }
    }
}

/// The similar pairs of `chunk`, given the `overlaps` of all its pairs.
pub(crate) fn matches<'a>(
    sets: &'a JoinedSets,
    chunk: &'a CandidateChunk,
    overlaps: &'a [u32],
) -> impl Iterator<Item = Match<'a>> + 'a {
    let similar = chunk.similar(overlaps);
    similar.map(|(probe, candidate, overlap)| Match::new(sets, probe, candidate, overlap))
}
