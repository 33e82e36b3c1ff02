//! Exact counts of items, and checks of counts against them.

use std::collections::HashMap;

use rapidhash::RapidHashMap;
use serde::Deserialize;
use unicode_segmentation::UnicodeSegmentation as _;

use super::ensure;

/// Rows of an answer.
pub(super) const ROWS: usize = 20;

/// Counters of `trommel`.
pub(super) const COUNTERS: usize = 10_000;

/// Most frequent items whose counts are kept by name.
const KEPT: usize = 1_000;

/// A row of `trommel`.
#[derive(Debug, Deserialize)]
pub(super) struct Row {
    item: Item,
    count: u64,
    error: u64,
}

/// An item as JSON has it.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Item {
    Text(String),
    Number(u64),
}

/// Part of a line that is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    Words,
    FirstField,
    Line,
}

/// The exact counts of the most frequent items.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Exact {
    /// Occurrences of all items.
    total: u64,
    /// Descending.
    counts: Vec<u64>,
    by_item: HashMap<String, u64>,
    /// The largest count of an item that is not in `by_item`.
    rest: u64,
}

impl Exact {
    /// Counts the items of lines, each of which occurs several times.
    pub(super) fn of_lines<'a>(unit: Unit, lines: impl Iterator<Item = (&'a str, u64)>) -> Self {
        let mut counts = RapidHashMap::<Box<str>, u64>::default();
        let mut lower = String::new();
        for (line, times) in lines {
            let mut add = |item: &str| match counts.get_mut(item) {
                Some(count) => *count += times,
                None => drop(counts.insert(item.into(), times)),
            };
            match unit {
                Unit::Line => add(line),
                Unit::FirstField => line.split_whitespace().take(1).for_each(add),
                Unit::Words if has_plain_words(line) => {
                    lower.clear();
                    lower.push_str(line);
                    lower.make_ascii_lowercase();
                    lower.split_ascii_whitespace().for_each(add);
                }
                Unit::Words => line.unicode_words().for_each(|word| add(&word.to_lowercase())),
            }
        }
        Self::of(counts.into_iter().map(|(item, count)| (count, String::from(item))).collect())
    }

    /// Takes the counts of distinct items.
    pub(super) fn of<T: Ord + ToString>(mut all: Vec<(u64, T)>) -> Self {
        let total = all.iter().map(|(count, _)| count).sum();
        all.sort_unstable_by(|left, right| right.cmp(left));
        let rest = all.get(KEPT).map_or(0, |(count, _)| *count);
        all.truncate(KEPT);
        let counts = all.iter().map(|(count, _)| *count).collect();
        let by_item = all.into_iter().map(|(count, item)| (item.to_string(), count)).collect();
        Self { total, counts, by_item, rest }
    }

    /// Checks the bounds of rows of `trommel`, and that no item is missing that has to be there.
    ///
    /// # Errors
    /// If a row is wrong or missing.
    pub(super) fn check(&self, rows: &[Row]) -> Result<(), String> {
        let expected = self.counts.len().min(ROWS);
        ensure(rows.len() == expected, || format!("{} rows, not {expected}", rows.len()))?;
        let is_sorted = rows.is_sorted_by(|left, right| left.count >= right.count);
        ensure(is_sorted, || format!("the counts do not descend: {rows:?}"))?;
        let mut missing = self.by_item.clone();
        for Row { item, count, error } in rows {
            let name = match item {
                Item::Text(text) => text.clone(),
                Item::Number(number) => number.to_string(),
            };
            let least = count.saturating_sub(*error);
            let exact = missing.remove(&name);
            let is_right = match exact {
                Some(exact) => (least..=*count).contains(&exact),
                None => least <= self.rest && !self.by_item.contains_key(&name),
            };
            ensure(is_right, || format!("{name}: {least} to {count}, and exactly {exact:?}"))?;
            let is_small = *error <= self.total / COUNTERS as u64;
            ensure(is_small, || format!("{name}: the error {error} is too large"))?;
        }
        // An upper bound of an item that is not shown is at most the last one that is shown.
        let last = rows.last().map_or(0, |row| row.count);
        let hidden = missing.iter().find(|(_, exact)| **exact > last);
        ensure(hidden.is_none(), || format!("{hidden:?} is missing in {rows:?}"))
    }

    /// Whether the rows are the most frequent items with their exact counts. Of items with equal
    /// counts, any may be shown.
    ///
    /// # Errors
    /// If they are not.
    pub(super) fn check_exact(&self, rows: &[(String, u64)]) -> Result<(), String> {
        let expected = &self.counts[..self.counts.len().min(ROWS)];
        if !rows.iter().map(|(_, count)| count).eq(expected) {
            let counts: Vec<u64> = rows.iter().map(|(_, count)| *count).collect();
            return Err(format!("the counts are {counts:?}, not {expected:?}"));
        }
        let is_wrong = |(item, count): &&(String, u64)| match self.by_item.get(item) {
            Some(exact) => exact != count,
            None => *count > self.rest,
        };
        let wrong = rows.iter().find(is_wrong);
        wrong.map_or(Ok(()), |(item, count)| Err(format!("{item:?} does not have {count}")))
    }
}

/// Whether the words of Unicode Standard Annex 29 are the texts between blanks.
fn has_plain_words(line: &str) -> bool {
    line.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b' ')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(item: &str, count: u64, error: u64) -> Row {
        Row { item: Item::Text(item.to_owned()), count, error }
    }

    #[test]
    fn words_fields_and_lines_are_counted() {
        let lines = [("One two", 3), ("TWO, one-two", 1)];
        let of = |unit| Exact::of_lines(unit, lines.into_iter());
        assert_eq!(of(Unit::Words).by_item, [("one", 4), ("two", 5)].map(named).into());
        assert_eq!(of(Unit::FirstField).by_item, [("One", 3), ("TWO,", 1)].map(named).into());
        assert_eq!(of(Unit::Line).by_item, lines.map(named).into());
    }

    fn named((item, count): (&str, u64)) -> (String, u64) {
        (item.to_owned(), count)
    }

    #[test]
    fn rows_are_within_their_bounds() {
        let exact = Exact::of(vec![(70_000, "a"), (30_000, "b")]);
        let check = |count, error| exact.check(&[row("a", count, error), row("b", 30_000, 0)]);
        assert_eq!(check(70_005, 5), Ok(()));
        assert_eq!(check(69_999, 5).unwrap_err(), "a: 69994 to 69999, and exactly Some(70000)");
        assert_eq!(check(70_006, 5).unwrap_err(), "a: 70001 to 70006, and exactly Some(70000)");
        assert_eq!(check(70_011, 11).unwrap_err(), "a: the error 11 is too large");
        assert!(exact.check(&[row("a", 70_000, 0)]).unwrap_err().starts_with("1 rows, not 2"));
        let turned = [row("b", 30_000, 0), row("a", 70_000, 0)];
        assert!(exact.check(&turned).unwrap_err().starts_with("the counts do not descend"));
        let twice = [row("a", 70_000, 0), row("a", 70_000, 0)];
        assert!(exact.check(&twice).unwrap_err().ends_with("exactly None"));
    }

    #[test]
    fn a_frequent_item_may_not_be_missing() {
        let counts = (5..30).map(|number| (number + 5, format!("item {number}"))).collect();
        let shown = (5..30_u64).rev().filter(|number| *number != 25).take(ROWS);
        let shown: Vec<Row> =
            shown.map(|number| row(&format!("item {number}"), number + 5, 0)).collect();
        let why = Exact::of(counts).check(&shown).unwrap_err();
        assert!(why.starts_with("Some((\"item 25\", 30)) is missing in "), "{why}");
    }

    #[test]
    fn peers_have_to_be_exact() {
        let exact = Exact::of(vec![(7, "a"), (3, "b"), (3, "c")]);
        let rows = |rows: [(&str, u64); 3]| exact.check_exact(&rows.map(named));
        assert_eq!(rows([("a", 7), ("c", 3), ("b", 3)]), Ok(()));
        assert!(rows([("a", 7), ("c", 3), ("b", 2)]).unwrap_err().contains("not [7, 3, 3]"));
        assert!(rows([("b", 7), ("c", 3), ("a", 3)]).unwrap_err().contains("\"b\""));
    }
}
