//! Copies of vectors: equal ones are joined once.
//!
//! Each copy of a vector is a partner of all other copies, so that a join which visits pairs takes
//! n² steps for n copies. Arithmetic gives the answer at once: n (n - 1) / 2 pairs, and n - 1
//! partners of each copy. So if the output does not list each pair, only the distinct vectors are
//! joined, and each distinct vector counts as often as it occurs.
//!
//! Most data has few copies, and finding copies reads all vectors. A random sample decides whether
//! the search pays: a group of copies that is large enough to make a join slow has several vectors
//! in the sample.

use hashbrown::HashTable;
use trommel_kernels::sieve::split_mix;

use crate::epsilon_join::parameters::tuning::Tuning;
use crate::shared::names::secret::random_seed;

/// Vectors of a part of a stream for each vector of the sample, and minimum size of the sample. In
/// a micro-batch of 4,096 vectors, a group of 150 copies has about 9 vectors in the sample, and
/// smaller groups make few pairs.
const STREAM_SHARE: usize = 32;
const STREAM_SAMPLE_MIN: usize = 256;

/// The copies among the rows of an input. Distinct vectors are numbered in the order of their first
/// rows.
#[derive(Debug)]
pub(crate) struct Copies {
    /// For each row: the number of its vector.
    numbers: Vec<u32>,
    /// The rows of each vector, ascending, one vector after the other.
    rows: Vec<u32>,
    /// For each distinct vector: the end of its rows.
    ends: Vec<u32>,
}

/// Maximum bytes for finding the copies among `rows` vectors: numbers, rows, first rows and ends,
/// and a hash table that has just grown, together with the table before the growth.
pub(crate) fn copies_bytes(rows: usize) -> usize {
    rows.saturating_mul(12 * size_of::<u32>())
}

impl Copies {
    /// Whether a sample of the vectors has so many copies that joining equal vectors once pays.
    pub(crate) fn pay(coordinates: &[f32], dims: usize, tuning: &Tuning) -> bool {
        Self::pay_by(coordinates, dims, tuning.copies_sampled, tuning.copies_min)
    }

    /// As [`Self::pay`], for a part of a stream. The sample is smaller because parts are merged and
    /// each merge takes a new sample.
    pub(crate) fn pay_in_stream(coordinates: &[f32], dims: usize, tuning: &Tuning) -> bool {
        let share = coordinates.len() / dims / STREAM_SHARE;
        let sampled = share.max(STREAM_SAMPLE_MIN).min(tuning.copies_sampled);
        Self::pay_by(coordinates, dims, sampled, tuning.copies_min)
    }

    fn pay_by(coordinates: &[f32], dims: usize, sampled: usize, copies_min: usize) -> bool {
        let rows = coordinates.len() / dims;
        if rows <= copies_min {
            return false;
        }
        let (seed, sampled) = (random_seed(), rows.min(sampled));
        let row = |draw: usize| match sampled < rows {
            false => draw,
            // The seed is random, so nobody who chooses the vectors can know the sample.
            true => usize::try_from(split_mix(seed, draw as u64) % rows as u64).unwrap_or(0),
        };
        let mut rows: Vec<usize> = (0..sampled).map(row).collect();
        rows.sort_unstable();
        rows.dedup();
        let drawn = rows.len();
        let mut different = Different::new(coordinates, dims, seed);
        let new = rows.into_iter().filter(|&row| different.number(row).1).count();
        drawn - new >= copies_min
    }

    /// Number of pairs of equal vectors.
    pub(crate) fn pairs_among(coordinates: &[f32], dims: usize) -> u64 {
        let rows = coordinates.len() / dims;
        let mut different = Different::new(coordinates, dims, random_seed());
        let mut counts: Vec<u32> = Vec::with_capacity(rows);
        let mut pairs = 0;
        for row in 0..rows {
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
    pub(crate) fn group(coordinates: &mut Vec<f32>, dims: usize) -> Self {
        let (numbers, different) = numbered(coordinates, dims);
        Self::of_numbers(numbers, different)
    }

    /// The copies among the rows of `parts`, one part after the other; `None` unless a part has
    /// copies or a sample has enough copies. A part is given by its copies, if the part has copies,
    /// and its number of rows. `coordinates` has the joined vectors of all parts, and afterwards
    /// each distinct vector once.
    pub(crate) fn joined<'a>(
        parts: impl Iterator<Item = (Option<&'a Self>, usize)> + Clone,
        coordinates: &mut Vec<f32>,
        dims: usize,
        tuning: &Tuning,
    ) -> Option<Self> {
        let has_copies = parts.clone().any(|(copies, _)| copies.is_some());
        if !has_copies && !Self::pay_in_stream(coordinates, dims, tuning) {
            return None;
        }
        let (of_vectors, different) = numbered(coordinates, dims);
        let mut numbers = Vec::with_capacity(parts.clone().map(|(_, rows)| rows).sum());
        let mut first = 0;
        for (copies, rows) in parts {
            let vectors = copies.map_or(rows, Self::len);
            let of_part = &of_vectors[first..first + vectors];
            match copies {
                None => numbers.extend_from_slice(of_part),
                Some(copies) => {
                    numbers.extend(copies.numbers.iter().map(|&number| of_part[number as usize]));
                }
            }
            first += vectors;
        }
        Some(Self::of_numbers(numbers, different))
    }

    /// The copies of rows whose vectors have these `numbers`; there are `different` distinct
    /// vectors.
    fn of_numbers(numbers: Vec<u32>, different: usize) -> Self {
        let mut ends = vec![0_u32; different];
        numbers.iter().for_each(|&number| ends[number as usize] += 1);
        let mut begin = 0;
        for end in &mut ends {
            // The value is first the begin of the vector's rows, and becomes the end while the rows
            // are written.
            begin += std::mem::replace(end, begin);
        }
        let mut rows = vec![0; numbers.len()];
        for (row, &number) in (0..).zip(&numbers) {
            let end = &mut ends[number as usize];
            rows[*end as usize] = row;
            *end += 1;
        }
        Self { numbers, rows, ends }
    }

    /// Number of distinct vectors.
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Number of the vector of a row.
    pub(crate) fn number(&self, row: usize) -> usize {
        self.numbers[row] as usize
    }

    /// Rows of a vector, ascending.
    pub(crate) fn rows(&self, number: usize) -> &[u32] {
        let begin = if number == 0 { 0 } else { self.ends[number - 1] };
        &self.rows[begin as usize..self.ends[number] as usize]
    }

    /// Whether no earlier row has the vector of `row`.
    pub(crate) fn is_first(&self, row: usize) -> bool {
        self.rows(self.number(row))[0] as usize == row
    }

    /// Pairs of rows of one vector.
    pub(crate) fn pairs(&self) -> u64 {
        let pairs = |number| {
            let count = self.rows(number).len() as u64;
            count * (count - 1) / 2
        };
        (0..self.len()).map(pairs).sum()
    }

    /// Bytes.
    pub(crate) fn bytes(&self) -> usize {
        let Self { numbers, rows, ends } = self;
        [numbers, rows, ends].map(|numbers| size_of_val(&numbers[..])).iter().sum()
    }
}

/// The number of the vector of each row, and the count of distinct vectors. Leaves each distinct
/// vector once in `coordinates`.
fn numbered(coordinates: &mut Vec<f32>, dims: usize) -> (Vec<u32>, usize) {
    let rows = coordinates.len() / dims;
    let mut different = Different::new(coordinates, dims, random_seed());
    let (mut numbers, mut firsts) = (Vec::with_capacity(rows), Vec::with_capacity(rows));
    for row in 0..rows {
        let (number, is_new) = different.number(row);
        if is_new {
            firsts.push(narrow(row));
        }
        numbers.push(number);
    }
    for (number, &row) in firsts.iter().enumerate() {
        let begin = row as usize * dims;
        coordinates.copy_within(begin..begin + dims, number * dims);
    }
    coordinates.truncate(firsts.len() * dims);
    coordinates.shrink_to_fit();
    (numbers, firsts.len())
}

/// The distinct vectors among rows of coordinates.
struct Different<'a> {
    coordinates: &'a [f32],
    dims: usize,
    seed: u64,
    /// First row of each distinct vector, and the number of that vector.
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
            // Adding 0 gives zeros of both signs equal bits. No coordinate is NaN, because all
            // coordinates are finite.
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
        assert_eq!([0, 1, 2].map(|number| copies.rows(number)), [&[0, 2, 5][..], &[1, 4], &[3]]);
        let firsts: Vec<usize> = (0..6).filter(|&row| copies.is_first(row)).collect();
        assert_eq!(firsts, [0, 1, 3]);
        assert!(copies.bytes() <= copies_bytes(6));
        assert_eq!(Copies::group(&mut Vec::new(), 2).len(), 0);
    }

    #[test]
    fn copies_of_parts_are_those_of_all_rows() {
        let tuning = Tuning::default();
        let row = |row: u16| [f32::from(row % 17 * (row % 17) % 11), 1.0];
        // Two parts whose copies are joined once, and one part without copies.
        let parts = [0..40, 40..47, 47..300].map(|rows| {
            let mut coordinates = rows.clone().flat_map(row).collect::<Vec<f32>>();
            let copies = (rows.len() > 7).then(|| Copies::group(&mut coordinates, 2));
            (copies, rows.len(), coordinates)
        });
        let mut coordinates = parts.iter().flat_map(|part| part.2.iter().copied()).collect();
        let of_parts = parts.iter().map(|(copies, rows, _)| (copies.as_ref(), *rows));
        let joined = Copies::joined(of_parts, &mut coordinates, 2, &tuning).unwrap();
        let mut expected_coordinates = (0..300).flat_map(row).collect();
        let expected = Copies::group(&mut expected_coordinates, 2);
        assert_eq!(coordinates, expected_coordinates);
        assert_eq!((joined.numbers, joined.rows), (expected.numbers, expected.rows));
        assert_eq!(joined.ends, expected.ends);
        let mut different: Vec<f32> = (0..300_u16).map(f32::from).collect();
        let parts = [(None, 100), (None, 200)].into_iter();
        assert!(Copies::joined(parts, &mut different, 1, &tuning).is_none());
        assert_eq!(different.len(), 300);
    }

    #[test]
    fn a_sample_tells_large_groups_from_none() {
        let tuning = Tuning::default();
        let mut coordinates: Vec<f32> = (1..200_001).map(f32::from_bits).collect();
        assert!(!Copies::pay(&coordinates, 1, &tuning));
        coordinates[100_000..110_000].fill(7.0);
        assert!(Copies::pay(&coordinates, 1, &tuning));
        assert!(!Copies::pay(&[], 1, &tuning));
        assert!(Copies::pay_in_stream(&coordinates, 1, &tuning));
        assert!(!Copies::pay_in_stream(&coordinates[..100_000], 1, &tuning));
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
