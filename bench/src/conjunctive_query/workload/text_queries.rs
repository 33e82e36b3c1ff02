//! Queries over documents of text.
//!
//! The shortest list of a query is drawn as in the paper (§IV, figure 6): 91 % have less than
//! 10,000 documents, uniform by the logarithm from 16 on, so that 77 % have at most 3,840; the
//! others have up to 100,000. An index whose longest list is shorter has all of these numbers in
//! proportion. The word with that list is drawn, one of its documents, and further words of this
//! document that are at least as frequent: each query has an answer, as most queries of people.

use super::documents::Documents;
use super::draw::{Queries, by_logarithm, query_len, unit};
use crate::runner::numbers::Numbers;

/// Share of the queries whose shortest list is short.
const SHORT: f64 = 0.91;

/// Lengths of the shortest lists: of short ones, and of the others up to the last number.
const LENGTHS: [f64; 3] = [16.0, 10_000.0, 100_000.0];

/// Documents that are looked at for enough further words.
const TRIES: usize = 20;

/// Draws `count` queries.
pub(super) fn draw(documents: &Documents, lists: &[Vec<u32>], count: usize) -> Queries {
    let mut by_len: Vec<u32> = (0..documents.term_count()).collect();
    by_len.sort_by_key(|&term| lists[term as usize].len());
    let longest = by_len.last().map_or(1, |&term| lists[term as usize].len());
    let scale = (longest as f64 / LENGTHS[2]).min(1.0);
    let (mut numbers, mut queries) = (Numbers::default(), Queries::default());
    let mut others = Vec::new();
    for _ in 0..count {
        let first = first(&mut numbers, &by_len, lists, scale);
        let list = &lists[first as usize];
        let wanted = query_len(&mut numbers) - 1;
        // Short documents may lack words that are frequent enough; the query is shorter then.
        for _ in 0..TRIES {
            let document = list[numbers.below(list.len())] as usize;
            let is_other =
                |&&term: &&u32| term != first && lists[term as usize].len() >= list.len();
            others.clear();
            others.extend(documents.terms(document).iter().filter(is_other));
            if others.len() >= wanted {
                break;
            }
        }
        // A shuffle of the beginning.
        let wanted = wanted.min(others.len());
        for place in 0..wanted {
            let other = place + numbers.below(others.len() - place);
            others.swap(place, other);
        }
        others.truncate(wanted);
        others.push(first);
        queries.push(&others);
    }
    queries
}

/// A word whose list has about the length that is drawn, with at least one document.
fn first(numbers: &mut Numbers, by_len: &[u32], lists: &[Vec<u32>], scale: f64) -> u32 {
    let [least, middle, most] = LENGTHS.map(|len| (len * scale).max(1.0));
    let is_short = unit(numbers) < SHORT;
    let (least, most) = if is_short { (least, middle) } else { (middle, most) };
    let len = by_logarithm(numbers, least, most);
    // Words with lists of this length or up to a tenth longer ones.
    let place =
        |len: f64| by_len.partition_point(|&term| (lists[term as usize].len() as f64) < len);
    let begin = place(len.max(1.0)).min(by_len.len() - 1);
    let end = place(1.1 * len).clamp(begin + 1, by_len.len());
    by_len[begin + numbers.below(end - begin)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_have_answers_and_distinct_words() {
        let mut numbers = Numbers::default();
        let mut documents = Documents::default();
        for _ in 0..2000 {
            let mut terms: Vec<u32> = (0..12).map(|_| numbers.token(500)).collect();
            terms.sort_unstable();
            terms.dedup();
            documents.push(&terms);
        }
        let lists = documents.lists();
        let queries = draw(&documents, &lists, 300);
        assert_eq!(queries.offsets.len(), 301);
        let mut lens = [0; 10];
        for ends in queries.offsets.windows(2) {
            let terms = &queries.terms[ends[0] as usize..ends[1] as usize];
            lens[terms.len()] += 1;
            let has_all =
                |document: usize| terms.iter().all(|term| documents.terms(document).contains(term));
            assert!((0..documents.len()).any(has_all), "{terms:?}");
            assert!(terms.iter().all(|term| terms.iter().filter(|t| *t == term).count() == 1));
        }
        assert!(lens[2] > 50 && lens[4] > 20 && lens[9] == 0, "{lens:?}");
    }
}
