//! Inverted lists in chosen forms, queries over them, and the documents of queries by hand.

use std::collections::BTreeSet;

use trommel_kernels::inverted::{Segment, SegmentBytes};

use super::cases::{Numbers, narrow};

/// The form of a list in a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Inline,
    Plain,
    /// Buckets of `1 << shift` documents.
    Buckets(u32),
    Bits,
}

/// Lists, and queries over them.
pub(crate) struct ListCase {
    pub(crate) name: &'static str,
    documents: u32,
    lists: Vec<(Form, BTreeSet<u32>)>,
    pub(crate) offsets: Vec<u32>,
    pub(crate) terms: Vec<u32>,
}

impl ListCase {
    pub(crate) fn new(name: &'static str, documents: u32) -> Self {
        Self { name, documents, lists: Vec::new(), offsets: vec![0], terms: Vec::new() }
    }

    /// Adds a list, whose term is the number of earlier lists.
    pub(crate) fn list(mut self, form: Form, ids: impl IntoIterator<Item = u32>) -> Self {
        self.lists.push((form, ids.into_iter().collect()));
        self
    }

    /// Adds a query.
    pub(crate) fn query(mut self, terms: &[u32]) -> Self {
        self.terms.extend_from_slice(terms);
        self.offsets.push(narrow(self.terms.len()));
        self
    }

    /// Adds a query for each term, and for each pair of terms.
    pub(crate) fn all_pairs(mut self) -> Self {
        for left in 0..narrow(self.lists.len()) {
            self = self.query(&[left]);
            for right in 0..left {
                self = self.query(&[left, right]);
            }
        }
        self
    }

    /// Adds queries of `len` drawn terms.
    pub(crate) fn drawn(mut self, queries: u32, len: usize, seed: u64) -> Self {
        let mut numbers = Numbers::new(seed);
        let terms = narrow(self.lists.len());
        for _ in 0..queries {
            let drawn: Vec<u32> = (0..len).map(|_| numbers.below(terms)).collect();
            self = self.query(&drawn);
        }
        self
    }

    /// The number of queries.
    pub(crate) fn queries(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Number of ids of the longest list.
    pub(crate) fn longest(&self) -> usize {
        self.lists.iter().map(|(_, ids)| ids.len()).max().unwrap_or(0)
    }

    /// The documents of each query.
    pub(crate) fn by_hand(&self) -> Vec<Vec<u32>> {
        let queries = self.offsets.windows(2);
        queries.map(|ends| self.answer(&self.terms[ends[0] as usize..ends[1] as usize])).collect()
    }

    fn answer(&self, terms: &[u32]) -> Vec<u32> {
        let none = (Form::Inline, BTreeSet::new());
        let lists = terms.iter().map(|&term| &self.lists.get(term as usize).unwrap_or(&none).1);
        let mut lists: Vec<&BTreeSet<u32>> = lists.collect();
        lists.sort_by_key(|list| list.len());
        let Some((first, others)) = lists.split_first() else { return Vec::new() };
        let is_in_others = |id: &u32| others.iter().all(|list| list.contains(id));
        first.iter().copied().filter(is_in_others).collect()
    }

    /// The segment, written by the layout in the documentation of segments.
    pub(crate) fn segment(&self) -> Segment<SegmentBytes> {
        let postings: usize = self.lists.iter().map(|(_, ids)| ids.len()).sum();
        let mut words = vec![0; 16];
        words[..3].copy_from_slice(&[self.documents, narrow(self.lists.len()), narrow(postings)]);
        let mut place = (16 + 4 * self.lists.len()).next_multiple_of(16);
        let mut lists = Vec::new();
        for (form, ids) in &self.lists {
            let mut row = [narrow(ids.len()), 0, 0, 0];
            if *form == Form::Inline {
                ids.iter().zip(&mut row[2..]).for_each(|(&id, word)| *word = id);
            } else {
                if *form == Form::Bits {
                    lists.resize(lists.len() + place.next_multiple_of(16) - place, 0);
                    place = place.next_multiple_of(16);
                }
                row[1..3].copy_from_slice(&[form.code(), narrow(place)]);
                let list = form.encode(self.documents, ids);
                place += list.len();
                lists.extend(list);
            }
            words.extend(row);
        }
        words.resize(words.len().next_multiple_of(16), 0);
        words.extend(lists);
        words.resize((words.len() + 16).next_multiple_of(16), 0);
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        Segment::new(SegmentBytes::copy_of(&bytes).unwrap()).unwrap()
    }
}

impl Form {
    fn code(self) -> u32 {
        match self {
            Self::Inline => 0,
            Self::Plain => 1,
            Self::Buckets(shift) => 2 | shift << 8,
            Self::Bits => 3,
        }
    }

    /// The words of a list outside of the table.
    fn encode(self, documents: u32, ids: &BTreeSet<u32>) -> Vec<u32> {
        match self {
            Self::Inline => Vec::new(),
            Self::Plain => ids.iter().copied().collect(),
            Self::Buckets(shift) => {
                let last = (documents - 1) >> shift;
                let mut ends = vec![0; last as usize + 2];
                ids.iter().for_each(|id| ends[(id >> shift) as usize + 1] += 1);
                for bucket in 0..=last as usize {
                    ends[bucket + 1] += ends[bucket];
                }
                let halves: Vec<u32> = ids.iter().map(|id| id & 0xffff).collect();
                let pair = |pair: &[u32]| pair[0] | pair.get(1).copied().unwrap_or(0) << 16;
                ends.into_iter().chain(halves.chunks(2).map(pair)).collect()
            }
            Self::Bits => {
                let mut words = vec![0; documents.div_ceil(32) as usize];
                ids.iter().for_each(|id| words[(id / 32) as usize] |= 1 << (id % 32));
                words
            }
        }
    }
}
