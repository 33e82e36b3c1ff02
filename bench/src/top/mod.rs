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
use std::time::Duration;

use trommel::placement::Placement;
use trommel::{Collect, FrequentItems, Graph, Read, ReadFormat, Tokenize, Zipf};

use crate::runner::report::{Table, or_empty};
use crate::runner::turns::{Run, Turns, timed};
use crate::runner::{Runs, pipelines};

/// Options of `top`.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Arguments {
    /// A text file in UTF-8; by default three files of a Zipf distribution: 10 million words, one a
    /// line, 3 million lines of a log, and 10 million words, twelve a line.
    file: Option<PathBuf>,
    /// Words of generated texts in several scripts, without other programs.
    #[arg(long, conflicts_with = "file")]
    scripts: bool,
    /// Counters of the summary.
    #[arg(long, default_value_t = 10_000)]
    counters: usize,
    #[command(flatten)]
    runs: Runs,
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

/// Rows whose counts are compared.
const ROWS: usize = 10;

/// Words of a line of a text.
const WORDS_PER_LINE: usize = 12;

/// A command of another program, which prints counts and items, the most frequent ones first.
struct Peer {
    name: &'static str,
    /// Command that prints its version.
    version: &'static str,
    /// Shell command; `$1` is the file.
    script: String,
}

/// The programs that count the items of a file.
fn peers(unit: Unit) -> Vec<Peer> {
    // Words are what is between white space.
    let sort = |options: &str| match unit {
        Unit::Lines => format!("sort {options} \"$1\" | uniq -c | sort -rn"),
        Unit::Words => {
            format!("tr -s '[:space:]' '\\n' < \"$1\" | sort {options} | uniq -c | sort -rn")
        }
    };
    let of_line = match unit {
        Unit::Lines => "c[$0]++",
        Unit::Words => "for (i = 1; i <= NF; i++) c[$i]++",
    };
    let peer = |name, version, script| Peer { name, version, script };
    vec![
        peer("sort, uniq -c, sort -rn", "sort --version", sort("")),
        peer(
            "sort --parallel=2 -S 2G, uniq -c, sort -rn",
            "sort --version",
            sort("--parallel=2 -S 2G"),
        ),
        peer(
            "mawk, sort -rn",
            "mawk -W version 2>&1",
            format!(
                "mawk '{{ {of_line} }} END {{ for (item in c) print c[item], item }}' \"$1\" \
                 | sort -rn"
            ),
        ),
        peer("duckdb, one thread", "duckdb --version", duckdb("SET threads = 1;", unit)),
        peer("duckdb, all threads", "duckdb --version", duckdb("", unit)),
    ]
}

/// A command of DuckDB that prints counts and items. It reads each line as one field: no character
/// of a text is its separator.
fn duckdb(settings: &str, unit: Unit) -> String {
    let item = match unit {
        Unit::Lines => "line",
        Unit::Words => "unnest(string_split(line, ' '))",
    };
    format!(
        "duckdb -noheader -list -separator ' ' -c \"{settings} \
         SELECT count(*) AS count, item FROM (SELECT {item} AS item FROM read_csv('$1', \
         header = false, auto_detect = false, delim = E'\\x01', quote = '', escape = '', \
         strict_mode = false, columns = {{'line': 'VARCHAR'}})) \
         GROUP BY item ORDER BY count DESC LIMIT 1000\""
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
        return measure(arguments, file, Unit::Lines);
    }
    let path = folder.path().join("lines.txt");
    for generated in &GENERATED {
        println!("{}, of 100,000 different ones\n", generated.title);
        generated.write_to(&path)?;
        measure(arguments, &path, generated.unit)?;
    }
    Ok(())
}

/// Measures and prints one file, whose items of `compared` are counted by other programs, too.
fn measure(arguments: &Arguments, file: &Path, compared: Unit) -> io::Result<()> {
    let bytes = std::fs::metadata(file)?.len();
    let Arguments { counters, runs, .. } = *arguments;
    println!("{:.1} MB, {counters} counters\n", bytes as f64 / 1e6);
    let peers = peers(compared);
    let works = |peer: &&Peer| counts(file, &peer.script).is_some();
    let (there, missing): (Vec<&Peer>, Vec<&Peer>) = peers.iter().partition(works);
    let mut turns = Turns::<(), Vec<u64>>::new(runs.or(5)).cold();
    for unit in [Unit::Words, Unit::Lines] {
        for (name, placement) in PLACEMENTS {
            turns.add(format!("trommel, {unit:?}, {name}"), move || {
                let (time, rest) = once(counters, file, unit, placement, ROWS);
                Run { time, answer: (), rest }
            });
        }
    }
    for peer in &there {
        turns.add(format!("LC_ALL=C {}", peer.name), || {
            let (time, rest) = timed(|| counts(file, &peer.script));
            Run { time, answer: (), rest: rest.expect("it worked before") }
        });
    }
    let measured = turns.run();
    let (ours, theirs) = measured.split_at(2 * PLACEMENTS.len());
    let ours_on_a_core = &ours[if compared == Unit::Words { 0 } else { PLACEMENTS.len() }];
    let mut table = Table::new("program | seconds: | MB/s: | times ours on a core:");
    for (at, engine) in measured.iter().enumerate() {
        let seconds = engine.seconds();
        let times = (at >= ours.len()).then(|| seconds / ours_on_a_core.seconds());
        let (rate, times) = (bytes as f64 / 1e6 / seconds, or_empty(times, |t| format!("{t:.1}")));
        table.row(format!("{} | {seconds:.3} | {rate:.0} | {times}", engine.name));
    }
    drop(table);
    for (peer, engine) in there.iter().zip(theirs) {
        let is_equal = engine.rest() == ours_on_a_core.rest();
        let compared = if is_equal { "the same counts" } else { "other counts" };
        println!("- {}: {}; {compared}", peer.name, said(peer.version));
    }
    for Peer { name, .. } in missing {
        println!("- {name}: not measured, it is not installed or failed");
    }
    println!();
    Ok(())
}

/// A file of items of a Zipf distribution.
struct Generated {
    title: &'static str,
    /// The items that other programs count, too.
    unit: Unit,
    items: usize,
    /// Writes an item of a number, with what is between it and the next one.
    write: fn(file: &mut dyn Write, place: usize, number: u32) -> io::Result<()>,
}

const GENERATED: [Generated; 3] = [
    Generated {
        title: "10 million words, one a line",
        unit: Unit::Lines,
        items: 10_000_000,
        write: |file, _, number| write_word(file, number, b'\n'),
    },
    Generated {
        title: "3 million lines of a log",
        unit: Unit::Lines,
        items: 3_000_000,
        write: |file, _, number| write_request(file, number),
    },
    Generated {
        title: "10 million words, twelve a line",
        unit: Unit::Words,
        items: 10_000_000,
        write: |file, place, number| {
            let is_last = (place + 1).is_multiple_of(WORDS_PER_LINE);
            write_word(file, number, if is_last { b'\n' } else { b' ' })
        },
    },
];

impl Generated {
    fn write_to(&self, path: &Path) -> io::Result<()> {
        let mut numbers = vec![0; self.items];
        Zipf::new(100_000, 1.0, 1).expect("a skew within the limits").fill(&mut numbers);
        let mut file = BufWriter::new(File::create(path)?);
        for (place, number) in numbers.into_iter().enumerate() {
            (self.write)(&mut file, place, number)?;
        }
        file.into_inner()?;
        Ok(())
    }
}

/// Writes a word whose letters are the digits of the number, and what is `after` it.
fn write_word(file: &mut dyn Write, mut number: u32, after: u8) -> io::Result<()> {
    let mut word = vec![b'e'];
    while number > 0 {
        word.push(b'a' + (number % 26) as u8);
        number /= 26;
    }
    word.push(after);
    file.write_all(&word)
}

/// Writes the line of a request to a web server, of 55 to 61 bytes.
fn write_request(file: &mut dyn Write, number: u32) -> io::Result<()> {
    let folder = ["catalog", "users", "static", "search"][number as usize % 4];
    let page = u64::from(number).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 16;
    let status = if number.is_multiple_of(16) { 404 } else { 200 };
    writeln!(file, "GET /{folder}/{page:012x}/{number} HTTP/1.1 {status} www.example.org")
}

/// Time of our pipeline, and the highest counts.
fn once(
    counters: usize,
    file: &Path,
    unit: Unit,
    placement: Placement,
    rows: usize,
) -> (Duration, Vec<u64>) {
    let mut graph = Graph::new();
    let file = file.display().to_string();
    let lines = graph.add("read", Read::new([file], ReadFormat::Lines));
    let (items, column) = match unit {
        Unit::Lines => (lines, "line"),
        Unit::Words => (graph.add_after(lines, "words", Tokenize::words()), "item"),
    };
    let top = FrequentItems::new().item(column).counters(counters).n(rows);
    let top = graph.add_after(items, "top", top);
    let (sink, rows) = Collect::new();
    graph.add_after(top, "rows", sink);
    graph.placement(placement);
    let (time, _) = pipelines::run(graph);
    (time, pipelines::column_of_counts(&rows))
}

/// The highest counts that a shell command prints; `None` if it fails.
fn counts(file: &Path, script: &str) -> Option<Vec<u64>> {
    let output = shell(script).arg(file).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let count = |line: &str| line.split_ascii_whitespace().next()?.parse().ok();
    let counts = text.lines().take(ROWS).map(count).collect::<Option<Vec<u64>>>()?;
    (output.status.success() && !counts.is_empty()).then_some(counts)
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
        for placement in [Placement::Fused, Placement::Auto] {
            assert_eq!(once(10, &file, Unit::Lines, placement, 2).1, [3, 2]);
            assert_eq!(once(10, &file, Unit::Words, placement, 2).1, [3, 3]);
        }
        for (unit, expected) in [(Unit::Lines, [3, 2]), (Unit::Words, [3, 3])] {
            for program in peers(unit) {
                if let Some(counts) = counts(&file, &program.script) {
                    assert_eq!(counts[..2], expected, "{}", program.name);
                }
            }
        }
    }
}
