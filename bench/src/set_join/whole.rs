//! Whole runs: from a file to the number of pairs, with the time of each step.
//!
//! ```text
//! file ──► read ──► [tokenize] ──► set_similarity_join, count ──► collect
//! ```
//!
//! The file is written as data comes: sets in a random order, tokens with random numbers. It has
//! either lines of integers, ascending, or lines of words, in a random order. A line of the table
//! is a step: reading and tokens are measured by shorter pipelines, of which the one before is
//! subtracted; numbering and sorting, and the join, by the library, over the same sets in memory.
//! All algorithms run in the same pipeline, so a quotient of whole runs is that of users.

use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::{UInt32Type, UInt64Type};
use trommel::Device;
use trommel::placement::Placement;
use trommel::set_similarity_join::{
    JoinAlgorithm, SetCollection, SetCollector, SetJoin, Side, Similarity, Threshold,
};
use trommel::{
    Collect, Discard, Graph, Isa, JoinOutput, Read, ReadFormat, RunOptions, SetSimilarityJoin,
    Tokenize,
};

use super::data::{Input, MEMORY_MAX};
use super::gpussjoin::GpuSsJoin;
use super::{Patience, median};

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

/// Placement of the parts on cores.
#[derive(Debug, Clone, Copy)]
enum Place {
    OneCore,
    /// As the engine places them.
    TwoCores,
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
    isa: Isa,
    patience: Patience,
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
        let ours = file.measure(thresholds, isa, patience, tokens);
        if let Some(peer) = peer {
            file.beside(peer, &ours, patience)?;
        }
    }
    Ok(())
}

/// Writes the sets as lines and returns the number of tokens.
fn write(input: &Input, form: Form, path: &Path) -> io::Result<usize> {
    let mut file = io::BufWriter::new(fs::File::create(path)?);
    let (mut renamed, mut tokens) = (input.renamed(), 0);
    for set in renamed.iter_mut() {
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

impl File<'_> {
    /// Prints the steps and the whole runs at all thresholds.
    fn measure(
        &self,
        thresholds: &[u32],
        isa: Isa,
        patience: Patience,
        tokens: usize,
    ) -> Vec<Ours> {
        let one = |up_to| self.median(up_to, Place::OneCore, patience);
        let (lines, _) = one(UpTo::Lines);
        let (sets, _) = one(UpTo::Sets);
        let batches = self.sets();
        let mut times = Vec::new();
        let mut collection = None;
        for _ in 0..patience.rounds() {
            let begin = Instant::now();
            collection = Some(collect(&batches));
            times.push(begin.elapsed());
        }
        let numbering = median(&mut times);
        let collection = Arc::new(collection.expect("there is a round"));
        println!("| step, one core | seconds | ns a token |\n|---|---:|---:|");
        let step = |name: &str, time: Duration| {
            let seconds = time.as_secs_f64();
            println!("| {name} | {seconds:.4} | {:.1} |", 1e9 * seconds / tokens as f64);
        };
        step("reading lines", lines);
        step("cutting and converting tokens", sets.saturating_sub(lines));
        step("numbering and sorting", numbering);
        step("all before the join", sets + numbering);
        println!();
        println!(
            "| threshold | pairs | join alone | whole run, one core | two cores | \
             best published, one core | two cores | quotients |\n\
             |---:|---:|---:|---:|---:|---:|---:|---:|"
        );
        let preparing = (sets + numbering).as_secs_f64();
        let whole = |&percent: &u32| {
            let (join, whole) = self.whole(percent, &collection, isa, patience);
            Ours { percent, preparing, join, whole }
        };
        let ours = thresholds.iter().map(whole).collect();
        println!();
        ours
    }

    /// Prints the joins of the peer at the thresholds of ours.
    fn beside(&self, peer: &GpuSsJoin, ours: &[Ours], patience: Patience) -> io::Result<()> {
        println!(
            "| threshold | join | pairs | preparing | join alone | whole run | join, times ours | \
             whole run, times ours | after our preparation, times ours |\n\
             |---:|---|---:|---:|---:|---:|---:|---:|---:|"
        );
        for &Ours { percent, preparing, join, whole } in ours {
            for published in &peer.joins {
                let joined = published.run(Path::new(self.path), percent, patience)?;
                println!(
                    "| {percent} | {} | {} | {:.4} | {:.4} | {:.4} | {:.1} | {:.1} | {:.1} |",
                    published.name,
                    joined.pairs,
                    joined.preparing,
                    joined.joining,
                    joined.preparing + joined.joining,
                    joined.joining / join,
                    (joined.preparing + joined.joining) / whole,
                    (preparing + joined.joining) / whole,
                );
            }
        }
        println!();
        Ok(())
    }

    /// Prints the whole runs at a threshold, and returns the seconds of our join alone and of the
    /// whole run on one core.
    fn whole(
        &self,
        percent: u32,
        collection: &Arc<SetCollection>,
        isa: Isa,
        patience: Patience,
    ) -> (f64, f64) {
        let mut times = Vec::new();
        let mut expected = 0;
        for _ in 0..patience.rounds() {
            let begin = Instant::now();
            expected = join(collection, percent, isa);
            times.push(begin.elapsed());
        }
        let alone = median(&mut times).as_secs_f64();
        let run = |algorithm, place| {
            let (time, pairs) = self.median(UpTo::Count(algorithm, percent), place, patience);
            assert_eq!(pairs, expected, "{algorithm:?} finds all pairs");
            time.as_secs_f64()
        };
        let [one, two] = [Place::OneCore, Place::TwoCores].map(|place| {
            let published = PUBLISHED.map(|algorithm| (run(algorithm, place), algorithm));
            let best = published.into_iter().min_by(|a, b| a.0.total_cmp(&b.0));
            (run(JoinAlgorithm::Auto, place), best.expect("three algorithms"))
        });
        println!(
            "| {percent} | {expected} | {alone:.4} | {:.4} | {:.4} | {:.4} ({}) | \
             {:.4} ({}) | {:.1}, {:.1} |",
            one.0,
            two.0,
            one.1.0,
            one.1.1.name(),
            two.1.0,
            two.1.1.name(),
            one.1.0 / one.0,
            two.1.0 / two.0,
        );
        (alone, one.0)
    }

    /// Median time of a pipeline, and its count.
    fn median(&self, up_to: UpTo, place: Place, patience: Patience) -> (Duration, u64) {
        let (mut times, mut total, mut pairs) = (Vec::new(), 0.0, 0);
        while times.len() < patience.rounds() && !patience.is_over(total) {
            let time;
            (time, pairs) = self.run(up_to, place);
            total += time.as_secs_f64();
            times.push(time);
        }
        (median(&mut times), pairs)
    }

    /// Runs a pipeline once.
    fn run(&self, up_to: UpTo, place: Place) -> (Duration, u64) {
        let mut graph = Graph::new();
        let format = match (up_to, self.form) {
            (UpTo::Lines, _) | (_, Form::Words) => ReadFormat::Lines,
            (_, Form::Integers) => ReadFormat::Sets,
        };
        let mut last = graph.add("read", Read::new([self.path], format));
        graph.placement(match place {
            Place::OneCore => Placement::Fused,
            Place::TwoCores => Placement::Auto,
        });
        if self.form == Form::Words && !matches!(up_to, UpTo::Lines) {
            last = graph.add_after(last, "words", Tokenize::words().into_sets());
        }
        let (sink, rows) = Collect::new();
        if let UpTo::Count(algorithm, percent) = up_to {
            let join = SetSimilarityJoin::new(threshold(percent))
                .algorithm(algorithm)
                .output(JoinOutput::Count)
                .device(Device::Cpu)
                .memory_max(MEMORY_MAX);
            last = graph.add_after(last, "join", join);
            graph.add_after(last, "count", sink);
        } else {
            graph.add_after(last, "end", Discard::new());
        }
        let topology = graph.build().expect("the graph is whole");
        let begin = Instant::now();
        topology.run(RunOptions::new()).expect("enough memory");
        let time = begin.elapsed();
        let count = |rows: &RecordBatch| rows.column(0).as_primitive::<UInt64Type>().value(0);
        (time, rows.take().first().map_or(0, count))
    }

    /// The sets as they come to the join.
    fn sets(&self) -> Vec<RecordBatch> {
        let mut graph = Graph::new();
        let format = match self.form {
            Form::Words => ReadFormat::Lines,
            Form::Integers => ReadFormat::Sets,
        };
        let mut last = graph.add("read", Read::new([self.path], format));
        if self.form == Form::Words {
            last = graph.add_after(last, "words", Tokenize::words().into_sets());
        }
        let (sink, rows) = Collect::new();
        graph.add_after(last, "sets", sink);
        graph.build().expect("the graph is whole").run(RunOptions::new()).expect("enough memory");
        rows.take()
    }
}

fn threshold(percent: u32) -> Threshold {
    Threshold::new(percent, 100).expect("a positive threshold")
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
fn join(collection: &Arc<SetCollection>, percent: u32, isa: Isa) -> u64 {
    let (similarity, auto) = (Similarity::Jaccard, JoinAlgorithm::Auto);
    let join = SetJoin::new(collection, similarity, threshold(percent), auto, isa);
    join.expect("a threshold within reach, and enough memory").count().results
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
        let isa = Isa::selected().unwrap();
        let expected = join(&Arc::new(input.collect(false)), 60, isa);
        for form in [Form::Integers, Form::Words] {
            write(&input.shuffled(), form, &path).unwrap();
            let file = File { path: path.to_str().unwrap(), form };
            for place in [Place::OneCore, Place::TwoCores] {
                let up_to = UpTo::Count(JoinAlgorithm::Auto, 60);
                assert_eq!(file.run(up_to, place).1, expected, "{form:?}, {place:?}");
            }
            assert_eq!(join(&Arc::new(collect(&file.sets())), 60, isa), expected, "{form:?}");
        }
    }
}
