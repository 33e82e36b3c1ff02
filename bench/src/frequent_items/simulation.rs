//! The sieve on a simulated processor: instructions, branches that a predictor misses, and lines
//! that caches miss, for each item.
//!
//! Virtual machines show no hardware counters. Callgrind (valgrind) runs this program again, with a
//! model of two levels of cache and of a branch predictor, and counts while
//! [`count_simulated`] runs. It has no AVX-512.

use std::io;
use std::process::Command;

use trommel::Zipf;
use trommel::frequent_items::Sieve;

use super::Arguments;
use super::stream::Shape;
use crate::runner::isa;
use crate::runner::report::{Table, cells, right};

/// Items that are counted while callgrind counts, and before.
const ITEMS: usize = 2_000_000;

/// Size, ways and bytes of a line of the caches.
const FIRST_LEVEL: &str = "32768,8,64";
const SECOND_LEVEL: &str = "524288,8,64";

/// Events of callgrind that are shown, by its names.
const ROWS: [(&str, &[&str]); 5] = [
    ("instructions", &["Ir"]),
    ("reads and writes", &["Dr", "Dw"]),
    ("branches mispredicted", &["Bcm", "Bim"]),
    ("lines not in the first level", &["D1mr", "D1mw"]),
    ("lines not in the second level", &["DLmr", "DLmw"]),
];

/// Part of the program that is measured.
#[inline(never)]
fn count_simulated(sieve: &mut Sieve<u32>, items: &[u32], batch: usize) {
    items.chunks(batch).for_each(|batch| sieve.observe(batch));
}

/// Program that callgrind runs: fills a sieve, and goes on within [`count_simulated`].
pub(super) fn simulated(arguments: &Arguments) {
    let Shape { alphabet, counters, batch, .. } = arguments.shape();
    let mut zipf = Zipf::new(alphabet, arguments.skews[0], 1).expect("the parameters are in range");
    let mut items = vec![0; 2 * ITEMS];
    zipf.fill(&mut items);
    let (before, measured) = items.split_at(ITEMS);
    let mut sieve = Sieve::new(isa(), counters).expect("a possible number").with_seed(1);
    before.chunks(batch).for_each(|batch| sieve.observe(batch));
    count_simulated(&mut sieve, measured, batch);
}

/// Prints events for each item, by skew.
///
/// # Errors
/// If callgrind cannot be run, or prints no events.
pub(super) fn run(arguments: &Arguments) -> io::Result<()> {
    println!(
        "The sieve on a simulated processor: AVX2, caches of {FIRST_LEVEL} and {SECOND_LEVEL} \
         (bytes, ways, bytes of a line); events an item, of {ITEMS} after as many\n"
    );
    let runs = arguments.skews.iter().map(|skew| Events::of(arguments, *skew));
    let runs = runs.collect::<io::Result<Vec<Events>>>()?;
    let mut table = Table::new(&format!("events an item | {}", right(&arguments.skews)));
    for (name, events) in ROWS {
        let cell = |run: &Events| Ok(format!("{:.3}", run.per_item(events)?));
        let events = runs.iter().map(cell).collect::<io::Result<Vec<String>>>()?;
        table.row(format!("{name} | {}", cells(events)));
    }
    Ok(())
}

/// Events of a run, as callgrind prints them.
struct Events {
    names: Vec<String>,
    counts: Vec<f64>,
}

impl Events {
    /// Runs this program by callgrind.
    fn of(arguments: &Arguments, skew: f64) -> io::Result<Self> {
        let Arguments { alphabet, counters, batch, .. } = arguments;
        let run = Command::new("valgrind")
            .args(["--tool=callgrind", "--callgrind-out-file=/dev/null", "--branch-sim=yes"])
            .args(["--cache-sim=yes", "--toggle-collect=*count_simulated*"])
            .args([format!("--D1={FIRST_LEVEL}"), format!("--LL={SECOND_LEVEL}")])
            .arg(std::env::current_exe()?)
            .args(["frequent-items", "--simulated", "--skews", &skew.to_string()])
            .args(["--alphabet", &alphabet.to_string(), "--counters", &counters.to_string()])
            .args(["--batch", &batch.to_string()])
            .env("TROMMEL_ISA", "avx2")
            .output()?;
        let text = String::from_utf8_lossy(&run.stderr);
        let words = |title: &str| {
            let line = text.lines().find_map(|line| line.split_once(title));
            line.map(|(_, words)| words.split_whitespace().collect::<Vec<_>>())
        };
        let (Some(names), Some(counts)) = (words("Events    : "), words("Collected : ")) else {
            return Err(io::Error::other(format!("callgrind printed no events: {text}")));
        };
        let count = |count: &str| count.parse().map_err(io::Error::other);
        let mut counts = counts.into_iter().map(count).collect::<io::Result<Vec<f64>>>()?;
        // Zeros at the end of the line are left out.
        counts.resize(names.len(), 0.0);
        Ok(Self { names: names.into_iter().map(str::to_owned).collect(), counts })
    }

    /// The number of these events together for each item.
    fn per_item(&self, events: &[&str]) -> io::Result<f64> {
        let count = |event: &&str| {
            let at = self.names.iter().position(|name| name == event);
            let count = at.and_then(|at| self.counts.get(at));
            count.ok_or_else(|| io::Error::other(format!("callgrind does not count {event}")))
        };
        let sum: f64 = events.iter().map(count).sum::<io::Result<f64>>()?;
        Ok(sum / ITEMS as f64)
    }
}
