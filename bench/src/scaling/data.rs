//! Files of the questions: a log, integers, sets, queries and vectors. A seed that never changes
//! makes each of them, so a file of the same name has the same contents.

use std::cell::OnceCell;
use std::fs::{self, File};
use std::io::{self, BufWriter, Read as _, Write};
use std::path::{Path, PathBuf};

use arrow_array::cast::AsArray as _;
use arrow_array::types::UInt32Type;
use tempfile::{NamedTempFile, TempDir};
use trommel::{Collect, Generate, Graph, Zipf};

use super::counts::{Exact, Unit};
use crate::epsilon_join::data::{Shape, Workload};
use crate::runner::numbers::Numbers;
use crate::runner::pipelines;

/// Lines of a log, and different ones among them.
const LINES: f64 = 15e6;
const DISTINCT_LINES: u32 = 1_000_000;
/// Integers of a file, and different ones among them.
const INTEGERS: f64 = 400e6;
const DISTINCT_INTEGERS: u32 = 10_000_000;
/// Sets, which are the documents, too.
const SETS: f64 = 3e6;
const QUERIES: f64 = 500e3;
/// Items of a query, at most.
const TERMS: usize = 3;
const VECTORS: f64 = 1e6;
/// Coordinates of a vector.
const DIMS: usize = 8;
/// Distance of a pair of [`VECTORS`] vectors.
const EPSILON: f64 = 0.15;
/// Numbers that are drawn at once.
const DRAWN: usize = 1 << 16;

/// Sets of ascending items.
#[derive(Debug, Default)]
pub(super) struct Sets {
    /// End of each set in `items`.
    ends: Vec<usize>,
    items: Vec<u32>,
}

impl Sets {
    /// Adds a set, whose items may have any order.
    fn push(&mut self, items: impl IntoIterator<Item = u32>) {
        let mut set: Vec<u32> = items.into_iter().collect();
        set.sort_unstable();
        set.dedup();
        self.items.extend(set);
        self.ends.push(self.items.len());
    }

    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(super) fn get(&self, at: usize) -> &[u32] {
        let begin = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.items[begin..self.ends[at]]
    }

    pub(super) fn each(&self) -> impl Iterator<Item = &[u32]> {
        (0..self.len()).map(|at| self.get(at))
    }

    /// Writes a line for each set.
    fn write(&self, file: &mut dyn Write) -> io::Result<()> {
        for set in self.each() {
            for (place, item) in set.iter().enumerate() {
                let before = if place > 0 { " " } else { "" };
                write!(file, "{before}{item}")?;
            }
            writeln!(file)?;
        }
        Ok(())
    }
}

impl<'a> FromIterator<&'a [u32]> for Sets {
    fn from_iter<I: IntoIterator<Item = &'a [u32]>>(sets: I) -> Self {
        let mut all = Self::default();
        sets.into_iter().for_each(|set| all.push(set.iter().copied()));
        all
    }
}

/// Vectors in a file.
#[derive(Debug)]
pub(super) struct VectorFile {
    pub(super) path: PathBuf,
    pub(super) values: Vec<f32>,
    pub(super) dims: usize,
    pub(super) epsilon: f64,
}

/// A folder with files.
#[derive(Debug)]
pub(super) struct Data {
    folder: PathBuf,
    size: f64,
    text: Option<PathBuf>,
    /// The sets and their file, which several questions use.
    sets: OnceCell<(PathBuf, Sets)>,
    /// The folder, where it is removed at the end.
    _temporary: Option<TempDir>,
}

impl Data {
    /// Files in `folder`, or in a temporary folder, of `size` of the full sizes.
    ///
    /// # Errors
    /// If the folder cannot be made.
    pub(super) fn new(folder: Option<&Path>, text: Option<&Path>, size: f64) -> io::Result<Self> {
        let temporary = folder.is_none().then(TempDir::new).transpose()?;
        let folder = folder.or(temporary.as_ref().map(TempDir::path)).expect("one of them");
        fs::create_dir_all(folder)?;
        // A pipeline would take a pattern, or a path from another folder, for another file.
        let (folder, text) = (folder.canonicalize()?, text.map(Path::canonicalize).transpose()?);
        Ok(Self { folder, size, text, sets: OnceCell::new(), _temporary: temporary })
    }

    /// A file for a pipeline or for the rows of a run.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a positive number of rows"
    )]
    fn scaled(&self, full: f64) -> usize {
        (full * self.size).round().max(1.0) as usize
    }

    /// A file that is there, or that `write` makes now.
    fn file(
        &self,
        name: &str,
        write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> io::Result<PathBuf> {
        let path = self.path(name);
        if !path.exists() {
            println!("makes {}\n", path.display());
            // A file that is not whole never has this name.
            let mut file = BufWriter::new(NamedTempFile::new_in(&self.folder)?);
            write(&mut file)?;
            file.into_inner()?.persist(&path)?;
        }
        Ok(path)
    }

    /// The log, and the exact counts of its items.
    ///
    /// # Errors
    /// If the file cannot be read or written.
    pub(super) fn log(&self, unit: Unit) -> io::Result<(PathBuf, Exact)> {
        if let Some(path) = &self.text {
            let mut bytes = Vec::new();
            File::open(path)?.read_to_end(&mut bytes)?;
            let text = String::from_utf8_lossy(&bytes);
            return Ok((path.clone(), Exact::of_lines(unit, text.lines().map(|line| (line, 1)))));
        }
        let count = self.scaled(LINES);
        let lines: Vec<String> = (0..DISTINCT_LINES).map(line).collect();
        let path = self.file(&format!("log-{count}.txt"), |file| {
            let mut write = |&number: &u32| writeln!(file, "{}", lines[number as usize]);
            draw(DISTINCT_LINES, count, |numbers| numbers.iter().try_for_each(&mut write))
        })?;
        let counts = drawn_counts(DISTINCT_LINES, count);
        let there = lines.iter().zip(counts).filter(|(_, times)| *times > 0);
        let exact = Exact::of_lines(unit, there.map(|(line, times)| (line.as_str(), times)));
        Ok((path, exact))
    }

    /// Little-endian integers, and their exact counts.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub(super) fn integers(&self) -> io::Result<(PathBuf, Exact)> {
        let count = self.scaled(INTEGERS);
        let path = self.file(&format!("integers-{count}.u32"), |file| {
            let bytes = |numbers: &[u32]| crate::runner::numbers::bytes(numbers.iter().copied());
            draw(DISTINCT_INTEGERS, count, |numbers| file.write_all(&bytes(numbers)))
        })?;
        let counts = drawn_counts(DISTINCT_INTEGERS, count).into_iter().zip(0_u32..);
        Ok((path, Exact::of(counts.filter(|(count, _)| *count > 0).collect())))
    }

    /// Sets of 5 to 30 items, of which a tenth are near-duplicates of earlier ones.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub(super) fn sets(&self) -> io::Result<(PathBuf, &Sets)> {
        let (path, sets) = match self.sets.get() {
            Some(made) => made,
            None => {
                let made = self.make_sets()?;
                self.sets.get_or_init(|| made)
            }
        };
        Ok((path.clone(), sets))
    }

    fn make_sets(&self) -> io::Result<(PathBuf, Sets)> {
        let count = self.scaled(SETS);
        let mut graph = Graph::new();
        let generated = Generate::sets(500_000, 0.8).sizes(5..=30).items(count as u64);
        let generated = graph.add("sets", generated);
        let (sink, rows) = Collect::new();
        graph.add_after(generated, "rows", sink);
        pipelines::run(graph);
        let mut sets = Sets::default();
        for batch in rows.take() {
            let lists =
                batch.column_by_name("set").expect("sets have this column").as_list::<i32>();
            for set in lists.iter().flatten() {
                sets.push(set.as_primitive::<UInt32Type>().values().iter().copied());
            }
        }
        let path = self.file(&format!("sets-{count}.txt"), |file| sets.write(file))?;
        Ok((path, sets))
    }

    /// Queries of one to three items, which are together in one of the documents at least.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub(super) fn queries(&self, documents: &Sets) -> io::Result<(PathBuf, Sets)> {
        let count = self.scaled(QUERIES);
        let (mut numbers, mut queries) = (Numbers::default(), Sets::default());
        for _ in 0..count {
            let document = documents.get(numbers.below(documents.len()));
            let terms = 1 + numbers.below(TERMS);
            let term = |_| document[numbers.below(document.len())];
            queries.push((0..terms).map(term).collect::<Vec<u32>>());
        }
        let name = format!("queries-{count}-of-{}.txt", documents.len());
        let path = self.file(&name, |file| queries.write(file))?;
        Ok((path, queries))
    }

    /// Uniform vectors, and a distance within which a vector has about one other.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub(super) fn vectors(&self) -> io::Result<VectorFile> {
        let len = self.scaled(VECTORS);
        // The number of near vectors is proportional to the number of vectors and the power of
        // the distance by the number of dimensions.
        let epsilon = EPSILON * (VECTORS / len as f64).powf(1.0 / DIMS as f64);
        let epsilon = (epsilon * 1e4).round() / 1e4;
        let values = Workload { shape: Shape::Uniform, len, dims: DIMS, epsilon }.values();
        let path = self.file(&format!("vectors-{len}x{DIMS}.f32"), |file| {
            values.iter().try_for_each(|value| file.write_all(&value.to_le_bytes()))
        })?;
        Ok(VectorFile { path, values, dims: DIMS, epsilon })
    }
}

/// The line of a number: ten words of letters and digits, about 73 bytes.
fn line(number: u32) -> String {
    let mixed = u64::from(number).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let (host, agent, region) = (mixed >> 50, mixed >> 40 & 0x7F, mixed >> 36 & 7);
    let (bytes, status) = (mixed >> 20 & 0xFFFF, [200, 200, 304, 404][number as usize % 4]);
    format!(
        "host{host:05} GET Item{number:06x} status {status} after {bytes} bytes by Agent{agent} in \
         Region{region}"
    )
}

/// Draws `count` numbers of a Zipf distribution, which `take` gets in parts.
fn draw(
    distinct: u32,
    count: usize,
    mut take: impl FnMut(&[u32]) -> io::Result<()>,
) -> io::Result<()> {
    let mut zipf = Zipf::new(distinct, 1.0, 1).expect("a skew within the limits");
    let (mut numbers, mut missing) = (vec![0; DRAWN], count);
    while missing > 0 {
        numbers.truncate(missing);
        zipf.fill(&mut numbers);
        take(&numbers)?;
        missing -= numbers.len();
    }
    Ok(())
}

/// How often [`draw`] draws each number.
fn drawn_counts(distinct: u32, count: usize) -> Vec<u64> {
    let mut counts = vec![0; distinct as usize];
    let add = |numbers: &[u32]| {
        numbers.iter().for_each(|&number| counts[number as usize] += 1);
        Ok(())
    };
    draw(distinct, count, add).expect("counting does not fail");
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_have_their_sizes_and_are_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let data = Data::new(Some(folder.path()), None, 1e-5).unwrap();
        let (log, exact) = data.log(Unit::Line).unwrap();
        let text = fs::read_to_string(&log).unwrap();
        assert_eq!(text.lines().count(), 150);
        assert!((60..=80).contains(&(text.len() / 150)), "{text}");
        // The counts without the file are those of the file.
        let given = Data::new(Some(folder.path()), Some(&log), 1e-5).unwrap();
        assert_eq!(given.log(Unit::Line).unwrap(), (log.canonicalize().unwrap(), exact));
        let (integers, _) = data.integers().unwrap();
        assert_eq!(fs::metadata(integers).unwrap().len(), 4 * 4_000);
        fs::write(data.path("vectors-10x8.f32"), "kept").unwrap();
        assert_eq!(fs::read(data.vectors().unwrap().path).unwrap(), b"kept");
        let (_, sets) = data.sets().unwrap();
        let (queries, _) = data.queries(sets).unwrap();
        assert_eq!(fs::read_to_string(queries).unwrap().lines().count(), 5);
    }
}
