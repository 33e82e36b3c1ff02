//! Queries.

use super::document_set::DocumentSet;
use super::segment::Segment;

/// A conjunction of terms: it asks for the documents that have all terms.
///
/// Terms may have any order and may repeat. An unknown term has no documents. A query without terms
/// has no documents either, as in search engines: an empty query does not ask for everything.
///
/// # Examples
///
/// ```
/// use trommel_kernels::inverted::{DocumentSet, Query};
///
/// let all = Query::from(&[3, 8]);
/// let some = Query { within: Some(DocumentSet::list(&[1, 5])), ..all };
/// assert_eq!(some.terms, [3, 8]);
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Query<'a> {
    /// The terms.
    pub terms: &'a [u32],
    /// The documents to which the query is restricted, if it is.
    pub within: Option<DocumentSet<'a>>,
}

impl<'a> From<&'a [u32]> for Query<'a> {
    fn from(terms: &'a [u32]) -> Self {
        Self { terms, within: None }
    }
}

impl<'a, const TERMS: usize> From<&'a [u32; TERMS]> for Query<'a> {
    fn from(terms: &'a [u32; TERMS]) -> Self {
        Self { terms, within: None }
    }
}

impl<'a> From<&'a Vec<u32>> for Query<'a> {
    fn from(terms: &'a Vec<u32>) -> Self {
        Self { terms, within: None }
    }
}

impl<B: AsRef<[u8]>> Segment<B> {
    /// The length of the shortest list of a query: but for a factor, an upper bound of the work of
    /// the query. Zero for an empty query and for a query with an unknown term.
    #[must_use]
    pub fn shortest(&self, terms: &[u32]) -> u32 {
        let view = self.view();
        terms.iter().map(|&term| view.len(term)).min().unwrap_or(0)
    }
}
