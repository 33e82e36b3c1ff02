//! Figures 5 to 9 of the paper (Amossen, Pagh, IPDPS 2011, §IV): memory and time by the number of
//! items, by their density and by cores. Figure 10, a collection of texts, is a file in the table;
//! figure 11, rates of comparison, is the section `throughput`.

use std::io;
use std::path::Path;
use std::time::Duration;

use trommel::frequent_pairs::Layout;
use trommel::placement::available_cores;
use trommel_bench::plot::{Plot, Scale};

use super::data::Case;
use super::{Place, Run, check, measure, mine, totals};
use crate::memory::{peak, reset_peak};

/// Items of all transactions together.
const ELEMENTS: u32 = 10_000_000;

const ITEMS: [u32; 7] = [1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 64_000];
/// Items up to which layouts other than `auto` are measured, which would take minutes.
const ITEMS_OF_OTHERS: u32 = 16_000;
const ITEMS_OF_LISTS: u32 = 4_000;
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
    let is_measured = |layout, items| match layout {
        Layout::Auto => true,
        Layout::Lists => items <= ITEMS_OF_LISTS,
        _ => items <= ITEMS_OF_OTHERS,
    };
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
    by_cores(folder, &case(ITEMS_BY_DENSITY, PERCENT, elements), rounds)
}

/// All layouts at each of some points; `make` gives the transactions, or none.
fn sweep(xs: Vec<f64>, rounds: usize, make: impl Fn(f64, Layout) -> Option<Case>) -> Vec<Line> {
    let line = |layout: Layout| Line { name: layout.name().to_owned(), points: Vec::new() };
    let mut lines: Vec<Line> = LAYOUTS.into_iter().map(line).collect();
    for x in xs {
        for (line, layout) in lines.iter_mut().zip(LAYOUTS) {
            let Some(case) = make(x, layout) else { continue };
            let expected = check::<2>(&case);
            let batches = case.batches();
            let run = Run { itemset: 2, layout, place: Place::Cores(1) };
            let before = reset_peak();
            let (_, rows) = mine(batches.clone(), case.least, run);
            let bytes = peak().saturating_sub(before);
            assert_eq!(totals(&rows), expected, "{}: {layout:?}", case.name);
            drop(rows);
            let time = measure(&case, run, expected, rounds);
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

/// Times by cores: 1, 2, 4 and so on, and all.
fn by_cores(folder: Option<&Path>, case: &Case, rounds: usize) -> io::Result<()> {
    let expected = check::<2>(case);
    let all = available_cores().len();
    let doubled = std::iter::successors(Some(1), |count| Some(2 * count));
    let mut counts: Vec<usize> = doubled.take_while(|count| *count < all).collect();
    counts.push(all);
    let about = format!("{}, support {}", case.name, case.least);
    println!("\nCores: {about}; seconds\n");
    let names: Vec<String> = counts.iter().map(usize::to_string).collect();
    println!("| layout | {} | first / last |", names.join(" | "));
    println!("|---|{}---:|", "---:|".repeat(counts.len()));
    let mut plot = Plot::new("Frequent pairs: cores", about, Scale::Logarithmic)
        .axes("cores", "seconds")
        .x_names(names);
    for layout in LAYOUTS {
        let time = |count: &usize| {
            let run = Run { itemset: 2, layout, place: Place::Cores(*count) };
            measure(case, run, expected, rounds).as_secs_f64()
        };
        let times: Vec<f64> = counts.iter().map(time).collect();
        let shown: Vec<String> = times.iter().map(|time| format!("{time:.4}")).collect();
        let ratio = times[0] / times[times.len() - 1];
        println!("| `{}` | {} | {ratio:.2} |", layout.name(), shown.join(" | "));
        let points = (0_u32..).map(f64::from).zip(times).collect();
        plot = plot.line(layout.name(), points);
    }
    if let Some(folder) = folder {
        plot.write(folder, "frequent-pairs-cores")?;
    }
    Ok(())
}
