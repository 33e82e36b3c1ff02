//! The command line as typed.

use std::ffi::OsString;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::builder::PossibleValuesParser;
use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use trommel::frequent_items::COUNTERS_MAX;
use trommel::registry::RegisteredOperator;
use trommel::{Override, Threshold};

/// Finds what is frequent, similar or together in streams and files, and says how exact it is
#[derive(Debug, Parser)]
#[command(
    name = "trommel",
    version,
    max_term_width = 100,
    after_help = "\
Questions that pipelines answer, by operator:
  frequent_items       the most frequent items, with a bound on every count
  set_similarity_join  all pairs of similar sets, such as near-duplicates
  frequent_pairs       all pairs or triples of items that occur together often
  conjunctive_query    the documents that have all words of a query
  epsilon_join         all pairs of vectors within a distance

Examples:
  trommel top -n 10 access.log           the most frequent lines
  trommel top --by field=1 access.log    the busiest addresses of a log
  trommel dedup --by 'words(text)' corpus.jsonl  the rows without near-duplicates
  trommel operators set_similarity_join  the parameters of an operator
  trommel check pipeline.json            every mistake of a pipeline
  trommel run pipeline.json              its rows

Exit codes: 0 ok, also after SIGTERM or SIGHUP and when the reader of standard output has left; \
1 the run failed or was aborted; 2 bad usage or configuration; 130 after Ctrl-C."
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
    /// Log more
    #[arg(short, long, global = true, display_order = 100)]
    pub(crate) verbose: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a pipeline
    Run(RunArguments),
    /// Check pipelines: every mistake of every file, with its place
    Check(CheckArguments),
    /// Show how a pipeline would run: stages, threads, cores, queues
    Explain(ExplainArguments),
    /// Count lines, words or fields: the most frequent first, in one pass and bounded memory
    Top(TopArguments),
    /// Write the rows that are not similar to an earlier one, such as near-duplicates of texts
    Dedup(DedupArguments),
    /// Compute an expression for one row, to try it
    Eval(EvalArguments),
    /// List the operators, or the parameters of one
    Operators(OperatorsArguments),
    /// Print the JSON Schema of pipelines
    Schema,
    /// Show the devices for pipelines: CPU, cores, GPUs
    Devices,
    /// Print a completion script for a shell
    Completions(CompletionsArguments),
}

/// A pipeline file and changes to it.
#[derive(Debug, Args)]
pub(crate) struct PipelineArguments {
    /// The pipeline, a JSON file; `-` is standard input
    pub(crate) file: String,
    /// Replace a value of the file, such as stages.top.with.n=5; may be repeated
    #[arg(long = "set", value_name = "PATH=VALUE", value_parser = Override::from_str)]
    pub(crate) overrides: Vec<Override>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  trommel run pipeline.json
  trommel run pipeline.json --set stages.top.with.n=5
  trommel run pipeline.json --report numbers.json --drain-seconds 30
  trommel run pipeline.json --listen :8080

Ctrl-C, SIGTERM and SIGHUP stop the sources: everything that was read is processed, and results \
are written. Asking again changes nothing, except a Ctrl-C at least a second later, which aborts. \
SIGUSR1 lets `write` open files that grow again by their names, as after a rotation of logs.

With --listen, while the pipeline runs:
  GET  /                          the stages and their queries
  GET  /metrics                   the numbers so far, for Prometheus
  GET  /api/metrics               the same as JSON
  GET  /stages/ID/QUERY?name=...  asks an operator, such as /stages/top/top?n=5
  POST /reopen                    as SIGUSR1
  POST /stop                      as the first Ctrl-C
  POST /abort                     as a Ctrl-C after that
The address is of this machine only, unless --token-file is given. Nothing is encrypted.")]
pub(crate) struct RunArguments {
    #[command(flatten)]
    pub(crate) pipeline: PipelineArguments,
    /// Write the numbers of every stage to this file, as JSON
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
    /// Answer queries over HTTP: PORT, :PORT or HOST:PORT; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS", value_parser = address)]
    pub(crate) listen: Option<SocketAddr>,
    /// Answer only requests with `Authorization: Bearer TOKEN`, with the token in this file
    #[arg(long, value_name = "FILE", requires = "listen")]
    pub(crate) token_file: Option<PathBuf>,
    /// Abort a run that has not ended this long after it was stopped
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) drain_seconds: Option<Duration>,
    /// Pin every thread to a core of its own, not only the threads of named cores
    #[arg(long)]
    pub(crate) pin: bool,
    /// Show no progress
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  trommel check pipeline.json
  trommel check pipelines/*.json")]
pub(crate) struct CheckArguments {
    /// Pipelines; `-` is standard input
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  trommel explain pipeline.json
  trommel explain --format dot pipeline.json")]
pub(crate) struct ExplainArguments {
    #[command(flatten)]
    pub(crate) pipeline: PipelineArguments,
    /// Format of the plan
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: ExplainFormat,
}

#[derive(Debug, Clone, Copy, Default, ValueEnum)]
pub(crate) enum ExplainFormat {
    /// For people
    #[default]
    Text,
    /// A Mermaid flowchart
    Mermaid,
    /// A Graphviz graph
    Dot,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  trommel top access.log                         lines, like sort | uniq -c | sort -rn
  trommel top --by field=1 -n 5 access.log       the busiest addresses
  trommel top --by words book.txt                words, in lower case
  trommel top --by host --where 'status >= 500' access.jsonl
  trommel top --by path --pattern combined web.log
  trommel top --by host --by status access.jsonl   pairs of values
  cat access.jsonl | trommel top --by host --format jsonl --schema '{\"host\": \"text\"}'
  trommel top --save counts.state access.log     keep the counts, and go on with
  trommel top --load counts.state access.log.1   them in a later run
  trommel top --load counts.state --load counts.state   the sum of several states

A count is an upper bound, and at most `error` too high: 0 is exact. With k counters, `error` is \
at most 1/k of the number of items. When lines were left out, a message says how many, and the \
exit code is 1.")]
pub(crate) struct TopArguments {
    /// Number of rows to show
    #[arg(short, value_name = "N", default_value_t = 20, value_parser = row_count)]
    pub(crate) n: usize,
    /// Number of counters to keep: more give smaller errors and take more memory
    #[arg(short, value_name = "COUNTERS", default_value_t = 10_000, value_parser = counter_count)]
    pub(crate) k: usize,
    /// Items to count: line, words (in lower case), field=N, the Nth field of a line, from 1, or an
    /// expression over the columns of a table, such as host or lower(host); of lines, the column is
    /// line. Several --by count combinations of values
    #[arg(long, value_name = "WHAT", default_value = "line", value_parser = By::from_str)]
    pub(crate) by: Vec<By>,
    /// Count only rows for which this expression is true, such as "status >= 500"
    #[arg(long = "where", value_name = "EXPRESSION")]
    pub(crate) condition: Option<String>,
    #[command(flatten)]
    pub(crate) input: InputArguments,
    /// Start with the counts that --save wrote, with the same -k and --by. Several --load are added
    /// up; then, without a file to read, their sum is shown
    #[arg(long, value_name = "FILE")]
    pub(crate) load: Vec<PathBuf>,
    /// Write the counts to this file at the end, for --load
    #[arg(long, value_name = "FILE")]
    pub(crate) save: Option<PathBuf>,
    /// Print the rows as JSON, an object a line, instead of a table
    #[arg(long, conflicts_with = "csv")]
    pub(crate) json: bool,
    /// Print the rows as CSV instead of a table
    #[arg(long)]
    pub(crate) csv: bool,
    /// Show no progress
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

/// Files, and how they are read.
#[derive(Debug, Args)]
pub(crate) struct InputArguments {
    /// Format of the files; when left out, that of the first name, such as x.jsonl.gz or x.parquet,
    /// where an option has an expression, else lines
    #[arg(long, value_enum)]
    pub(crate) format: Option<FileFormat>,
    /// Columns and types of a table of jsonl or csv, as JSON or as a file of it, such as
    /// '{"host": "text", "status": "u16"}'; when left out, the first rows of the files tell them
    #[arg(long, value_name = "JSON")]
    pub(crate) schema: Option<String>,
    /// Pattern of the lines of a log: combined, common, syslog, logfmt, or a template such as
    /// "{time:%H:%M:%S} {level} {_}"
    #[arg(long, value_name = "PATTERN")]
    pub(crate) pattern: Option<String>,
    /// Encoding of the text, such as windows-1252; without it UTF-8, or UTF-16 with a mark
    #[arg(long, value_name = "NAME")]
    pub(crate) encoding: Option<String>,
    /// Bytes that are no text: read U+FFFD in their place, skip the line, or fail
    #[arg(long, value_enum, default_value_t)]
    pub(crate) invalid: InvalidBytes,
    /// Longest line in bytes; longer ones are left out
    #[arg(long, value_name = "BYTES", default_value_t = 1 << 20, value_parser = line_bytes)]
    pub(crate) line_max: usize,
    /// Files, each read once; .gz and .zst are decompressed; none or `-` is standard input
    #[arg(value_name = "FILE")]
    pub(crate) files: Vec<OsString>,
}

#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("rows_named").multiple(true))]
#[command(after_help = "\
Examples:
  trommel dedup titles.txt > kept.txt
  trommel dedup --by 'words(text)' --threshold 0.8 corpus.jsonl > kept.jsonl
  trommel dedup --by 'qgrams(title, 3)' corpus.csv --output kept.parquet --report
  trommel dedup --by 'words(text)' corpus.jsonl --pairs pairs.csv --id title
  trommel dedup --by 'words(text)' corpus.jsonl --clusters clusters.csv

The first row of similar ones stays. A row with an empty set, or without one, is similar to no row \
and stays. Each row is compared with all rows before it, also with those that do not stay. All sets \
are kept in memory. A cluster of --clusters has the rows that a chain of similar rows connects, and \
the name of the smallest of them; several of its rows stay if none of these is similar to an \
earlier one.")]
pub(crate) struct DedupArguments {
    /// The set of a row, an expression that makes a list, such as 'words(text)'; of lines,
    /// words(line)
    #[arg(long, value_name = "EXPRESSION")]
    pub(crate) by: Option<String>,
    /// Minimum similarity of rows, of which the later one is left out: a decimal, or a fraction
    /// such as 4/5
    #[arg(long, value_name = "T", default_value = "0.8", value_parser = Threshold::from_str)]
    pub(crate) threshold: Threshold,
    /// Measure of similarity
    #[arg(long, value_enum, default_value_t)]
    pub(crate) similarity: SimilarityName,
    #[command(flatten)]
    pub(crate) input: InputArguments,
    /// File of the rows that stay, whose name tells the format: .jsonl, .csv, .parquet, .arrow or
    /// .txt; when left out, standard output: lines for lines, csv for csv, else jsonl
    #[arg(long, value_name = "FILE")]
    pub(crate) output: Option<String>,
    /// Write all pairs of similar rows to this file, by their positions, which begin with 0
    #[arg(long, value_name = "FILE", group = "rows_named")]
    pub(crate) pairs: Option<String>,
    /// Write the clusters of similar rows to this file: each row that is similar to another one,
    /// with its cluster, its size, and whether the row stays
    #[arg(long, value_name = "FILE", group = "rows_named")]
    pub(crate) clusters: Option<String>,
    /// Name the rows of --pairs and --clusters by this column, of integers or texts
    #[arg(long, value_name = "COLUMN", requires = "rows_named")]
    pub(crate) id: Option<String>,
    /// Print the numbers of rows as JSON to standard error
    #[arg(long)]
    pub(crate) report: bool,
    /// Show no progress, and no number of rows
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

/// Measure of similarity.
#[derive(Debug, Clone, Copy, Default, ValueEnum)]
pub(crate) enum SimilarityName {
    #[default]
    Jaccard,
    Cosine,
    Dice,
    Overlap,
}

/// Action for bytes that are no text.
#[derive(Debug, Clone, Copy, Default, ValueEnum)]
pub(crate) enum InvalidBytes {
    #[default]
    Replace,
    Skip,
    Fail,
}

/// The items that `top` counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum By {
    Line,
    Words,
    /// The field of this index, from 0.
    Field(usize),
    /// An expression over the columns of a table, or over `line`.
    Expression(String),
}

impl FromStr for By {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let field = |number: &str| number.parse::<usize>().ok()?.checked_sub(1).map(Self::Field);
        match (text, text.strip_prefix("field=")) {
            ("line", _) => Ok(Self::Line),
            ("words", _) => Ok(Self::Words),
            (_, Some(number)) => field(number).ok_or("expected field=N with N from 1"),
            _ => Ok(Self::Expression(text.to_owned())),
        }
    }
}

/// Format of the files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FileFormat {
    Lines,
    Jsonl,
    Csv,
    Tsv,
    Log,
    Parquet,
    Arrow,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  trommel eval \"1 + 2\"
  trommel eval \"lower(host) like 'www.%'\" --with '{\"host\": \"WWW.example.org\"}'
  trommel eval \"date_trunc('day', strptime(t, '%d/%b/%Y'))\" --with '{\"t\": \"10/Oct/2000\"}'")]
pub(crate) struct EvalArguments {
    /// The expression, as in `filter` and `select`
    pub(crate) expression: String,
    /// The row, as a JSON object
    #[arg(long = "with", value_name = "JSON")]
    pub(crate) row: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  trommel operators
  trommel operators frequent_items")]
pub(crate) struct OperatorsArguments {
    /// Show the parameters of this operator
    #[arg(hide_possible_values = true, value_parser = operator_names())]
    pub(crate) name: Option<String>,
}

/// The operators by name, so that a misspelt one is corrected and shells can complete it.
fn operator_names() -> PossibleValuesParser {
    PossibleValuesParser::new(trommel::registry().entries().map(RegisteredOperator::name))
}

#[derive(Debug, Args)]
pub(crate) struct CompletionsArguments {
    /// The shell
    #[arg(value_enum)]
    pub(crate) shell: Shell,
}

/// Maximum of rows in a table.
const ROWS_MAX: usize = 1_000_000;

fn row_count(text: &str) -> Result<usize, String> {
    number_up_to(ROWS_MAX, text)
}

fn counter_count(text: &str) -> Result<usize, String> {
    number_up_to(COUNTERS_MAX, text)
}

fn line_bytes(text: &str) -> Result<usize, String> {
    number_up_to(1 << 30, text)
}

fn number_up_to(most: usize, text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| (1..=most).contains(number));
    number.ok_or_else(|| format!("expected a number from 1 to {most}"))
}

fn seconds(text: &str) -> Result<Duration, &'static str> {
    let seconds = text.parse().ok().filter(|seconds| (0.0..=1e9).contains(seconds));
    seconds.map(Duration::from_secs_f64).ok_or("expected a number of seconds from 0 to 1e9")
}

/// An address to listen at; without a host it is reachable from this machine only.
fn address(text: &str) -> Result<SocketAddr, String> {
    let port = text.strip_prefix(':').unwrap_or(text);
    if let Ok(port) = port.parse::<u16>() {
        return Ok(SocketAddr::from(([127, 0, 0, 1], port)));
    }
    let addresses = text.to_socket_addrs().map_err(|_| "expected PORT, :PORT or HOST:PORT")?;
    addresses.into_iter().next().ok_or_else(|| "the host has no address".to_owned())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_definition_of_the_command_line_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn an_address_without_a_host_is_local() {
        for text in ["8080", ":8080", "127.0.0.1:8080"] {
            assert_eq!(address(text).unwrap().to_string(), "127.0.0.1:8080");
        }
        assert_eq!(address("0.0.0.0:1").unwrap().to_string(), "0.0.0.0:1");
        assert_eq!(address("[::1]:7").unwrap().to_string(), "[::1]:7");
        for text in ["", ":", "65536", "127.0.0.1", "no port"] {
            address(text).expect_err(text);
        }
    }

    #[test]
    fn other_words_are_expressions() {
        let expression = |text: &str| Ok(By::Expression(text.to_owned()));
        for text in ["field", "Line", "lower(host)"] {
            assert_eq!(By::from_str(text), expression(text));
        }
    }

    #[test]
    fn fields_are_numbered_from_one() {
        assert_eq!(By::from_str("field=1"), Ok(By::Field(0)));
        for text in ["field=0", "field=", "field=x"] {
            By::from_str(text).expect_err(text);
        }
    }
}
