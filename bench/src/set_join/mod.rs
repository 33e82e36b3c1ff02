//! Tables of the set-similarity join: every algorithm at every threshold, over files of sets or
//! generated ones, every count checked.

mod data;
mod gpussjoin;
mod grid;
mod growth;
mod library;
mod peers;
mod streams;
mod waves;
mod whole;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use trommel::set_similarity_join::{JoinAlgorithm, SetCollection, Similarity, VerifyMode};
use trommel::unstable::cuda::Device;
use trommel::{Isa, JoinOutput};

use self::data::{Input, Truth, files, generated};
use self::gpussjoin::{GpuSsJoin, Verified};
use self::growth::Growth;
use self::waves::Waves;
use crate::runner::turns::timed;
use crate::runner::{Figures, PythonPeers, Runs, isa};

/// Options of `set-join`. One of `--verify`, `--windows`, `--end-to-end`, `--grid`, `--growth` and
/// `--python-peers` chooses the table; without them, the joins run as a library.
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
    /// Number of sets to take of each input, evenly spaced; by default all.
    #[arg(long)]
    sets: Option<usize>,
    /// Join two inputs: sets with even numbers and sets with odd ones.
    #[arg(long)]
    two_sided: bool,
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
    #[arg(long, value_delimiter = ',', value_parser = verify, groups = ["table", "beside"], conflicts_with = "python_peers")]
    verify: Vec<Verify>,
    /// Outputs of joins in waves: `count`, `pairs`.
    #[arg(long, value_delimiter = ',', default_value = "count", value_parser = output)]
    outputs: Vec<JoinOutput>,
    /// Bytes per chunk of a wave.
    #[arg(long, value_delimiter = ',', default_value = "5242880")]
    chunk_bytes: Vec<usize>,
    /// Join the sets as a stream in random order, by Jaccard: each set to the sets before it in a
    /// window. Sizes of windows, in sets.
    #[arg(long, value_delimiter = ',', conflicts_with_all = ["verify", "figures", "end_to_end", "grid", "python_peers", "two_sided", "algorithms", "similarities", "levels"])]
    windows: Vec<usize>,
    /// Drop sets of the stream that have an earlier similar one, instead of finding pairs.
    #[arg(long, requires = "windows")]
    deduplicate: bool,
    /// Measure whole runs instead, from a file of integers or words to the number of pairs, by
    /// Jaccard: `auto` and the published algorithms in the same pipeline, on one core and two.
    #[arg(long, groups = ["table", "beside"], conflicts_with_all = ["python_peers", "figures", "two_sided", "algorithms", "similarities", "levels"])]
    end_to_end: bool,
    /// Folder with the sources of gpussjoin (github.com/chribell/gpussjoin): measure its joins
    /// beside ours, in whole runs or with `--verify`. They are compiled by `$CXX` or `c++`, or for
    /// a GPU by `$NVCC` or `nvcc`, and need the headers of sparsehash.
    #[arg(long, requires = "beside", conflicts_with_all = ["two_sided", "similarities"])]
    gpussjoin: Option<PathBuf>,
    /// Divide the time of `auto` by that of the fastest algorithm instead, by Jaccard: over a grid
    /// of generated inputs of `--tokens` tokens, or over the files of `--data`.
    #[arg(long, group = "table", conflicts_with_all = ["python_peers", "figures", "two_sided", "similarities", "levels"])]
    grid: bool,
    /// Tokens of each generated input of the grid.
    #[arg(long, default_value_t = 1_000_000, requires = "grid")]
    tokens: usize,
    /// Measure whole runs over these numbers of generated sets instead, ascending, by Jaccard:
    /// time and memory on one core, on all, and on a GPU if there is one; with `--windows`, as a
    /// stream with each window.
    #[arg(long, value_delimiter = ',', group = "table", conflicts_with_all = ["python_peers", "data", "two_sided", "algorithms", "similarities", "levels"])]
    growth: Vec<u64>,
    #[command(flatten)]
    runs: Runs,
    #[command(flatten)]
    figures: Figures,
    /// Python packages and SQL stand next to `auto`, by Jaccard: SetSimilaritySearch,
    /// py_stringsimjoin, DuckDB, and MinHash by rensa and datasketch.
    #[command(flatten)]
    peers: PythonPeers,
}

/// Parses the name of a similarity, as in configurations.
fn similarity(name: &str) -> Result<Similarity, String> {
    use Similarity::{Cosine, Dice, Jaccard, Overlap};
    let found = [Jaccard, Cosine, Dice, Overlap].into_iter().find(|one| name_of(*one) == name);
    found.ok_or_else(|| "expected jaccard, cosine, dice or overlap".to_owned())
}

fn name_of(similarity: Similarity) -> String {
    format!("{similarity:?}").to_lowercase()
}

fn algorithm(name: &str) -> Result<JoinAlgorithm, String> {
    let names = JoinAlgorithm::ALL.map(JoinAlgorithm::name);
    let at = names.iter().position(|known| *known == name);
    at.map(|at| JoinAlgorithm::ALL[at]).ok_or_else(|| format!("expected one of {names:?}"))
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

/// Measures and prints.
///
/// # Errors
/// If a file or a figure cannot be written, or a peer fails.
pub(crate) fn run(arguments: &Arguments) -> io::Result<()> {
    let mut settled = arguments.clone();
    settled.runs = arguments.runs.or(3);
    if settled.algorithms.is_empty() {
        settled.algorithms = JoinAlgorithm::ALL.to_vec();
    }
    let arguments = &settled;
    let Arguments { thresholds, runs, windows, .. } = arguments;
    if !arguments.growth.is_empty() {
        return grow(arguments);
    }
    if arguments.grid && arguments.data.is_none() {
        grid::measure(grid::cells(arguments.tokens), thresholds, &arguments.algorithms, *runs);
        return Ok(());
    }
    let mut inputs = match &arguments.data {
        Some(folder) => files(folder, &arguments.files),
        None => generated(),
    };
    if let Some(sets) = arguments.sets {
        inputs = inputs.into_iter().map(|input| input.sample(sets)).collect();
    }
    if arguments.peers.are_wanted {
        return peers::measure(&inputs, thresholds, *runs);
    }
    if arguments.grid {
        grid::measure(inputs.into_iter(), thresholds, &arguments.algorithms, *runs);
        return Ok(());
    }
    if arguments.end_to_end {
        let peer = peer(arguments, Verified::OnCpu);
        let measure = |input| whole::measure(input, thresholds, *runs, peer.as_ref());
        return inputs.iter().try_for_each(measure);
    }
    if !windows.is_empty() {
        let deduplicates = arguments.deduplicate;
        let measure = |input| streams::measure(input, windows, thresholds, deduplicates, *runs);
        inputs.iter().for_each(measure);
        return Ok(());
    }
    if arguments.verify.is_empty() {
        return library::measure(arguments, &inputs, &truth(arguments));
    }
    in_waves(arguments, &inputs)
}

/// The right answers of the files; none for samples of them.
fn truth(arguments: &Arguments) -> Truth {
    Truth::read(arguments.data.as_deref().filter(|_| arguments.sets.is_none()))
}

/// The peer of `--gpussjoin`; without it if it can't be compiled, which is printed.
fn peer(arguments: &Arguments, verified: Verified) -> Option<GpuSsJoin> {
    let sources = arguments.gpussjoin.as_deref()?;
    let compiled = GpuSsJoin::compile(sources, verified);
    compiled.inspect_err(|error| println!("left out: {error}\n")).ok()
}

/// Joins each input in waves, with each way to verify, output and size of chunks.
fn in_waves(arguments: &Arguments, inputs: &[Input]) -> io::Result<()> {
    let mut ways = Vec::new();
    for &algorithm in &arguments.algorithms {
        let is_of = |verify: &&Verify| verify.of.is_none_or(|of| of == algorithm);
        for &Verify { mode: verify, .. } in arguments.verify.iter().filter(is_of) {
            for &output in &arguments.outputs {
                let waves = |&chunk_bytes: &usize| Waves { algorithm, verify, output, chunk_bytes };
                ways.extend(arguments.chunk_bytes.iter().map(waves));
            }
        }
    }
    ways.retain(|waves| waves.is_possible());
    // Held open, so that the context of a GPU is made once.
    let is_gpu_wanted = arguments.verify.iter().any(|verify| verify.mode != VerifyMode::Cpu);
    let open = || Device::probe(0).expect("a GPU for these kernels");
    let (time, _device) = timed(|| is_gpu_wanted.then(open));
    if is_gpu_wanted {
        println!("context of the GPU: {:.3} s\n", time.as_secs_f64());
    }
    let peer = peer(arguments, if is_gpu_wanted { Verified::OnGpu } else { Verified::OnCpu });
    let truth = truth(arguments);
    let mut joined = Vec::new();
    for input in inputs {
        let batches = input.batches(arguments.two_sided);
        for rows in library::rows(arguments, input, &truth) {
            let joins = waves::measure(input, &rows, &ways, &batches, arguments)?;
            if let Some(peer) = &peer {
                peer.in_waves(input, &joins, arguments.runs)?;
            }
            joined.push(joins);
        }
    }
    waves::print_winners(&joined);
    Ok(())
}

/// Measures whole runs by the number of sets, at each threshold and in each window.
fn grow(arguments: &Arguments) -> io::Result<()> {
    let windows = match &arguments.windows[..] {
        [] => vec![None],
        windows => windows.iter().copied().map(Some).collect(),
    };
    for window in windows {
        for &percent in &arguments.thresholds {
            let growth = Growth { sets: &arguments.growth, percent, window };
            growth.measure(arguments.runs, &arguments.figures)?;
        }
    }
    Ok(())
}

/// Sets ready to be joined, with the time of that printed.
fn numbered(input: &Input, is_two_sided: bool) -> Arc<SetCollection> {
    let (time, collection) = timed(|| Arc::new(input.collect(is_two_sided)));
    let (sets, tokens) = (collection.len(), collection.tokens());
    let (mean, seconds) = (tokens / sets.max(1), time.as_secs_f64());
    println!("{}: {sets} sets, mean size {mean}; numbered in {seconds:.4} s\n", input.name);
    collection
}

/// The levels to measure.
fn levels(arguments: &Arguments) -> Vec<Isa> {
    if arguments.levels.is_empty() { vec![isa()] } else { arguments.levels.clone() }
}
