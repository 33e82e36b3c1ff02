//! Checks of joins: all runs have the same rows, and the rows of some members are those of a plain
//! loop.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use rapidhash::RapidHashMap;
use rapidhash::v3::rapidhash_v3;

use super::data::Sets;
use super::ensure;

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

    /// Checks rows of CSV without a header.
    ///
    /// # Errors
    /// If a row is wrong or missing, or is there twice.
    pub(super) fn check<'a>(
        &self,
        lines: impl Iterator<Item = &'a str> + Clone,
    ) -> Result<(), String> {
        let digest =
            lines.clone().fold(Digest { rows: 0, sum: 0 }, |Digest { rows, sum }, line| Digest {
                rows: rows + 1,
                sum: sum.wrapping_add(rapidhash_v3(line.as_bytes())),
            });
        if let Some(first) = *self.first.borrow() {
            let other =
                || format!("{} rows are not the {} of the first run", digest.rows, first.rows);
            return ensure(digest == first, other);
        }
        let mut found = BTreeSet::new();
        for line in lines {
            let mut row = [0; 3];
            for (number, cell) in row.iter_mut().zip(line.split(',')) {
                *number = cell.parse().map_err(|error| format!("{line}: {error}"))?;
            }
            let [left, right, rest] = row;
            let is_pair = self.kind == Kind::Pairs;
            for row in [row, [right, left, rest]].into_iter().take(1 + usize::from(is_pair)) {
                let is_new = !self.members.contains(&row[0]) || found.insert(row);
                ensure(is_new, || format!("{row:?} is there twice"))?;
            }
        }
        let missing = self.rows.difference(&found).next();
        let wrong = found.difference(&self.rows).next();
        let is_right = missing.is_none() && wrong.is_none();
        ensure(is_right, || format!("missing: {missing:?}, wrong: {wrong:?}"))?;
        self.first.replace(Some(digest));
        Ok(())
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
        let check = |rows: &[&str]| pairs().check(rows.iter().copied());
        assert_eq!(check(&["0,1", "3,0", "1,3"]), Ok(()));
        assert_eq!(check(&["0,1", "0,3"]).unwrap_err(), "missing: Some([1, 3, 0]), wrong: None");
        let wrong = check(&["0,1", "0,2", "0,3", "1,3"]).unwrap_err();
        assert_eq!(wrong, "missing: None, wrong: Some([0, 2, 0])");
        let twice = check(&["0,1", "1,0", "0,3", "1,3"]).unwrap_err();
        assert_eq!(twice, "[1, 0, 0] is there twice");
    }

    #[test]
    fn later_runs_have_the_rows_of_the_first_one() {
        let pairs = pairs();
        let check = |rows: &[&str]| pairs.check(rows.iter().copied());
        assert_eq!(check(&["0,1", "0,3", "1,3"]), Ok(()));
        assert_eq!(check(&["1,3", "0,1", "0,3"]), Ok(()));
        let missing = check(&["0,1", "0,3"]).unwrap_err();
        assert_eq!(missing, "2 rows are not the 3 of the first run");
        assert!(check(&["0,1", "0,3", "2,3"]).is_err());
    }

    #[test]
    fn other_joins_are_those_of_their_definitions() {
        let sets = Sets::from_iter([&[1, 2, 3][..], &[1, 2, 4], &[2, 4], &[1, 2]]);
        let pairs = Sampled::frequent_pairs(&sets, 2);
        assert_eq!(pairs.check(["1,2,3", "2,4,2"].into_iter()), Ok(()));
        let queries = Sets::from_iter([&[1, 2][..], &[9], &[4]]);
        let counts = Sampled::query_counts(&sets, &queries);
        assert_eq!(counts.check(["0,3", "1,0", "2,2"].into_iter()), Ok(()));
        let near = Sampled::near_vectors(&[0.0, 0.0, 3.0, 4.0, 0.0, 1.0], 2, 5.0);
        assert_eq!(near.check(["0,1", "0,2", "1,2"].into_iter()), Ok(()));
    }
}
