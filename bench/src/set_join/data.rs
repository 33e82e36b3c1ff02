//! Inputs of joins: files of sets or generated sets, and correct answers.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, UInt32Array};
use trommel::set_similarity_join::{SetCollection, SetCollector, Side};

use crate::runner::numbers::Numbers;
use crate::runner::pipelines::sets;

/// Memory limit of a join, in bytes.
pub(super) const MEMORY_MAX: usize = 1 << 36;

/// Sets per batch.
pub(super) const BATCH_SETS: usize = 16_384;

/// Sets of a family.
const FAMILY: usize = 6;

/// Collection of sets.
pub(super) struct Input {
    pub(super) name: String,
    /// End of each set in `tokens`.
    ends: Vec<usize>,
    tokens: Vec<u32>,
}

impl Input {
    fn new(name: &str) -> Self {
        Self { name: name.to_owned(), ends: Vec::new(), tokens: Vec::new() }
    }

    /// Adds a set; its tokens may have any order.
    fn push(&mut self, mut set: Vec<u32>) {
        set.sort_unstable();
        set.dedup();
        self.tokens.extend(set);
        self.ends.push(self.tokens.len());
    }

    /// Keeps `sets` sets, evenly spaced because files may be sorted; all, if there are no more.
    pub(super) fn sample(self, sets: usize) -> Self {
        let all = self.ends.len();
        if sets >= all {
            return self;
        }
        let mut sample = Self::new(&self.name);
        for set in (0..sets).map(|set| set * all / sets) {
            sample.push(self.tokens[self.begin(set)..self.ends[set]].to_vec());
        }
        sample
    }

    /// The sets in a random order that is the same in each run.
    pub(super) fn shuffled(&self) -> Self {
        let mut order: Vec<usize> = (0..self.ends.len()).collect();
        shuffle(&mut order, &mut Numbers::default());
        let mut shuffled = Self::new(&self.name);
        for set in order {
            shuffled.tokens.extend_from_slice(self.set(set));
            shuffled.ends.push(shuffled.tokens.len());
        }
        shuffled
    }

    /// The sets with a random number for each token, below their count, and their tokens in a
    /// random order; the same in each run.
    pub(super) fn renamed(&self) -> Vec<Vec<u32>> {
        let mut tokens = self.tokens.clone();
        tokens.sort_unstable();
        tokens.dedup();
        let mut numbers = Numbers::default();
        let mut names: Vec<u32> = (0..).take(tokens.len()).collect();
        shuffle(&mut names, &mut numbers);
        let name = |token: &u32| names[tokens.binary_search(token).expect("it is one of them")];
        let mut sets: Vec<Vec<u32>> =
            (0..self.ends.len()).map(|set| self.set(set).iter().map(name).collect()).collect();
        sets.iter_mut().for_each(|set| shuffle(set, &mut numbers));
        sets
    }

    fn set(&self, set: usize) -> &[u32] {
        &self.tokens[self.begin(set)..self.ends[set]]
    }

    /// The sets with their tokens numbered by ascending frequency, sorted.
    pub(super) fn numbered_by_frequency(&self) -> Vec<Vec<u32>> {
        let mut counts: HashMap<u32, u32> = HashMap::new();
        self.tokens.iter().for_each(|&token| *counts.entry(token).or_default() += 1);
        let mut tokens: Vec<u32> = counts.keys().copied().collect();
        tokens.sort_unstable_by_key(|token| (counts[token], *token));
        let numbers: HashMap<u32, u32> = tokens.into_iter().zip(0..).collect();
        let numbered = |set: usize| {
            let mut set: Vec<u32> = self.set(set).iter().map(|token| numbers[token]).collect();
            set.sort_unstable();
            set
        };
        (0..self.ends.len()).map(numbered).collect()
    }

    /// Begin of a set in `tokens`.
    fn begin(&self, set: usize) -> usize {
        set.checked_sub(1).map_or(0, |before| self.ends[before])
    }

    /// Text of the sets, one set per line.
    pub(super) fn lines(&self) -> String {
        let line = |set: usize| {
            let tokens: Vec<String> = self.set(set).iter().map(u32::to_string).collect();
            tokens.join(" ") + "\n"
        };
        (0..self.ends.len()).map(line).collect()
    }

    /// Collection ready to be joined; with `is_two_sided`, of even sets with odd ones.
    pub(super) fn collect(&self, is_two_sided: bool) -> SetCollection {
        let mut collector = SetCollector::new(MEMORY_MAX);
        let mut begin = 0;
        for (id, &end) in (0_u32..).zip(&self.ends) {
            let is_right = is_two_sided && id % 2 == 1;
            let side = if is_right { Side::Right } else { Side::Left };
            collector.push(side, id, &self.tokens[begin..end]).expect("sorted above");
            begin = end;
        }
        collector.finish().expect("it fits the memory")
    }

    /// The sets as batches of `id` and `set`, of one input or of two.
    pub(super) fn batches(&self, is_two_sided: bool) -> Vec<Vec<RecordBatch>> {
        let inputs = if is_two_sided { 2 } else { 1 };
        let of_input = |input: usize| {
            let sets: Vec<usize> = (input..self.ends.len()).step_by(inputs).collect();
            sets.chunks(BATCH_SETS).map(|sets| self.batch(sets)).collect()
        };
        (0..inputs).map(of_input).collect()
    }

    /// The sets of one input as batches of `batch_sets` sets.
    pub(super) fn stream(&self, batch_sets: usize) -> Vec<RecordBatch> {
        let sets: Vec<usize> = (0..self.ends.len()).collect();
        sets.chunks(batch_sets.max(1)).map(|sets| self.batch(sets)).collect()
    }

    fn batch(&self, of: &[usize]) -> RecordBatch {
        let id = |&set: &usize| u32::try_from(set).expect("sets have 32-bit numbers");
        let ids: ArrayRef = Arc::new(UInt32Array::from_iter_values(of.iter().map(id)));
        let columns = [("id", ids), ("set", sets(of.iter().map(|&set| self.set(set))))];
        RecordBatch::try_from_iter(columns).expect("columns of one length")
    }
}

fn shuffle<T>(items: &mut [T], numbers: &mut Numbers) {
    for last in (1..items.len()).rev() {
        items.swap(last, numbers.below(last + 1));
    }
}

/// Reads the files of a folder, sorted by name.
///
/// # Panics
/// If a file cannot be read, or holds anything but whole numbers.
pub(super) fn files(folder: &Path, names: &[String]) -> Vec<Input> {
    let mut inputs: Vec<Input> = fs::read_dir(folder)
        .expect("a folder of sets")
        .map(|entry| entry.expect("a folder of sets").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "txt"))
        .filter_map(|path| {
            let name = path.file_stem()?.to_str()?.to_owned();
            let is_wanted = names.is_empty() || names.contains(&name);
            is_wanted.then(|| read(&name, &fs::read_to_string(&path).expect("a file of sets")))
        })
        .collect();
    inputs.sort_by(|left, right| left.name.cmp(&right.name));
    inputs
}

fn read(name: &str, text: &str) -> Input {
    let mut input = Input::new(name);
    for line in text.lines() {
        let tokens = line.split_ascii_whitespace();
        input.push(tokens.map(|token| token.parse().expect("a number below 2^32")).collect());
    }
    input
}

/// Generates families of similar sets, small and large ones, whose tokens are as
/// unequally frequent as words.
pub(super) fn generated() -> Vec<Input> {
    [("small", 200_000, 12, 60_000), ("large", 50_000, 80, 200_000)]
        .map(|(name, sets, size, alphabet)| {
            families(name, sets, size, |numbers| numbers.token(alphabet))
        })
        .into()
}

/// Generates families of six sets of `size` tokens on average: each is made from one set by
/// changing less than 40 % of its tokens.
pub(super) fn families(
    name: &str,
    sets: usize,
    size: usize,
    mut token: impl FnMut(&mut Numbers) -> u32,
) -> Input {
    let mut input = Input::new(name);
    let mut numbers = Numbers::default();
    for _ in 0..sets / FAMILY {
        let len = size / 2 + numbers.below(size + 1);
        let base: Vec<u32> = (0..len).map(|_| token(&mut numbers)).collect();
        for _ in 0..FAMILY {
            let changed = numbers.below(40);
            let change = |&known: &u32| {
                let is_changed = numbers.below(100) < changed;
                if is_changed { token(&mut numbers) } else { known }
            };
            input.push(base.iter().map(change).collect());
        }
    }
    input
}

/// Correct answers by file, similarity and threshold: of the self-join, and of the join of even
/// sets with odd ones.
pub(super) struct Truth(HashMap<(String, String, u32), [u64; 2]>);

impl Truth {
    pub(super) fn read(folder: Option<&Path>) -> Self {
        let text = folder.and_then(|folder| fs::read_to_string(folder.join("ssj_truth.tsv")).ok());
        let rows = text.iter().flat_map(|text| text.lines().skip(1));
        Self(rows.map(|row| Self::row(row).expect("five columns of right answers")).collect())
    }

    fn row(row: &str) -> Option<((String, String, u32), [u64; 2])> {
        let columns: Vec<&str> = row.split('\t').collect();
        let &[file, similarity, threshold, pairs, of_two] = &columns[..] else { return None };
        let key = (file.to_owned(), similarity.to_owned(), threshold.parse().ok()?);
        Some((key, [pairs.parse().ok()?, of_two.parse().ok()?]))
    }

    pub(super) fn pairs(&self, file: &str, similarity: &str, threshold: u32) -> Option<[u64; 2]> {
        self.0.get(&(file.to_owned(), similarity.to_owned(), threshold)).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_evenly_spaced_and_written_as_they_are_read() {
        let text = "3 1 3\n\n7\n4294967295 0\n5\n";
        let of = |sets| read("sets", text).sample(sets);
        assert_eq!(of(5).lines(), "1 3\n\n7\n0 4294967295\n5\n");
        assert_eq!(of(9).lines(), of(5).lines());
        assert_eq!(of(3).lines(), "1 3\n\n0 4294967295\n");
        assert_eq!(of(1).collect(false).tokens(), 2);
        assert_eq!(of(0).lines(), "");
    }
}
