//! The lists of a query in the order of its steps.

use super::document_set::DocumentSet;
use super::query::Query;
use super::segment::{Form, Groups, List, View};

/// The term in the key of a list without a term: the documents to which a query is restricted.
const WITHIN: u32 = u32::MAX;

/// Documents for each id up to which ids meet most lines of a bitmap, so that the bitmap is read in
/// order.
const LINE_DOCUMENTS: u32 = 1024;

/// Number of terms of a query up to which its keys are sorted by insertion.
const FEW: usize = 8;

/// The lists of a query: the list whose ids are searched in all other lists, then these lists in
/// the order of the searches.
///
/// A key has the length of a list in the upper half, and its term in the lower half.
#[derive(Clone, Copy, Debug)]
pub(super) struct Steps<'a> {
    pub(super) view: View<'a>,
    pub(super) within: Option<DocumentSet<'a>>,
    pub(super) keys: &'a [u64],
}

impl<'a> Steps<'a> {
    /// Appends the lists of a query to `keys`; no list if the query has no documents.
    #[inline(always)]
    pub(super) fn plan(view: View<'a>, query: Query<'_>, keys: &mut Vec<u64>) {
        let begin = keys.len();
        if query.terms.is_empty() {
            return;
        }
        let lens = query.terms.iter().map(|&term| key(view.len(term), term));
        let lens = lens.chain(query.within.map(|within| key(within.len(), WITHIN)));
        if query.terms.len() <= FEW {
            for key in lens {
                insert(keys, begin, key);
            }
        } else {
            keys.extend(lens);
            keys[begin..].sort_unstable();
            dedup(keys, begin);
        }
        if len_of(keys[begin]) == 0 {
            keys.truncate(begin);
            return;
        }
        let is_bits = |&key: &u64| match term_of(key) {
            WITHIN => query.within.is_some_and(DocumentSet::is_bits),
            term => view.form(term) == Form::Bits,
        };
        // Ids come from the shortest list that is not a bitmap.
        if let Some(source) = keys[begin..].iter().position(|key| !is_bits(key)) {
            keys[begin..=begin + source].rotate_right(1);
            if len_of(keys[begin]) >= view.documents() / LINE_DOCUMENTS {
                bits_first(&mut keys[begin + 1..], view.documents(), is_bits);
            }
        }
    }

    /// The list of a key.
    #[inline(always)]
    pub(super) fn list(self, key: u64) -> List<'a> {
        match (term_of(key), self.within) {
            (WITHIN, Some(within)) => within.as_list(),
            (term, _) => self.view.list(term),
        }
    }

    /// The groups of the list of a key, if it has groups.
    #[inline(always)]
    pub(super) fn groups(self, key: u64) -> Option<Groups<'a>> {
        match (term_of(key), self.within) {
            (WITHIN, Some(_)) => None,
            (term, _) => self.view.groups(term),
        }
    }

    /// The first list, and the keys of all other lists; `None` if the query has no documents.
    #[inline(always)]
    pub(super) fn split(self) -> Option<(List<'a>, &'a [u64])> {
        let (&first, others) = self.keys.split_first()?;
        Some((self.list(first), others))
    }
}

/// Moves bitmaps to the front of lists that are sorted by length: a bit is found faster than an id
/// in a bucket, and few ids are left to search in buckets. Bitmaps with more than half of the
/// `documents` keep their place, since they drop few ids.
#[inline(always)]
fn bits_first(keys: &mut [u64], documents: u32, is_bits: impl Fn(&u64) -> bool) {
    if let Some(begin) = keys.iter().position(&is_bits) {
        let are_few = |key: &&u64| is_bits(key) && len_of(**key) <= documents / 2;
        let bitmaps = keys[begin..].iter().take_while(are_few).count();
        keys[..begin + bitmaps].rotate_right(bitmaps);
    }
}

fn key(len: u32, term: u32) -> u64 {
    u64::from(len) << 32 | u64::from(term)
}

/// The number of ids of the list of a key.
#[inline(always)]
pub(super) fn len_of(key: u64) -> u32 {
    (key >> 32) as u32
}

/// The term of a key.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "the lower half")]
pub(super) fn term_of(key: u64) -> u32 {
    key as u32
}

/// Inserts a key into the ascending keys from `begin` on, unless it is there.
#[inline(always)]
fn insert(keys: &mut Vec<u64>, begin: usize, key: u64) {
    keys.push(key);
    let mut at = keys.len() - 1;
    while at > begin && keys[at - 1] > key {
        keys[at] = keys[at - 1];
        at -= 1;
    }
    keys[at] = key;
    if at > begin && keys[at - 1] == key {
        keys.remove(at);
    }
}

/// Removes repeated keys, which are neighbours, from `begin` on.
fn dedup(keys: &mut Vec<u64>, begin: usize) {
    let (mut end, mut before) = (begin, None);
    for at in begin..keys.len() {
        let key = keys[at];
        keys[end] = key;
        end += usize::from(before.replace(key) != Some(key));
    }
    keys.truncate(end);
}
