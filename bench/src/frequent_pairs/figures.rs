//! Figures 5 to 9 and 11 of the paper (Amossen, Pagh, IPDPS 2011, §IV): memory and time by the
//! number of items, by their density and by cores. Figure 10, a collection of texts, is a file in
//! the table.

use std::fs;
use std::io;
use std::path::Path;
use std::time::Duration;

use trommel::frequent_pairs::Layout;
use trommel::placement::available_cores;
use trommel_bench::plot::{Plot, Scale};

use super::data::Case;
use super::{Place, check, measure, pairs, totals};

/// Items of all transactions together.
const ELEMENTS: u32 = 10_000_000;

const ITEMS: [u32; 7] = [1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 64_000];
/// Items up to which all layouts are measured; the others of `auto` would take minutes.
const ITEMS_OF_ALL: u32 = 16_000;
const PERCENT: f64 = 5.0;
const PERCENTS: [f64; 6] = [0.5, 1.0, 2.0, 5.0, 10.0, 20.0];
const ITEMS_BY_DENSITY: u32 = 4_000;

const LAYOUTS: [Layout; 4] = [Layout::Auto, Layout::Batmap, Layout::Bitmap, Layout::Lists];

/// Random transactions, and a support that about one pair of a hundred reaches.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a mean of few thousands"
)]
fn case(items: u32, percent: f64, elements: u32) -> Case {
    let density = percent / 100.0;
    let transactions = f64::from(elements) / (f64::from(items) * density);
    let mean = transactions * density * density;
    let least = (mean + 2.3 * mean.sqrt()).ceil().max(1.0) as u32;
    Case::generate(items, density, elements, least)
}

/// One run of a layout.
#[derive(Clone, Copy)]
struct Point {
    x: f64,
    time: Duration,
    /// Bytes that the run took beside its input, at the most.
    bytes: u64,
}

/// Points of a layout on a number of cores.
struct Line {
    name: String,
    points: Vec<Point>,
}

/// Measures, prints the tables and draws the figures into `folder`.
///
/// # Errors
/// If a figure cannot be written.
pub(super) fn run(folder: Option<&Path>, rounds: usize, quick: bool) -> io::Result<()> {
    let elements = if quick { ELEMENTS / 100 } else { ELEMENTS };
    let is_measured = |layout, items| layout == Layout::Auto || items <= ITEMS_OF_ALL;
    let by_items = sweep(ITEMS.map(f64::from).to_vec(), rounds, |x, layout| {
        let items = ITEMS.into_iter().find(|&items| f64::from(items) == x).expect("one of them");
        is_measured(layout, items).then(|| case(items, PERCENT, elements))
    });
    let about = format!("{PERCENT} %, {elements} items of transactions, one core");
    show(folder, ("Items", "items", "frequent-pairs-items", &about), &by_items)?;
    let by_density = sweep(PERCENTS.to_vec(), rounds, |percent, _| {
        Some(case(ITEMS_BY_DENSITY, percent, elements))
    });
    let about = format!("{ITEMS_BY_DENSITY} items, {elements} items of transactions, one core");
    show(folder, ("Density", "density, %", "frequent-pairs-density", &about), &by_density)?;
    cores(&case(ITEMS_BY_DENSITY, PERCENT, elements), rounds);
    Ok(())
}

/// All layouts at each of some points; `make` gives the transactions, or none.
fn sweep(xs: Vec<f64>, rounds: usize, make: impl Fn(f64, Layout) -> Option<Case>) -> Vec<Line> {
    let line = |layout: Layout| Line { name: layout.name().to_owned(), points: Vec::new() };
    let mut lines: Vec<Line> = LAYOUTS.into_iter().map(line).collect();
    for x in xs {
        for (line, layout) in lines.iter_mut().zip(LAYOUTS) {
            let Some(case) = make(x, layout) else { continue };
            let expected = check(&case);
            let batches = case.batches();
            let before = reset_peak();
            let (_, rows) = pairs(batches.clone(), case.least, layout, Place::OneCore);
            let bytes = peak().saturating_sub(before);
            assert_eq!(totals(&rows), expected, "{}: {layout:?}", case.name);
            drop(rows);
            let time = measure(&case, layout, Place::OneCore, expected, rounds);
            line.points.push(Point { x, time, bytes });
        }
    }
    lines
}

/// Prints the times and the memory, and draws them.
fn show(
    folder: Option<&Path>,
    (title, axis, file, about): (&str, &str, &str, &str),
    lines: &[Line],
) -> io::Result<()> {
    println!("\n{title}: {about}; seconds / MB beside the input\n");
    println!("| {axis} | {} |", lines.iter().map(|l| &*l.name).collect::<Vec<_>>().join(" | "));
    println!("|---:|{}", "---:|".repeat(lines.len()));
    for (row, first) in lines[0].points.iter().enumerate() {
        let cells = lines.iter().map(|line| match line.points.get(row) {
            Some(Point { time, bytes, .. }) => {
                format!("{:.3} / {:.0}", time.as_secs_f64(), *bytes as f64 / 1e6)
            }
            None => String::new(),
        });
        println!("| {} | {} |", first.x, cells.collect::<Vec<_>>().join(" | "));
    }
    let Some(folder) = folder else { return Ok(()) };
    let names: Vec<String> = lines[0].points.iter().map(|point| point.x.to_string()).collect();
    let draw = |what: &str, unit: &str, value: &dyn Fn(&Point) -> f64| {
        let mut plot = Plot::new(format!("Frequent pairs: {what}"), about, Scale::Logarithmic)
            .axes(axis, unit)
            .x_names(names.clone());
        for line in lines {
            let points = (0_u32..).zip(&line.points).map(|(at, p)| (f64::from(at), value(p)));
            plot = plot.line(&line.name, points.collect());
        }
        plot.write(folder, &format!("{file}-{what}"))
    };
    draw("time", "seconds", &|point| point.time.as_secs_f64())?;
    draw("memory", "MB", &|point| (point.bytes as f64 / 1e6).max(0.1))?;
    Ok(())
}

/// Times by cores.
fn cores(case: &Case, rounds: usize) {
    let expected = check(case);
    let all = available_cores().len();
    println!("\nCores: {}, support {}; seconds\n", case.name, case.least);
    println!("| layout | one core | {all} cores | ratio |");
    println!("|---|---:|---:|---:|");
    for layout in LAYOUTS {
        let time = |place| measure(case, layout, place, expected, rounds).as_secs_f64();
        let (one, several) = (time(Place::OneCore), time(Place::AllCores));
        println!("| `{}` | {one:.4} | {several:.4} | {:.2} |", layout.name(), one / several);
    }
}

/// A number of the status of this process, in bytes.
fn status(name: &str) -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    let kilobytes = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok());
    kilobytes.unwrap_or(0) * 1024
}

/// Largest resident memory since [`reset_peak`].
fn peak() -> u64 {
    status("VmHWM")
}

/// Makes the present memory the largest; returns it.
fn reset_peak() -> u64 {
    // If that is not allowed, the peak is that of the whole process.
    let _ = fs::write("/proc/self/clear_refs", "5");
    status("VmRSS")
}
