//! Checks of joins: all runs have the same rows, and the rows of some members are those of a plain
//! loop.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use rapidhash::RapidHashMap;

use super::data::Sets;

/// Members whose rows are found by a plain loop.
const SAMPLES: usize = 40;

/// Numbers of a row, of which the first two are members of a pair, or the first one is a query. A
/// number that a table does not have is 0.
type Numbers = [u64; 3];

/// Rows of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Pairs, whose members may change places.
    Pairs,
    /// Queries.
    Queries,
}

/// The right rows of some members, and the rows that the first run had.
#[derive(Debug)]
pub(super) struct Sampled {
    kind: Kind,
    members: BTreeSet<u64>,
    rows: BTreeSet<Numbers>,
    first: RefCell<Option<Digest>>,
}

/// Number of rows and the sum of their hashes, which is the same in any order of the rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Digest {
    rows: u64,
    sum: u64,
}

impl Sampled {
    fn new(kind: Kind, members: BTreeSet<u64>, rows: BTreeSet<Numbers>) -> Self {
        Self { kind, members, rows, first: RefCell::new(None) }
    }

    /// Checks rows of CSV with a header.
    ///
    /// # Panics
    /// If a row is wrong or missing, or is there twice.
    pub(super) fn check(&self, text: &str) {
        let lines = || text.lines().skip(1);
        let digest = lines().fold(Digest { rows: 0, sum: 0 }, |Digest { rows, sum }, line| {
            let hash = rapidhash::v3::rapidhash_v3(line.as_bytes());
            Digest { rows: rows + 1, sum: sum.wrapping_add(hash) }
        });
        if let Some(first) = *self.first.borrow() {
            assert_eq!(digest, first, "the rows are other ones than in the first run");
            return;
        }
        let mut found = BTreeSet::new();
        for line in lines() {
            let mut row = [0; 3];
            for (number, cell) in row.iter_mut().zip(line.split(',')) {
                *number = cell.parse().expect("a whole number");
            }
            let [left, right, rest] = row;
            let is_pair = self.kind == Kind::Pairs;
            for row in [row, [right, left, rest]].into_iter().take(1 + usize::from(is_pair)) {
                if self.members.contains(&row[0]) {
                    assert!(found.insert(row), "{row:?} is there twice");
                }
            }
        }
        let missing = self.rows.difference(&found).next();
        let wrong = found.difference(&self.rows).next();
        assert!(missing.is_none() && wrong.is_none(), "missing {missing:?}, wrong {wrong:?}");
        self.first.replace(Some(digest));
    }

    /// Pairs of sets whose Jaccard similarity is at least 1/2.
    pub(super) fn similar_sets(sets: &Sets) -> Self {
        let members = evenly(sets.len());
        let mut holders = RapidHashMap::<u32, Vec<usize>>::default();
        for &member in &members {
            for &item in sets.get(member) {
                holders.entry(item).or_default().push(member);
            }
        }
        let mut rows = BTreeSet::new();
        for other in 0..sets.len() {
            let mut common = BTreeMap::<usize, usize>::new();
            for holder in sets.get(other).iter().filter_map(|item| holders.get(item)).flatten() {
                *common.entry(*holder).or_default() += 1;
            }
            common.remove(&other);
            for (member, common) in common {
                let either = sets.get(member).len() + sets.get(other).len() - common;
                if 2 * common >= either {
                    rows.insert([member as u64, other as u64, 0]);
                }
            }
        }
        Self::new(Kind::Pairs, numbers(&members), rows)
    }

    /// Pairs of items that are together in at least `support` sets.
    pub(super) fn frequent_pairs(sets: &Sets, support: u64) -> Self {
        let mut supports = RapidHashMap::<u32, u64>::default();
        sets.each().flatten().for_each(|&item| *supports.entry(item).or_default() += 1);
        let mut frequent: Vec<(u64, u32)> =
            supports.into_iter().map(|(item, count)| (count, item)).collect();
        frequent.retain(|&(count, _)| count >= support);
        frequent.sort_unstable();
        let members: BTreeSet<u32> =
            evenly(frequent.len()).into_iter().map(|at| frequent[at].1).collect();
        let mut together = HashMap::<(u32, u32), u64>::new();
        for set in sets.each() {
            for &member in set.iter().filter(|item| members.contains(item)) {
                for &other in set.iter().filter(|&&other| other != member) {
                    *together.entry((member, other)).or_default() += 1;
                }
            }
        }
        let is_frequent = |&(_, count): &(_, u64)| count >= support;
        let row = |((left, right), count): ((u32, u32), u64)| [left.into(), right.into(), count];
        let rows = together.into_iter().filter(is_frequent).map(row).collect();
        Self::new(Kind::Pairs, members.into_iter().map(u64::from).collect(), rows)
    }

    /// Pairs of vectors whose distance is at most `epsilon`.
    pub(super) fn near_vectors(values: &[f32], dims: usize, epsilon: f64) -> Self {
        let row = |at: usize| &values[at * dims..][..dims];
        let count = values.len() / dims;
        let members = evenly(count);
        let square = |left: usize, right: usize| -> f64 {
            let pairs = row(left).iter().zip(row(right));
            pairs.map(|(x, y)| (f64::from(*x) - f64::from(*y)).powi(2)).sum()
        };
        let mut rows = BTreeSet::new();
        for &member in &members {
            let others = (0..count).filter(|&other| other != member);
            let near = others.filter(|&other| square(member, other) <= epsilon * epsilon);
            rows.extend(near.map(|other| [member as u64, other as u64, 0]));
        }
        Self::new(Kind::Pairs, numbers(&members), rows)
    }

    /// Numbers of documents that have all items of a query.
    pub(super) fn query_counts(documents: &Sets, queries: &Sets) -> Self {
        let members = evenly(queries.len());
        let mut counts = vec![0; members.len()];
        for document in documents.each() {
            for (&query, count) in members.iter().zip(&mut counts) {
                let has_all =
                    queries.get(query).iter().all(|item| document.binary_search(item).is_ok());
                *count += u64::from(has_all);
            }
        }
        let rows = members.iter().zip(counts).map(|(&query, count)| [query as u64, count, 0]);
        let rows = rows.collect();
        Self::new(Kind::Queries, numbers(&members), rows)
    }
}

/// Positions below `count`, evenly spaced.
fn evenly(count: usize) -> Vec<usize> {
    (0..count).step_by(count.div_ceil(SAMPLES).max(1)).collect()
}

fn numbers(members: &[usize]) -> BTreeSet<u64> {
    members.iter().map(|&member| member as u64).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs() -> Sampled {
        let sets = Sets::from_iter([&[1, 2, 3][..], &[1, 2, 4], &[7, 8], &[1, 2]]);
        Sampled::similar_sets(&sets)
    }

    #[test]
    fn pairs_are_those_of_the_definition() {
        pairs().check("left,right\n0,1\n0,3\n1,3\n");
    }

    #[test]
    #[should_panic(expected = "missing Some([1, 3, 0])")]
    fn a_missing_pair_is_found() {
        pairs().check("left,right\n0,1\n0,3\n");
    }

    #[test]
    #[should_panic(expected = "wrong Some([0, 2, 0])")]
    fn a_wrong_pair_is_found() {
        pairs().check("left,right\n0,1\n0,2\n0,3\n1,3\n");
    }

    #[test]
    #[should_panic(expected = "is there twice")]
    fn a_pair_may_not_come_twice() {
        pairs().check("left,right\n0,1\n1,0\n0,3\n1,3\n");
    }

    #[test]
    #[should_panic(expected = "other ones than in the first run")]
    fn later_runs_have_the_rows_of_the_first_one() {
        let pairs = pairs();
        pairs.check("left,right\n0,1\n0,3\n1,3\n");
        pairs.check("left,right\n1,3\n0,1\n0,3\n");
        pairs.check("left,right\n0,1\n0,3\n");
    }

    #[test]
    fn other_joins_are_those_of_their_definitions() {
        let sets = Sets::from_iter([&[1, 2, 3][..], &[1, 2, 4], &[2, 4], &[1, 2]]);
        Sampled::frequent_pairs(&sets, 2).check("left,right,support\n1,2,3\n2,4,2\n");
        let queries = Sets::from_iter([&[1, 2][..], &[9], &[4]]);
        Sampled::query_counts(&sets, &queries).check("query,count\n0,3\n1,0\n2,2\n");
        let vectors = [0.0, 0.0, 3.0, 4.0, 0.0, 1.0];
        Sampled::near_vectors(&vectors, 2, 5.0).check("left,right\n0,1\n0,2\n1,2\n");
    }
}
