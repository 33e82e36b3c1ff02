//! The most frequent lines and words of a file: the pipeline of `trommel top` next to programs that
//! count all different lines.
//!
//! All programs read the same file, from the cache of the system after the first round. The clock
//! of the others covers the whole process, that of ours the pipeline from opening the file to the
//! last row. Programs that fail, because they are not installed, are named and left out.

mod scripts;

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use trommel::placement::Placement;
use trommel::{Collect, FrequentItems, Graph, Read, ReadFormat, RunOptions, Tokenize, Zipf};

/// Options of `top`.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Arguments {
    /// A text file in UTF-8; by default 10 million words, one a line, and then 3 million lines of a
    /// log, of a Zipf distribution each.
    file: Option<PathBuf>,
    /// Words of generated texts in several scripts, without other programs.
    #[arg(long, conflicts_with = "file")]
    scripts: bool,
    /// Counters of the summary.
    #[arg(long, default_value_t = 10_000)]
    counters: usize,
    /// Rows whose counts are compared.
    #[arg(long, default_value_t = 10)]
    rows: usize,
    /// Rounds; the median is shown.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
}

/// Items that are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    Lines,
    Words,
}

/// Placements of the pipeline.
const PLACEMENTS: [(&str, Placement); 2] =
    [("one core", Placement::Fused), ("cores", Placement::Auto)];

/// Shell commands that print counts and lines, the most frequent ones first. `$1` is the file.
const SHELL: [(&str, &str, &str); 3] = [
    ("sort, uniq -c, sort -rn", "sort --version", "sort \"$1\" | uniq -c | sort -rn"),
    (
        "sort --parallel=2 -S 2G, uniq -c, sort -rn",
        "sort --version",
        "sort --parallel=2 -S 2G \"$1\" | uniq -c | sort -rn",
    ),
    (
        "mawk, sort -rn",
        "mawk -W version 2>&1",
        "mawk '{ c[$0]++ } END { for (line in c) print c[line], line }' \"$1\" | sort -rn",
    ),
];

/// A command of DuckDB that prints counts and lines. It reads each line as one field: no character
/// of a text is its separator.
fn duckdb(settings: &str) -> String {
    format!(
        "duckdb -noheader -list -separator ' ' -c \"{settings} \
         SELECT count(*) AS count, line FROM read_csv('$1', header = false, auto_detect = false, \
         delim = E'\\x01', quote = '', escape = '', strict_mode = false, \
         columns = {{'line': 'VARCHAR'}}) GROUP BY line ORDER BY count DESC LIMIT 1000\""
    )
}

/// Measures and prints.
///
/// # Errors
/// If the file cannot be read.
pub(crate) fn run(arguments: &Arguments) -> io::Result<()> {
    let folder = tempfile::tempdir()?;
    if arguments.scripts {
        return scripts::measure(arguments, folder.path());
    }
    if let Some(file) = &arguments.file {
        return measure(arguments, file);
    }
    let path = folder.path().join("lines.txt");
    for (title, lines, write) in GENERATED {
        println!("{title}, of 100,000 different ones\n");
        generate(&path, lines, write)?;
        measure(arguments, &path)?;
    }
    Ok(())
}

/// Measures and prints one file.
fn measure(arguments: &Arguments, file: &Path) -> io::Result<()> {
    let bytes = std::fs::metadata(file)?.len();
    println!("{:.1} MB, {} counters\n", bytes as f64 / 1e6, arguments.counters);
    println!("| program | seconds | MB/s | times ours on a core |\n|---|---:|---:|---:|");
    let row = |name: &str, time: Duration, ours: Option<Duration>| {
        let seconds = time.as_secs_f64();
        let times =
            ours.map_or_else(String::new, |ours| format!("{:.1}", seconds / ours.as_secs_f64()));
        println!("| {name} | {seconds:.3} | {:.0} | {times} |", bytes as f64 / 1e6 / seconds);
    };
    let mut lines = None;
    for unit in [Unit::Words, Unit::Lines] {
        for (name, placement) in PLACEMENTS {
            let (time, counts) = ours(arguments, file, unit, placement);
            row(&format!("trommel, {unit:?}, {name}"), time, None);
            if unit == Unit::Lines && placement == Placement::Fused {
                lines = Some((time, counts));
            }
        }
    }
    let (time, counts) = lines.expect("lines are measured");
    let mut notes = Vec::new();
    let databases = [("duckdb, one thread", "SET threads = 1;"), ("duckdb, all threads", "")];
    let databases = databases.map(|(name, settings)| (name, "duckdb --version", duckdb(settings)));
    let shell = SHELL.map(|(name, version, script)| (name, version, script.to_owned()));
    for (name, version, script) in shell.into_iter().chain(databases) {
        match peer(arguments, file, &script) {
            Some((theirs, found)) => {
                row(&format!("LC_ALL=C {name}"), theirs, Some(time));
                let is_equal = found == counts;
                let compared = if is_equal { "the same counts" } else { "other counts" };
                notes.push(format!("{name}: {}; {compared}", said(version)));
            }
            None => notes.push(format!("{name}: not measured, it is not installed or failed")),
        }
    }
    println!();
    notes.iter().for_each(|note| println!("- {note}"));
    println!();
    Ok(())
}

/// Writes the line of a number, with its line end.
type WriteLine = fn(&mut dyn Write, u32) -> io::Result<()>;

/// Generated files: what they have, their number of lines, and how one is written.
const GENERATED: [(&str, usize, WriteLine); 2] = [
    ("10 million words, one a line", 10_000_000, write_word),
    ("3 million lines of a log", 3_000_000, write_request),
];

/// Writes `lines` lines of a Zipf distribution.
fn generate(path: &Path, lines: usize, write: WriteLine) -> io::Result<()> {
    let mut numbers = vec![0; lines];
    Zipf::new(100_000, 1.0, 1).expect("a skew within the limits").fill(&mut numbers);
    let mut file = BufWriter::new(File::create(path)?);
    for number in numbers {
        write(&mut file, number)?;
    }
    file.into_inner()?;
    Ok(())
}

/// Writes a word whose letters are the digits of the number.
fn write_word(file: &mut dyn Write, mut number: u32) -> io::Result<()> {
    let mut word = vec![b'e'];
    while number > 0 {
        word.push(b'a' + (number % 26) as u8);
        number /= 26;
    }
    word.push(b'\n');
    file.write_all(&word)
}

/// Writes the line of a request to a web server, of 55 to 61 bytes.
fn write_request(file: &mut dyn Write, number: u32) -> io::Result<()> {
    let folder = ["catalog", "users", "static", "search"][number as usize % 4];
    let page = u64::from(number).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 16;
    let status = if number.is_multiple_of(16) { 404 } else { 200 };
    writeln!(file, "GET /{folder}/{page:012x}/{number} HTTP/1.1 {status} www.example.org")
}

/// Median time of our pipeline, and the highest counts.
fn ours(
    arguments: &Arguments,
    file: &Path,
    unit: Unit,
    placement: Placement,
) -> (Duration, Vec<u64>) {
    let (mut times, mut counts) = (Vec::new(), Vec::new());
    for _ in 0..arguments.rounds.max(1) {
        let time;
        (time, counts) = once(arguments, file, unit, placement);
        times.push(time);
    }
    (median(&mut times), counts)
}

/// Time of our pipeline, and the highest counts.
fn once(
    arguments: &Arguments,
    file: &Path,
    unit: Unit,
    placement: Placement,
) -> (Duration, Vec<u64>) {
    let mut graph = Graph::new();
    let file = file.display().to_string();
    let lines = graph.add("read", Read::new([file], ReadFormat::Lines));
    let (items, column) = match unit {
        Unit::Lines => (lines, "line"),
        Unit::Words => (graph.add_after(lines, "words", Tokenize::words()), "item"),
    };
    let top = FrequentItems::new().item(column).counters(arguments.counters).n(arguments.rows);
    let top = graph.add_after(items, "top", top);
    let (sink, rows) = Collect::new();
    graph.add_after(top, "rows", sink);
    graph.placement(placement);
    let topology = graph.build().expect("the graph is whole");
    let begin = Instant::now();
    topology.run(RunOptions::new()).expect("lines of UTF-8");
    let time = begin.elapsed();
    let counts = |rows: &RecordBatch| {
        let counts = rows.column_by_name("count").expect("frequent items have counts");
        counts.as_primitive::<UInt64Type>().values().to_vec()
    };
    (time, rows.take().iter().flat_map(counts).collect())
}

/// Median time of a shell command, and the highest counts; `None` if it fails.
fn peer(arguments: &Arguments, file: &Path, script: &str) -> Option<(Duration, Vec<u64>)> {
    let (mut times, mut counts) = (Vec::new(), Vec::new());
    for _ in 0..arguments.rounds.max(1) {
        let begin = Instant::now();
        let output = shell(script).arg(file).output().ok()?;
        times.push(begin.elapsed());
        let text = String::from_utf8_lossy(&output.stdout);
        let count = |line: &str| line.split_ascii_whitespace().next()?.parse().ok();
        counts = text.lines().take(arguments.rows).map(count).collect::<Option<Vec<u64>>>()?;
        if !output.status.success() || counts.is_empty() {
            return None;
        }
    }
    Some((median(&mut times), counts))
}

/// A shell with the locale of C; its first argument is `$1`.
fn shell(script: &str) -> Command {
    let mut command = Command::new("sh");
    command.env("LC_ALL", "C").arg("-c").arg(script).arg("sh");
    command.stdin(Stdio::null()).stderr(Stdio::null());
    command
}

/// First line that a command prints.
fn said(script: &str) -> String {
    let output = shell(script).output().map(|output| output.stdout).unwrap_or_default();
    String::from_utf8_lossy(&output).lines().next().unwrap_or_default().to_owned()
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_a_log_have_a_length_as_in_logs() {
        for number in [1, 9, 99_996] {
            let mut line = Vec::new();
            write_request(&mut line, number).unwrap();
            assert!((55..=61).contains(&line.len()), "{line:?}");
        }
    }

    #[test]
    fn programs_count_alike() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("lines.txt");
        std::fs::write(&file, "a b\nx\na b\nx\na b\ny\n").unwrap();
        let arguments = Arguments { file: None, scripts: false, counters: 10, rows: 2, rounds: 1 };
        for placement in [Placement::Fused, Placement::Auto] {
            assert_eq!(ours(&arguments, &file, Unit::Lines, placement).1, [3, 2]);
            assert_eq!(ours(&arguments, &file, Unit::Words, placement).1, [3, 3]);
        }
        if let Some((_, counts)) = peer(&arguments, &file, SHELL[0].2) {
            assert_eq!(counts, [3, 2]);
        }
    }
}
