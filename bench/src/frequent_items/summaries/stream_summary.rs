//! SpaceSaving with a Stream-Summary, as published: the baseline of the paper's figures.
//!
//! ```text
//! lowest ─► bucket, count 3 ◄─► bucket, count 4 ◄─► bucket, count 9
//!             element ◄─► element    element           element
//! ```
//!
//! Elements of one count are a list in a bucket; buckets are a list by ascending count; a hash
//! table finds the element of an item. Each item takes constant time. Source: Metwally, Agrawal,
//! El Abbadi, *Efficient Computation of Frequent and Top-k Elements in Data Streams*, ICDT 2005,
//! §3.2. Lists are linked by numbers in place of pointers.

use rapidhash::RapidHashMap;

/// No element, or no bucket.
const NONE: u32 = u32::MAX;

/// A counter.
#[derive(Debug, Clone, Copy)]
struct Element {
    item: u32,
    error: u64,
    bucket: u32,
    links: Links,
}

/// Elements of one count.
#[derive(Debug, Clone, Copy)]
struct Bucket {
    count: u64,
    first: u32,
    links: Links,
}

/// Neighbours in a list.
#[derive(Debug, Clone, Copy)]
struct Links {
    before: u32,
    after: u32,
}

const ALONE: Links = Links { before: NONE, after: NONE };

/// Counters of the most frequent items.
#[derive(Debug)]
pub(super) struct StreamSummary {
    counters: usize,
    found: RapidHashMap<u32, u32>,
    elements: Vec<Element>,
    buckets: Vec<Bucket>,
    /// Buckets without elements.
    free: Vec<u32>,
    /// The bucket of the smallest count.
    lowest: u32,
}

/// An index of a vector.
fn at(number: u32) -> usize {
    number as usize
}

fn number(index: usize) -> u32 {
    u32::try_from(index).expect("there are few counters")
}

impl StreamSummary {
    pub(super) fn new(counters: usize) -> Self {
        // A table at most half full clears the places of removed items; a fuller one grows, sooner
        // or later by its seed.
        let found = RapidHashMap::with_capacity_and_hasher(2 * counters, Default::default());
        Self {
            counters,
            found,
            elements: Vec::with_capacity(counters),
            buckets: Vec::with_capacity(counters + 1),
            free: Vec::new(),
            lowest: NONE,
        }
    }

    /// Counts `item`.
    pub(super) fn observe(&mut self, item: u32) {
        if let Some(&element) = self.found.get(&item) {
            self.increment(element);
        } else if self.elements.len() < self.counters {
            let element = number(self.elements.len());
            self.elements.push(Element { item, error: 0, bucket: NONE, links: ALONE });
            self.found.insert(item, element);
            let is_there = self.lowest != NONE && self.buckets[at(self.lowest)].count == 1;
            let bucket = if is_there { self.lowest } else { self.add_bucket(1, NONE) };
            self.attach(element, bucket);
        } else {
            let lowest = self.buckets[at(self.lowest)];
            let element = lowest.first;
            let place = &mut self.elements[at(element)];
            self.found.remove(&place.item);
            (place.item, place.error) = (item, lowest.count);
            self.found.insert(item, element);
            self.increment(element);
        }
    }

    /// Item, count and error of each counter, in any order.
    pub(super) fn counted(&self) -> impl Iterator<Item = (u32, u64, u64)> {
        self.elements
            .iter()
            .map(|element| (element.item, self.buckets[at(element.bucket)].count, element.error))
    }

    /// Moves an element to the bucket of the next count.
    fn increment(&mut self, element: u32) {
        let own = self.elements[at(element)].bucket;
        let Bucket { count, links: Links { after, .. }, .. } = self.buckets[at(own)];
        self.detach(element);
        let is_next = after != NONE && self.buckets[at(after)].count == count + 1;
        if self.buckets[at(own)].first != NONE {
            let bucket = if is_next { after } else { self.add_bucket(count + 1, own) };
            self.attach(element, bucket);
        } else if is_next {
            self.remove_bucket(own);
            self.attach(element, after);
        } else {
            self.buckets[at(own)].count += 1;
            self.attach(element, own);
        }
    }

    fn attach(&mut self, element: u32, bucket: u32) {
        let after = self.buckets[at(bucket)].first;
        self.buckets[at(bucket)].first = element;
        if after != NONE {
            self.elements[at(after)].links.before = element;
        }
        let place = &mut self.elements[at(element)];
        (place.bucket, place.links) = (bucket, Links { before: NONE, after });
    }

    fn detach(&mut self, element: u32) {
        let Element { bucket, links: Links { before, after }, .. } = self.elements[at(element)];
        if before == NONE {
            self.buckets[at(bucket)].first = after;
        } else {
            self.elements[at(before)].links.after = after;
        }
        if after != NONE {
            self.elements[at(after)].links.before = before;
        }
    }

    /// Adds an empty bucket after `before`, or as the first one if that is `NONE`.
    fn add_bucket(&mut self, count: u64, before: u32) -> u32 {
        let after = if before == NONE { self.lowest } else { self.buckets[at(before)].links.after };
        let bucket = Bucket { count, first: NONE, links: Links { before, after } };
        let place = self.free.pop().unwrap_or_else(|| {
            self.buckets.push(bucket);
            number(self.buckets.len() - 1)
        });
        self.buckets[at(place)] = bucket;
        self.link(before, place);
        if after != NONE {
            self.buckets[at(after)].links.before = place;
        }
        place
    }

    fn remove_bucket(&mut self, bucket: u32) {
        let Links { before, after } = self.buckets[at(bucket)].links;
        self.link(before, after);
        if after != NONE {
            self.buckets[at(after)].links.before = before;
        }
        self.free.push(bucket);
    }

    /// Lets `after` follow the bucket `before`, or be the first one.
    fn link(&mut self, before: u32, after: u32) {
        if before == NONE {
            self.lowest = after;
        } else {
            self.buckets[at(before)].links.after = after;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    /// Lists have the elements and the order that they claim.
    fn check_lists(summary: &StreamSummary) {
        let (mut bucket, mut before, mut least, mut elements) = (summary.lowest, NONE, 0, 0);
        while bucket != NONE {
            let Bucket { count, first, links } = summary.buckets[at(bucket)];
            assert!(count > least && links.before == before && first != NONE);
            let (mut element, mut last) = (first, NONE);
            while element != NONE {
                let place = summary.elements[at(element)];
                assert_eq!((place.bucket, place.links.before), (bucket, last));
                assert_eq!(summary.found[&place.item], element);
                elements += 1;
                (last, element) = (element, place.links.after);
            }
            (before, least, bucket) = (bucket, count, links.after);
        }
        assert_eq!(elements, summary.elements.len());
        assert_eq!(summary.found.len(), summary.elements.len());
    }

    #[test]
    fn counts_are_bounded_on_streams_of_any_skew() {
        for (counters, alphabet) in [(1, 3), (2, 2), (7, 5), (7, 40), (20, 1000_u64)] {
            let (mut summary, mut truth) = (StreamSummary::new(counters), HashMap::new());
            let mut state = 1_u64;
            for len in 1..=3_000_u64 {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let any = (state >> 40) % alphabet;
                let item = u32::try_from(any * any / alphabet).unwrap();
                summary.observe(item);
                *truth.entry(item).or_insert(0) += 1;
                if len % 97 > 0 && len > 50 {
                    continue;
                }
                check_lists(&summary);
                assert_eq!(summary.counted().map(|(_, count, _)| count).sum::<u64>(), len);
                for (item, count, error) in summary.counted() {
                    let true_count = truth[&item];
                    assert!(count - error <= true_count && true_count <= count);
                    assert!(error <= len / counters as u64);
                }
            }
        }
    }
}
