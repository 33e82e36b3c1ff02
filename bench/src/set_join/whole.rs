//! Whole runs: from a file to the number of pairs, with the time of each step.
//!
//! ```text
//! file ──► read ──► [tokenize] ──► set_similarity_join, count ──► collect
//! ```
//!
//! The file is written as data comes: sets in a random order, tokens with random numbers. It has
//! either lines of integers, ascending, or lines of words, in a random order. A row of the table
//! is a step: reading and tokens are measured by shorter pipelines, of which the one before is
//! subtracted; numbering and sorting, and the join, by the library, over the same sets in memory.
//! All algorithms run in the same pipeline, so a quotient of whole runs is that of users.

use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::UInt32Type;
use trommel::placement::Placement;
use trommel::set_similarity_join::{
    JoinAlgorithm, SetCollection, SetCollector, Side, Similarity, Threshold,
};
use trommel::{
    Collect, Device, Discard, Graph, JoinOutput, Read, ReadFormat, SetSimilarityJoin, Tokenize,
};

use super::data::{Input, MEMORY_MAX};
use super::gpussjoin::{GpuSsJoin, Joined};
use super::library::Row;
use crate::runner::pipelines::{count, run};
use crate::runner::report::Table;
use crate::runner::turns::{Run, Turns};
use crate::runner::{Runs, isa};

/// Algorithms of the literature.
const PUBLISHED: [JoinAlgorithm; 3] =
    [JoinAlgorithm::AllPairs, JoinAlgorithm::PpJoin, JoinAlgorithm::GroupJoin];

/// Form of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Integers,
    Words,
}

/// Last stage of a pipeline.
#[derive(Debug, Clone, Copy)]
enum UpTo {
    Lines,
    Sets,
    Count(JoinAlgorithm, u32),
}

/// A file of sets.
struct File<'a> {
    path: &'a str,
    form: Form,
}

/// Seconds of our runs at a threshold, on one core.
struct Ours {
    percent: u32,
    preparing: f64,
    join: f64,
    whole: f64,
}

/// Measures whole runs of `input` at all `thresholds`, as integers and as words, and then the joins
/// of `peer` over the same file.
///
/// # Errors
/// If a file cannot be written, or the peer fails.
pub(super) fn measure(
    input: &Input,
    thresholds: &[u32],
    runs: Runs,
    peer: Option<&GpuSsJoin>,
) -> io::Result<()> {
    let folder = tempfile::tempdir()?;
    for form in [Form::Integers, Form::Words] {
        let path = folder.path().join("sets.txt");
        let tokens = write(&input.shuffled(), form, &path)?;
        let bytes = fs::metadata(&path)?.len();
        let path = path.to_str().expect("a folder of the system");
        let file = File { path, form };
        println!("{}, {form:?}: {tokens} tokens, {:.1} MB\n", input.name, bytes as f64 / 1e6);
        let ours = file.measure(thresholds, runs, tokens);
        if let Some(peer) = peer {
            file.beside(peer, &ours, runs)?;
        }
    }
    Ok(())
}

/// Writes the sets as lines and returns the number of tokens.
fn write(input: &Input, form: Form, path: &Path) -> io::Result<usize> {
    let mut file = io::BufWriter::new(fs::File::create(path)?);
    let (mut renamed, mut tokens) = (input.renamed(), 0);
    for set in &mut renamed {
        tokens += set.len();
        if form == Form::Integers {
            set.sort_unstable();
        }
        for (place, &token) in set.iter().enumerate() {
            if place > 0 {
                file.write_all(b" ")?;
            }
            match form {
                Form::Integers => write!(file, "{token}")?,
                Form::Words => file.write_all(&word(token))?,
            }
        }
        file.write_all(b"\n")?;
    }
    file.flush()?;
    Ok(tokens)
}

/// A word of three letters or more.
fn word(token: u32) -> Vec<u8> {
    let mut rest = u64::from(token) + 26 * 26;
    let mut letters = Vec::new();
    while rest > 0 {
        letters.push(b'a' + u8::try_from(rest % 26).expect("below 26"));
        rest /= 26;
    }
    letters
}

/// The median of runs of one kind.
fn median<'a>(runs: Runs, run: impl FnMut() -> Run<u64> + 'a) -> Duration {
    let mut turns = Turns::new(runs).cold();
    turns.add("ours", run);
    turns.run()[0].median()
}

impl File<'_> {
    /// Prints the steps and the whole runs at all thresholds.
    fn measure(&self, thresholds: &[u32], runs: Runs, tokens: usize) -> Vec<Ours> {
        let [lines, sets] = [UpTo::Lines, UpTo::Sets]
            .map(|up_to| median(runs, || self.run(up_to, Placement::Fused)));
        let batches = self.sets();
        let mut collection = None;
        let numbering =
            median(runs, || Run::of(|| collection.insert(collect(&batches)).len() as u64));
        let collection = Arc::new(collection.expect("there is a run"));
        let mut table = Table::new("step, one core | seconds: | ns a token:");
        for (name, time) in [
            ("reading lines", lines),
            ("cutting and converting tokens", sets.saturating_sub(lines)),
            ("numbering and sorting", numbering),
            ("all before the join", sets + numbering),
        ] {
            let seconds = time.as_secs_f64();
            table.row(format!("{name} | {seconds:.4} | {:.1}", 1e9 * seconds / tokens as f64));
        }
        drop(table);
        let mut table = Table::new(
            "threshold: | pairs: | join alone: | whole run, one core: | on two: | \
             best published, one core: | the best on two: | quotients:",
        );
        let preparing = (sets + numbering).as_secs_f64();
        let whole = |&percent: &u32| {
            let (join, whole) = self.whole(percent, &collection, runs, &mut table);
            Ours { percent, preparing, join, whole }
        };
        thresholds.iter().map(whole).collect()
    }

    /// Prints the joins of the peer at the thresholds of ours.
    fn beside(&self, peer: &GpuSsJoin, ours: &[Ours], runs: Runs) -> io::Result<()> {
        let mut table = Table::new(
            "threshold: | join | pairs: | preparing: | join alone: | whole run: | \
             join, times ours: | whole run, times ours: | after our preparation, times ours:",
        );
        for &Ours { percent, preparing: our_preparing, join, whole } in ours {
            for published in &peer.joins {
                let Joined { pairs, preparing, joining } =
                    published.run(Path::new(self.path), percent, runs)?;
                table.row(format!(
                    "{percent} | {} | {pairs} | {preparing:.4} | {joining:.4} | {:.4} | {:.1} | \
                     {:.1} | {:.1}",
                    published.name,
                    preparing + joining,
                    joining / join,
                    (preparing + joining) / whole,
                    (our_preparing + joining) / whole,
                ));
            }
        }
        Ok(())
    }

    /// Prints the whole runs at a threshold, and returns the seconds of our join alone and of the
    /// whole run on one core.
    fn whole(
        &self,
        percent: u32,
        collection: &Arc<SetCollection>,
        runs: Runs,
        table: &mut Table,
    ) -> (f64, f64) {
        let expected = join(collection, percent);
        let alone = median(runs, || Run::of(|| join(collection, percent))).as_secs_f64();
        let [one, two] = [Placement::Fused, Placement::Auto].map(|placement| {
            let mut turns = Turns::new(runs).cold().expect(expected);
            for algorithm in [JoinAlgorithm::Auto].into_iter().chain(PUBLISHED) {
                let up_to = UpTo::Count(algorithm, percent);
                turns.add(algorithm.name(), move || self.run(up_to, placement));
            }
            let measured = turns.run();
            let best = measured[1..].iter().min_by_key(|engine| engine.median());
            let best = best.expect("three algorithms");
            (measured[0].seconds(), best.seconds(), best.name.clone())
        });
        table.row(format!(
            "{percent} | {expected} | {alone:.4} | {:.4} | {:.4} | {:.4} ({}) | {:.4} ({}) | \
             {:.1}, {:.1}",
            one.0,
            two.0,
            one.1,
            one.2,
            two.1,
            two.2,
            one.1 / one.0,
            two.1 / two.0,
        ));
        (alone, one.0)
    }

    /// A pipeline that reads the sets, or only the lines, joins them if they are to be counted, and
    /// ends with `last`.
    fn graph(&self, up_to: UpTo, last: impl trommel::OperatorSpec + 'static) -> Graph {
        let format = match (up_to, self.form) {
            (UpTo::Lines, _) | (_, Form::Words) => ReadFormat::Lines,
            (_, Form::Integers) => ReadFormat::Sets,
        };
        let mut graph = Graph::new();
        let mut read = graph.add("read", Read::new([self.path], format));
        if self.form == Form::Words && !matches!(up_to, UpTo::Lines) {
            read = graph.add_after(read, "words", Tokenize::words().into_sets());
        }
        if let UpTo::Count(algorithm, percent) = up_to {
            let threshold = Threshold::new(percent, 100).expect("a positive threshold");
            let join = SetSimilarityJoin::new(threshold)
                .algorithm(algorithm)
                .output(JoinOutput::Count)
                .device(Device::Cpu)
                .memory_max(MEMORY_MAX);
            read = graph.add_after(read, "join", join);
        }
        graph.add_after(read, "end", last);
        graph
    }

    /// Runs a pipeline once.
    fn run(&self, up_to: UpTo, placement: Placement) -> Run<u64> {
        let (sink, rows) = Collect::new();
        let mut graph = match up_to {
            UpTo::Count(..) => self.graph(up_to, sink),
            _ => self.graph(up_to, Discard::new()),
        };
        graph.placement(placement);
        let (time, _) = run(graph);
        Run { time, answer: count(&rows), rest: () }
    }

    /// The sets as they come to the join.
    fn sets(&self) -> Vec<RecordBatch> {
        let (sink, rows) = Collect::new();
        run(self.graph(UpTo::Sets, sink));
        rows.take()
    }
}

/// Numbers and sorts the sets of batches.
fn collect(batches: &[RecordBatch]) -> SetCollection {
    let mut collector = SetCollector::new(MEMORY_MAX);
    for batch in batches {
        let ids = batch.column(0).as_primitive::<UInt32Type>();
        let sets = batch.column(1).as_list::<i32>();
        let tokens = sets.values().as_primitive::<UInt32Type>().values();
        let added = collector.extend(Side::Left, ids.values(), sets.value_offsets(), tokens);
        added.expect("sorted sets");
    }
    collector.finish().expect("it fits the memory")
}

/// Number of pairs.
fn join(collection: &Arc<SetCollection>, threshold: u32) -> u64 {
    let (collection, similarity) = (Arc::clone(collection), Similarity::Jaccard);
    let row = Row { collection, similarity, threshold, answer: None };
    row.run(JoinAlgorithm::Auto, isa()).answer
}

#[cfg(test)]
mod tests {
    use super::super::data::generated;
    use super::*;

    #[test]
    fn both_forms_have_the_same_pairs() {
        let input = generated().remove(0).sample(600);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sets.txt");
        let expected = join(&Arc::new(input.collect(false)), 60);
        for form in [Form::Integers, Form::Words] {
            write(&input.shuffled(), form, &path).unwrap();
            let file = File { path: path.to_str().unwrap(), form };
            for placement in [Placement::Fused, Placement::Auto] {
                let up_to = UpTo::Count(JoinAlgorithm::Auto, 60);
                assert_eq!(file.run(up_to, placement).answer, expected, "{form:?}, {placement:?}");
            }
            assert_eq!(join(&Arc::new(collect(&file.sets())), 60), expected, "{form:?}");
        }
    }
}
