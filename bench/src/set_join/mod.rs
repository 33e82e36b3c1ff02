//! Table of the set-similarity join: every algorithm at every threshold, over files of sets or
//! generated ones, every count checked.
//!
//! The clock of a join as a library covers counting and building the index, finding candidates,
//! verifying and counting them. It excludes reading, numbering tokens and sorting sets, whose
//! time is printed separately.

mod data;
mod figures;
mod gpussjoin;
mod grid;
mod growth;
mod joins;
mod peers;
mod streams;
mod summary;
mod tables;
mod waves;
mod whole;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_array::RecordBatch;
use trommel::set_similarity_join::{
    CandidateChunk, JoinAlgorithm, JoinCounters, SetCollection, SetJoin, Similarity, Threshold,
    VerifyMode,
};
use trommel::unstable::cuda::Device;
use trommel::{Isa, JoinOutput};

use self::data::{Input, Truth, files, generated};
use self::gpussjoin::{GpuSsJoin, Verified};
use self::grid::Factors;
use self::growth::Growth;
use self::joins::Joins;
use self::peers::Ours;
use self::streams::{Stream, Streamed};
use self::summary::{Line, Summary};
use self::waves::{Measured, Waves};
use crate::runner::python::Python;

/// Options of `set-join`.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Arguments {
    /// Folder with files of sets (`*.txt`, one set per line) and optionally correct answers
    /// (`ssj_truth.tsv`: a line of names; then, separated by tabs, file, similarity, threshold in
    /// percent or tokens, pairs of all sets, pairs of an even and an odd one); generated sets by
    /// default.
    #[arg(long)]
    data: Option<PathBuf>,
    /// Files of that folder, without extension; by default all.
    #[arg(long, value_delimiter = ',')]
    files: Vec<String>,
    /// Similarities: `jaccard`, `cosine`, `dice`, `overlap`.
    #[arg(long, value_delimiter = ',', default_value = "jaccard", value_parser = similarity)]
    similarities: Vec<Similarity>,
    /// Thresholds in percent, or in tokens for the overlap.
    #[arg(long, value_delimiter = ',', default_value = "95,90,85,80,75,70,60,50")]
    thresholds: Vec<u32>,
    /// Algorithms: `auto`, `all_pairs`, `pp_join`, `pp_join_bitmap`, `group_join`,
    /// `gpu_signatures`; by default all.
    #[arg(long, value_delimiter = ',', value_parser = algorithm)]
    algorithms: Vec<JoinAlgorithm>,
    /// Levels of the processor; by default the best one.
    #[arg(long, value_delimiter = ',')]
    levels: Vec<Isa>,
    /// Verify candidates in waves by each of these: `cpu`, and on a GPU `auto`, `a`, `b`, `c`,
    /// `warp`; `ALGORITHM:MODE`, such as `pp_join:b`, for one algorithm only.
    #[arg(long, value_delimiter = ',', value_parser = verify, group = "beside")]
    verify: Vec<Verify>,
    /// Outputs of joins in waves: `count`, `pairs`.
    #[arg(long, value_delimiter = ',', default_value = "count", value_parser = output)]
    outputs: Vec<JoinOutput>,
    /// Bytes per chunk of a wave.
    #[arg(long, value_delimiter = ',', default_value = "5242880")]
    chunk_bytes: Vec<usize>,
    /// Join two inputs: sets with even numbers and sets with odd ones.
    #[arg(long)]
    two_sided: bool,
    /// Join the sets as a stream in random order, by Jaccard: each set to the sets before it in a
    /// window. Sizes of windows, in sets.
    #[arg(long, value_delimiter = ',', conflicts_with_all = ["verify", "figures", "two_sided", "algorithms", "similarities", "levels"])]
    windows: Vec<usize>,
    /// Sets per batch of the stream.
    #[arg(long, default_value_t = data::BATCH_SETS, requires = "windows")]
    batch: usize,
    /// Drop sets of the stream that have an earlier similar one, instead of finding pairs.
    #[arg(long, requires = "windows")]
    deduplicate: bool,
    /// Measure whole runs instead, from a file of integers or words to the number of pairs, by
    /// Jaccard: `auto` and the published algorithms in the same pipeline, on one core and two.
    #[arg(long, group = "beside", conflicts_with_all = ["verify", "figures", "two_sided", "algorithms", "similarities", "levels", "windows", "python_peers"])]
    end_to_end: bool,
    /// Folder with the sources of gpussjoin (github.com/chribell/gpussjoin): measure its joins
    /// beside ours, in whole runs or with `--verify`. They are compiled by `$CXX` or `c++`, or for
    /// a GPU by `$NVCC` or `nvcc`, and need the headers of sparsehash.
    #[arg(long, requires = "beside", conflicts_with_all = ["two_sided", "similarities"])]
    gpussjoin: Option<PathBuf>,
    /// Divide the time of `auto` by that of the fastest algorithm instead, by Jaccard: over a grid
    /// of generated inputs of `--tokens` tokens, or over the files of `--data`.
    #[arg(long, conflicts_with_all = ["verify", "figures", "two_sided", "similarities", "levels", "windows", "python_peers", "end_to_end"])]
    grid: bool,
    /// Tokens of each generated input of the grid.
    #[arg(long, default_value_t = 1_000_000, requires = "grid")]
    tokens: usize,
    /// Measure whole runs over these numbers of generated sets instead, ascending, by Jaccard:
    /// time and memory on one core, on all, and on a GPU if there is one; with `--windows`, as a
    /// stream with each window.
    #[arg(long, value_delimiter = ',', conflicts_with_all = ["data", "verify", "two_sided", "algorithms", "similarities", "levels", "python_peers", "end_to_end", "grid"])]
    growth: Vec<u64>,
    /// Number of sets to take of each input, evenly spaced; by default all.
    #[arg(long)]
    sets: Option<usize>,
    /// Rounds; the median is shown.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Seconds of all rounds of a join after which no further round is run.
    #[arg(long, default_value_t = f64::INFINITY)]
    seconds: f64,
    /// Folder for figures of the tables.
    #[arg(long)]
    figures: Option<PathBuf>,
    /// Measure Python packages and SQL next to `auto` instead, by Jaccard: SetSimilaritySearch,
    /// py_stringsimjoin, DuckDB, and MinHash by rensa and datasketch. Downloads them once.
    #[arg(long, conflicts_with_all = ["verify", "figures", "two_sided", "algorithms", "similarities"])]
    python_peers: bool,
}

/// Parses the name of a similarity, as in configurations.
fn similarity(name: &str) -> Result<Similarity, String> {
    match name {
        "jaccard" => Ok(Similarity::Jaccard),
        "cosine" => Ok(Similarity::Cosine),
        "dice" => Ok(Similarity::Dice),
        "overlap" => Ok(Similarity::Overlap),
        _ => Err("expected jaccard, cosine, dice or overlap".to_owned()),
    }
}

fn name_of(similarity: Similarity) -> String {
    format!("{similarity:?}").to_lowercase()
}

fn algorithm(name: &str) -> Result<JoinAlgorithm, String> {
    let found = JoinAlgorithm::ALL.into_iter().find(|algorithm| algorithm.name() == name);
    found
        .ok_or_else(|| format!("expected one of {:?}", JoinAlgorithm::ALL.map(JoinAlgorithm::name)))
}

/// Way to verify candidates, of one algorithm or of all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Verify {
    of: Option<JoinAlgorithm>,
    mode: VerifyMode,
}

fn verify(name: &str) -> Result<Verify, String> {
    let (of, name) = match name.split_once(':') {
        Some((of, name)) => (Some(algorithm(of)?), name),
        None => (None, name),
    };
    let mode = VerifyMode::ALL.into_iter().find(|mode| mode.name() == name).ok_or_else(|| {
        format!("expected [ALGORITHM:] and one of {:?}", VerifyMode::ALL.map(VerifyMode::name))
    })?;
    Ok(Verify { of, mode })
}

fn output(name: &str) -> Result<JoinOutput, String> {
    match name {
        "count" => Ok(JoinOutput::Count),
        "pairs" => Ok(JoinOutput::Pairs),
        _ => Err("expected count or pairs".to_owned()),
    }
}

/// Limits of repetition.
#[derive(Debug, Clone, Copy)]
struct Patience {
    rounds: usize,
    seconds: f64,
}

impl Patience {
    /// Maximum rounds, at least 1.
    fn rounds(self) -> usize {
        self.rounds.max(1)
    }

    /// True if runs that took `seconds` in total are enough.
    fn is_over(self, seconds: f64) -> bool {
        seconds > 0.0 && seconds >= self.seconds
    }
}

/// Measures and prints.
pub(crate) fn run(arguments: &Arguments) {
    let isa = Isa::selected().expect("the variable names a level of this machine");
    if !arguments.growth.is_empty() {
        return grow(arguments).expect("the figures can be written");
    }
    if arguments.grid && arguments.data.is_none() {
        return measure_factors(arguments, isa, grid::cells(arguments.tokens));
    }
    let mut inputs = match &arguments.data {
        Some(folder) => files(folder, &arguments.files),
        None => generated(),
    };
    if let Some(sets) = arguments.sets {
        inputs = inputs.into_iter().map(|input| input.sample(sets)).collect();
    }
    if arguments.python_peers {
        if let Err(error) = beside_python(arguments, isa, &inputs) {
            println!("without Python peers: {error}\n");
        }
        return;
    }
    if arguments.grid {
        return measure_factors(arguments, isa, inputs.into_iter());
    }
    if arguments.end_to_end {
        let measured = whole_runs(arguments, isa, &inputs);
        return measured.expect("a folder for files, and a peer that works");
    }
    if !arguments.windows.is_empty() {
        return inputs.iter().for_each(|input| streams(arguments, isa, input));
    }
    join_all(arguments, isa, inputs);
}

/// Joins each input by all algorithms, on all levels or in waves.
fn join_all(arguments: &Arguments, isa: Isa, inputs: Vec<Input>) {
    let levels = if arguments.levels.is_empty() { vec![isa] } else { arguments.levels.clone() };
    let folder = arguments.data.as_deref().filter(|_| arguments.sets.is_none());
    let truth = Truth::read(folder);
    // Held open, so that the context of a GPU is made once.
    let is_gpu_wanted = arguments.verify.iter().any(|verify| verify.mode != VerifyMode::Cpu);
    let begin = Instant::now();
    let _device = is_gpu_wanted.then(|| Device::probe(0).expect("a GPU for these kernels"));
    if is_gpu_wanted {
        println!("context of the GPU: {:.3} s\n", begin.elapsed().as_secs_f64());
    }
    let peer = peer(arguments, if is_gpu_wanted { Verified::OnGpu } else { Verified::OnCpu });
    let mut joined = Vec::new();
    for input in inputs {
        let collection = numbered(&input, arguments.two_sided);
        let batches = input.batches(arguments.two_sided);
        for &similarity in &arguments.similarities {
            println!();
            let answers = arguments.thresholds.iter().map(|&threshold| {
                let answer = truth.pairs(&input.name, &name_of(similarity), threshold);
                let answer = answer.map(|truth| truth[usize::from(arguments.two_sided)]);
                Row { collection: &collection, similarity, threshold, answer }
            });
            let rows: Vec<Row<'_>> = answers.collect();
            if !arguments.verify.is_empty() {
                let joins = in_waves(arguments, &input, &rows, &batches);
                if let Some(peer) = &peer {
                    let patience = patience(arguments);
                    peer.in_waves(&input, &joins, patience).expect("a folder for files");
                }
                joined.push(joins);
                continue;
            }
            let summary = summary(arguments, &runs(arguments, &levels), &rows);
            if let Some(folder) = &arguments.figures {
                draw(&summary, folder, &input, &rows[0]).expect("the figures can be written");
            }
        }
        println!();
    }
    if !joined.is_empty() {
        tables::print_winners(&joined);
    }
}

/// Measures whole runs of each input.
///
/// # Errors
/// If a file cannot be written, or the peer fails.
fn whole_runs(arguments: &Arguments, isa: Isa, inputs: &[Input]) -> io::Result<()> {
    let (thresholds, peer) = (&arguments.thresholds, peer(arguments, Verified::OnCpu));
    inputs.iter().try_for_each(|input| {
        whole::measure(input, thresholds, isa, patience(arguments), peer.as_ref())
    })
}

/// The peer of `--gpussjoin`; without it if it can't be compiled, which is printed.
fn peer(arguments: &Arguments, verified: Verified) -> Option<GpuSsJoin> {
    let sources = arguments.gpussjoin.as_deref()?;
    let compiled = GpuSsJoin::compile(sources, verified);
    compiled.inspect_err(|error| println!("left out: {error}\n")).ok()
}

/// Measures all rows in waves, prints tables and draws figures.
fn in_waves(
    arguments: &Arguments,
    input: &Input,
    rows: &[Row<'_>],
    batches: &[Vec<RecordBatch>],
) -> Joins {
    let (runs, patience) = (waves(arguments), patience(arguments));
    Measured::head();
    let measure = |row| Measured::measure(row, &runs, batches, patience);
    let measured: Vec<Measured> = rows.iter().flat_map(measure).collect();
    println!();
    let (title, x) = named(&rows[0]);
    let file = format!("{}-{}", input.name, name_of(rows[0].similarity));
    let joins = Joins { file, title, x, measured };
    tables::print(&joins);
    if let Some(folder) = &arguments.figures {
        figures::draw(&joins, folder).expect("the figures can be written");
    }
    joins
}

/// Measures whole runs by the number of sets, at each threshold and in each window.
///
/// # Errors
/// If a figure cannot be written.
fn grow(arguments: &Arguments) -> io::Result<()> {
    let windows = match &arguments.windows[..] {
        [] => vec![None],
        windows => windows.iter().copied().map(Some).collect(),
    };
    for window in windows {
        for &percent in &arguments.thresholds {
            let growth = Growth { sets: &arguments.growth, percent, window };
            growth.measure(patience(arguments), arguments.figures.as_deref())?;
        }
    }
    Ok(())
}

/// Compares `auto` with the best algorithm on each input.
fn measure_factors(arguments: &Arguments, isa: Isa, inputs: impl Iterator<Item = Input>) {
    let (mut factors, algorithms) = (Factors::default(), chosen_algorithms(arguments));
    for input in inputs {
        let patience = patience(arguments);
        factors.measure(&input, &arguments.thresholds, &algorithms, isa, patience);
    }
    factors.print();
}

fn patience(arguments: &Arguments) -> Patience {
    Patience { rounds: arguments.rounds, seconds: arguments.seconds }
}

/// Description of the input, and label of the thresholds.
fn named(row: &Row<'_>) -> (String, &'static str) {
    let sets = row.collection.len();
    let (mean, similarity) = (row.collection.tokens() / sets.max(1), name_of(row.similarity));
    let x = if row.similarity == Similarity::Overlap { "common tokens" } else { "threshold in %" };
    (format!("{sets} sets of {mean} tokens, {similarity}"), x)
}

/// Measures the sets as a stream, with each window at each threshold.
fn streams(arguments: &Arguments, isa: Isa, input: &Input) {
    let streamed = Streamed::new(input, arguments.batch);
    println!("{}, {isa}, batches of {} sets\n", input.name, arguments.batch);
    streams::head();
    for &window in &arguments.windows {
        for &percent in &arguments.thresholds {
            let stream = Stream { window, percent, deduplicates: arguments.deduplicate };
            streamed.measure(stream, isa, arguments.rounds);
        }
    }
    println!();
}

/// Collects the sets, ready to be joined, and prints the time of that.
fn numbered(input: &Input, is_two_sided: bool) -> Arc<SetCollection> {
    let begin = Instant::now();
    let collection = Arc::new(input.collect(is_two_sided));
    let time = begin.elapsed();
    let (sets, tokens) = (collection.len(), collection.tokens());
    let (mean, seconds) = (tokens / sets.max(1), time.as_secs_f64());
    println!("{}: {sets} sets, mean size {mean}; numbered in {seconds:.4} s", input.name);
    collection
}

/// Measures all rows, prints each, then all of them as columns.
fn summary<'a>(
    arguments: &'a Arguments,
    runs: &[(JoinAlgorithm, Isa)],
    rows: &[Row<'_>],
) -> Summary<'a> {
    let line = |&(algorithm, isa): &(JoinAlgorithm, Isa)| Line {
        algorithm,
        isa,
        name: format!("{} ({isa})", algorithm.name()),
        seconds: Vec::new(),
        verifying: Vec::new(),
    };
    let mut lines: Vec<Line> = runs.iter().map(line).collect();
    Row::head();
    for row in rows {
        for (time, line) in row.measure(runs, patience(arguments)).into_iter().zip(&mut lines) {
            line.seconds.push(time.total.as_secs_f64());
            line.verifying.push(time.verifying.as_secs_f64());
        }
    }
    println!();
    let summary = Summary { thresholds: &arguments.thresholds, lines };
    summary.print();
    summary
}

fn draw(summary: &Summary<'_>, folder: &Path, input: &Input, row: &Row<'_>) -> io::Result<()> {
    let (sets, x) = named(row);
    let name = format!("{}-{}", input.name, name_of(row.similarity));
    summary.draw(folder, &name, [&format!("Joins of {sets}"), x])
}

/// Measures Python packages on each input, next to our join.
///
/// # Errors
/// If Python or its packages are missing.
fn beside_python(arguments: &Arguments, isa: Isa, inputs: &[Input]) -> io::Result<()> {
    let python = Python::prepare("set_join")?;
    for input in inputs {
        println!("{}\n", input.name);
        let similarity = Similarity::Jaccard;
        let ours = arguments.thresholds.iter().map(|&threshold| {
            let (mut times, mut pairs) = (Vec::new(), 0);
            // The first round warms up.
            for _ in 0..=arguments.rounds.max(1) {
                let begin = Instant::now();
                let collection = Arc::new(input.collect(false));
                let row = Row { collection: &collection, similarity, threshold, answer: None };
                pairs = row.run(JoinAlgorithm::Auto, isa).0.results;
                times.push(begin.elapsed());
            }
            Ours { threshold, pairs, seconds: median(&mut times[1..]).as_secs_f64() }
        });
        let ours: Vec<Ours> = ours.collect();
        peers::measure(&python, input, &ours, arguments.rounds)?;
    }
    Ok(())
}

/// All algorithms on all levels.
fn runs(arguments: &Arguments, levels: &[Isa]) -> Vec<(JoinAlgorithm, Isa)> {
    chosen_algorithms(arguments)
        .into_iter()
        .flat_map(|algorithm| levels.iter().map(move |&isa| (algorithm, isa)))
        .collect()
}

/// All algorithms with all ways to verify, outputs and sizes of chunks.
fn waves(arguments: &Arguments) -> Vec<Waves> {
    let mut all = Vec::new();
    for algorithm in chosen_algorithms(arguments) {
        let is_of = |verify: &&Verify| verify.of.is_none_or(|of| of == algorithm);
        for &Verify { mode: verify, .. } in arguments.verify.iter().filter(is_of) {
            for &output in &arguments.outputs {
                let waves = |&chunk_bytes: &usize| Waves { algorithm, verify, output, chunk_bytes };
                all.extend(arguments.chunk_bytes.iter().map(waves));
            }
        }
    }
    all.retain(|waves| waves.is_possible());
    all
}

fn chosen_algorithms(arguments: &Arguments) -> Vec<JoinAlgorithm> {
    match &arguments.algorithms[..] {
        [] => JoinAlgorithm::ALL.to_vec(),
        chosen => chosen.to_vec(),
    }
}

/// Row of a table: one similarity and threshold.
struct Row<'a> {
    collection: &'a Arc<SetCollection>,
    similarity: Similarity,
    threshold: u32,
    answer: Option<u64>,
}

impl Row<'_> {
    fn head() {
        println!(
            "| {:<26} | {:>9} | seconds | verifying | {:>13} | {:>13} | {:>11} | {:>10} |",
            "threshold, algorithm",
            "results",
            "postings",
            "pre-candidates",
            "candidates",
            "verified"
        );
    }

    /// Runs all joins in turn and checks that all counts are equal, and correct if the answer is
    /// known; prints and returns the medians.
    fn measure(&self, runs: &[(JoinAlgorithm, Isa)], patience: Patience) -> Vec<Time> {
        let mut answer = self.answer;
        let mut times: Vec<Vec<Time>> = vec![Vec::new(); runs.len()];
        let mut counters = vec![JoinCounters::default(); runs.len()];
        for _ in 0..patience.rounds() {
            for (index, &(algorithm, isa)) in runs.iter().enumerate() {
                let spent: Duration = times[index].iter().map(|time| time.total).sum();
                if patience.is_over(spent.as_secs_f64()) {
                    continue;
                }
                let (counted, time) = self.run(algorithm, isa);
                counters[index] = counted;
                times[index].push(time);
                let results = counters[index].results;
                let shown = format!("{} {}", algorithm.name(), self.threshold);
                assert_eq!(results, *answer.get_or_insert(results), "{shown}: a wrong count");
            }
        }
        let mark = if self.answer.is_some() { "=" } else { "" };
        let times = times.iter_mut().map(|times| median(times)).collect::<Vec<Time>>();
        for ((&(algorithm, isa), time), counters) in runs.iter().zip(&times).zip(&counters) {
            let name = format!("{} ({isa})", algorithm.name());
            println!(
                "| {:>3} {name:<22} | {mark}{:>8} | {:>7.4} | {:>9.4} | {:>13} | {:>13} | {:>11} | {:>10} |",
                self.threshold,
                counters.results,
                time.total.as_secs_f64(),
                time.verifying.as_secs_f64(),
                counters.postings,
                counters.pre_candidates,
                counters.candidates,
                counters.verified,
            );
        }
        times
    }

    /// Runs one join once.
    fn run(&self, algorithm: JoinAlgorithm, isa: Isa) -> (JoinCounters, Time) {
        let begin = Instant::now();
        let mut join = self.join(algorithm, isa);
        let mut chunk = CandidateChunk::with_bytes(SetJoin::CHUNK_BYTES);
        let (mut verifying, mut results) = (Duration::ZERO, 0);
        while join.next_chunk(&mut chunk) {
            let begin = Instant::now();
            results += chunk.count(isa, join.sets());
            verifying += begin.elapsed();
        }
        let mut counters = join.counters();
        counters.results = results;
        (counters, Time { total: begin.elapsed(), verifying })
    }

    fn threshold(&self) -> Threshold {
        let denominator = if self.similarity == Similarity::Overlap { 1 } else { 100 };
        Threshold::new(self.threshold, denominator).expect("a positive threshold")
    }

    fn join(&self, algorithm: JoinAlgorithm, isa: Isa) -> SetJoin {
        SetJoin::new(self.collection, self.similarity, self.threshold(), algorithm, isa)
            .expect("a threshold within reach, and enough memory")
    }
}

/// Time of a join.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Time {
    total: Duration,
    /// Time of verification within it.
    verifying: Duration,
}

fn median<T: Ord + Copy>(times: &mut [T]) -> T {
    times.sort_unstable();
    times[times.len() / 2]
}
