//! Copies of vectors: equal ones are joined once.
//!
//! Of n copies, each is a partner of all others, so that a join which looks at pairs takes n² steps
//! for an answer that arithmetic gives: n (n - 1) / 2 pairs, and n - 1 partners each. So where each
//! pair is not asked for, the different vectors are joined, and each counts as often as it came.
//!
//! Most data has few copies, and finding them reads all vectors. A random sample decides whether
//! that pays: groups that are large enough to make a join slow have several vectors in it.

use hashbrown::HashTable;
use trommel_kernels::sieve::split_mix;

use super::tuning::Tuning;
use crate::secret::random_seed;

/// The vectors of an input, by number of the different ones in the order in which they came first.
#[derive(Debug)]
pub(super) struct Copies {
    /// Per row: number of its vector.
    numbers: Vec<u32>,
    /// Per different vector: its rows.
    counts: Vec<u32>,
    /// Per different vector: its first row.
    firsts: Vec<u32>,
}

/// Bytes of the copies of `rows` vectors while they are looked for, at most.
pub(super) fn copies_bytes(rows: usize) -> usize {
    rows.saturating_mul(5 * size_of::<u32>())
}

impl Copies {
    /// Whether a sample of the vectors has enough copies that joining them once pays.
    pub(super) fn pay(coordinates: &[f32], dims: usize, tuning: &Tuning) -> bool {
        let (rows, seed) = (coordinates.len() / dims, random_seed());
        let sampled = rows.min(tuning.copies_sampled);
        let row = |draw: usize| match sampled < rows {
            false => draw,
            // Nobody who chooses the vectors knows which ones are looked at.
            true => usize::try_from(split_mix(seed, draw as u64) % rows as u64).unwrap_or(0),
        };
        let mut rows: Vec<usize> = (0..sampled).map(row).collect();
        rows.sort_unstable();
        rows.dedup();
        let drawn = rows.len();
        let mut different = Different::new(coordinates, dims, seed);
        let new = rows.into_iter().filter(|&row| different.number(row).1).count();
        drawn - new >= tuning.copies_min
    }

    /// Pairs of equal vectors.
    pub(super) fn pairs_among(coordinates: &[f32], dims: usize) -> u64 {
        let mut different = Different::new(coordinates, dims, random_seed());
        let mut counts: Vec<u32> = Vec::new();
        let mut pairs = 0;
        for row in 0..coordinates.len() / dims {
            let (number, is_new) = different.number(row);
            if is_new {
                counts.push(0);
            }
            pairs += u64::from(counts[number as usize]);
            counts[number as usize] += 1;
        }
        pairs
    }

    /// Finds the copies, and leaves each vector once in `coordinates`.
    pub(super) fn group(coordinates: &mut Vec<f32>, dims: usize) -> Self {
        let rows = coordinates.len() / dims;
        let mut different = Different::new(coordinates, dims, random_seed());
        let mut copies = Self { numbers: Vec::with_capacity(rows), counts: vec![], firsts: vec![] };
        for row in 0..rows {
            let (number, is_new) = different.number(row);
            if is_new {
                copies.counts.push(0);
                copies.firsts.push(narrow(row));
            }
            copies.counts[number as usize] += 1;
            copies.numbers.push(number);
        }
        let firsts = &copies.firsts;
        for (number, &row) in firsts.iter().enumerate() {
            let begin = row as usize * dims;
            coordinates.copy_within(begin..begin + dims, number * dims);
        }
        coordinates.truncate(firsts.len() * dims);
        coordinates.shrink_to_fit();
        copies
    }

    /// Number of different vectors.
    pub(super) fn len(&self) -> usize {
        self.counts.len()
    }

    /// Number of the vector of a row.
    pub(super) fn number(&self, row: usize) -> usize {
        self.numbers[row] as usize
    }

    /// Rows of a vector.
    pub(super) fn count(&self, number: usize) -> u32 {
        self.counts[number]
    }

    /// Whether no earlier row has the vector of this one.
    pub(super) fn is_first(&self, row: usize) -> bool {
        self.firsts[self.number(row)] as usize == row
    }

    /// Pairs of rows of one vector.
    pub(super) fn pairs(&self) -> u64 {
        self.counts.iter().map(|&count| u64::from(count) * u64::from(count - 1) / 2).sum()
    }

    /// Bytes.
    pub(super) fn bytes(&self) -> usize {
        let Self { numbers, counts, firsts } = self;
        [numbers, counts, firsts].map(|numbers| size_of_val(&numbers[..])).iter().sum()
    }
}

/// The different ones among rows of coordinates.
struct Different<'a> {
    coordinates: &'a [f32],
    dims: usize,
    seed: u64,
    /// Row of each different vector, and its number.
    table: HashTable<(u32, u32)>,
}

impl<'a> Different<'a> {
    fn new(coordinates: &'a [f32], dims: usize, seed: u64) -> Self {
        Self { coordinates, dims, seed, table: HashTable::new() }
    }

    /// The number of the vector of a row, and whether the vector is new.
    fn number(&mut self, row: usize) -> (u32, bool) {
        let Self { coordinates, dims, seed, table } = self;
        let vector = |row: usize| &coordinates[row * *dims..][..*dims];
        let hash = |row: usize| {
            // Zeros of both signs are equal, and all coordinates are finite.
            let bits = vector(row).iter().map(|x| (x + 0.0).to_bits());
            bits.fold(*seed, |hash, bits| split_mix(hash, u64::from(bits)))
        };
        let next = narrow(table.len());
        let is_equal = |&(other, _): &(u32, u32)| vector(other as usize) == vector(row);
        let entry = table.entry(hash(row), is_equal, |&(other, _)| hash(other as usize));
        let is_new = matches!(entry, hashbrown::hash_table::Entry::Vacant(_));
        (entry.or_insert((narrow(row), next)).get().1, is_new)
    }
}

fn narrow(row: usize) -> u32 {
    u32::try_from(row).expect("rows have 32-bit numbers")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_are_numbered_in_the_order_in_which_vectors_came_first() {
        let rows = [[1.0_f32, 0.0], [2.0, 0.0], [1.0, -0.0], [3.0, 3.0], [2.0, 0.0], [1.0, 0.0]];
        let mut coordinates = rows.concat();
        let copies = Copies::group(&mut coordinates, 2);
        assert_eq!(coordinates, [1.0, 0.0, 2.0, 0.0, 3.0, 3.0]);
        assert_eq!(copies.numbers, [0, 1, 0, 2, 1, 0]);
        assert_eq!((copies.len(), copies.pairs()), (3, 3 + 1));
        assert_eq!([0, 1, 2].map(|number| copies.count(number)), [3, 2, 1]);
        let firsts: Vec<usize> = (0..6).filter(|&row| copies.is_first(row)).collect();
        assert_eq!(firsts, [0, 1, 3]);
        assert!(copies.bytes() <= copies_bytes(6));
        assert_eq!(Copies::group(&mut Vec::new(), 2).len(), 0);
    }

    #[test]
    fn a_sample_tells_large_groups_from_none() {
        let tuning = Tuning::default();
        let mut coordinates: Vec<f32> = (1..200_001).map(f32::from_bits).collect();
        assert!(!Copies::pay(&coordinates, 1, &tuning));
        coordinates[100_000..110_000].fill(7.0);
        assert!(Copies::pay(&coordinates, 1, &tuning));
        assert!(!Copies::pay(&[], 1, &tuning));
    }

    #[test]
    fn pairs_of_copies_are_those_of_every_two_vectors() {
        let vectors: Vec<[f32; 2]> = (0..90_u8).map(|row| [f32::from(row % 7), 1.0]).collect();
        let equal = |row: usize| (0..row).filter(|&other| vectors[row] == vectors[other]).count();
        let expected: usize = (0..vectors.len()).map(equal).sum();
        let mut coordinates = vectors.concat();
        assert_eq!(Copies::pairs_among(&coordinates, 2), expected as u64);
        assert_eq!(Copies::group(&mut coordinates, 2).pairs(), expected as u64);
    }
}
