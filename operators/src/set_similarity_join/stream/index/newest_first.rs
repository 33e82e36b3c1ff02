//! The look-ups of a set for which one similar set is enough, from the newest sets to the oldest.
//!
//! If lines differ in one word only, each line shares its prefix with all earlier lines: a look-up
//! of whole posting lists takes a time that grows with the stream, although one posting suffices.
//! So long lists are looked up in slices. All lists are cut at the same sets, because the hits of a
//! pair have to arrive by ascending position (see
//! [`look_up`](crate::set_similarity_join::stream::look_up)):
//!
//! ```text
//! sets, oldest to newest    0 ..................... 936 ........ 968 .. 984 .. 1000
//! list of position 0        [      third slice      ][  second  ][    first    ]
//! list of position 1        [      third slice      ][  second  ][    first    ]
//! ```
//!
//! A slice has twice as many postings of the longest list as the slice before it. So a set whose
//! first similar set is the k-th newest posting costs O(k). A set without a similar set costs as
//! much as a look-up of whole lists, and in addition a binary search of each list for each slice.

use trommel_kernels::stream_postings::{LookUp, Posting};

/// The token for which a look-up is done.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LookUpOrigin {
    pub(crate) probe: u32,
    pub(crate) position: u32,
    pub(crate) slot: u32,
}

/// The look-ups of one set.
#[derive(Debug)]
pub(crate) struct NewestFirst {
    /// Number of the set in its micro-batch.
    pub(crate) probe: u32,
    /// Number of the set in the stream.
    number: u32,
    /// The part of each list that has not been looked up, by ascending position of the list's
    /// token.
    left: Vec<LookUp>,
    origins: Vec<LookUpOrigin>,
    /// Postings of the longest list in the next slice.
    len: u32,
    has_begun: bool,
}

impl NewestFirst {
    /// The look-ups of a set of the micro-batch whose first set has the number `begin`. The first
    /// slice has `first` postings of the longest list.
    pub(crate) fn new(
        begin: u32,
        look_ups: Vec<LookUp>,
        origins: Vec<LookUpOrigin>,
        first: u32,
    ) -> Self {
        let probe = origins[0].probe;
        let number = begin.wrapping_add(probe);
        Self { probe, number, left: look_ups, origins, len: first, has_begun: false }
    }

    /// Whether a slice has been looked up.
    pub(crate) fn has_begun(&self) -> bool {
        self.has_begun
    }

    /// Appends the look-ups of the next slice; false if nothing is left.
    pub(crate) fn next(
        &mut self,
        postings: &[Posting],
        look_ups: &mut Vec<LookUp>,
        origins: &mut Vec<LookUpOrigin>,
    ) -> bool {
        let longest = self.left.iter().max_by_key(|look_up| look_up.len);
        let Some(longest) = longest.filter(|look_up| look_up.len > 0) else { return false };
        // Ages, not numbers, are compared: numbers wrap around.
        let age = |posting: &Posting| self.number.wrapping_sub(posting.set);
        let list = |look_up: &LookUp| {
            let begin = look_up.begin as usize;
            &postings[begin..begin + look_up.len as usize]
        };
        let oldest = match longest.len.checked_sub(self.len) {
            None | Some(0) => u32::MAX,
            Some(before) => age(&list(longest)[before as usize]),
        };
        (self.len, self.has_begun) = (self.len.saturating_mul(2), true);
        for (left, &origin) in self.left.iter_mut().zip(&self.origins) {
            let older = list(left).partition_point(|posting| age(posting) > oldest);
            let older = u32::try_from(older).expect("lists have 32-bit lengths");
            if older < left.len {
                look_ups.push(LookUp { begin: left.begin + older, len: left.len - older, ..*left });
                origins.push(origin);
                left.len = older;
            }
        }
        true
    }

    pub(crate) fn bytes(&self) -> usize {
        size_of::<LookUp>() * self.left.capacity()
            + size_of::<LookUpOrigin>() * self.origins.capacity()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lists of all lengths, cut at the same sets: every posting comes once, newest slices first,
    /// and in each slice the lists by position.
    #[test]
    fn slices_of_all_lists_are_cut_at_the_same_sets() {
        let begin = u32::MAX - 700;
        for lens in [[1, 512], [700, 3], [600, 600], [513, 0]] {
            let mut postings = Vec::new();
            let mut look_ups = Vec::new();
            for len in lens {
                let first = u32::try_from(postings.len()).unwrap();
                let step = 1200 / u32::max(len, 1);
                let posting = |index| {
                    let set = begin.wrapping_add(index * step);
                    Posting { set, size: 3, position: 0, signature: 0 }
                };
                postings.extend((0..len).map(posting));
                let (signature, distance_max, size_min, size_max) = (0, 0, 3, 3);
                look_ups.push(LookUp {
                    begin: first,
                    len,
                    signature,
                    distance_max,
                    size_min,
                    size_max,
                });
            }
            let origin = |position| LookUpOrigin { probe: 1200, position, slot: 0 };
            let origins = vec![origin(0), origin(1)];
            let mut slices = NewestFirst::new(begin, look_ups, origins, 64);
            let mut seen = vec![false; postings.len()];
            let mut newest_before = 0;
            let (mut part, mut of) = (Vec::new(), Vec::new());
            while slices.next(&postings, &mut part, &mut of) {
                let mut oldest = 0;
                for look_up in part.drain(..) {
                    for index in look_up.begin..look_up.begin + look_up.len {
                        assert!(!std::mem::replace(&mut seen[index as usize], true));
                        let posting = postings[index as usize];
                        let age = begin.wrapping_add(1200).wrapping_sub(posting.set);
                        assert!(age > newest_before, "older than all of the slice before");
                        oldest = oldest.max(age);
                    }
                }
                assert!(of.is_sorted_by_key(|origin| origin.position));
                of.clear();
                newest_before = oldest;
            }
            assert!(seen.iter().all(|&seen| seen));
        }
    }
}
