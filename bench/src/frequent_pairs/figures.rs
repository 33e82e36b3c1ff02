//! Figures 5 to 9 of the paper (Amossen, Pagh, IPDPS 2011, §IV): memory and time by the number of
//! items, by their density and by cores. Figure 10, a collection of texts, is a file in the table;
//! figure 11, rates of comparison, is the section `throughput`.

use std::io;
use std::path::Path;
use std::time::Duration;

use crate::runner::plot::{Plot, Scale};
use trommel::frequent_pairs::Layout;
use trommel::placement::available_cores;

use super::data::Case;
use super::{Place, Run, Totals, check, measure, measure_warm, mine, totals};
use crate::runner::memory::{peak, reset_peak};

/// Items of all transactions together.
const ELEMENTS: u32 = 10_000_000;

const ITEMS: [u32; 7] = [1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 64_000];
/// Items up to which layouts other than `auto` are measured, which would take minutes.
const ITEMS_OF_OTHERS: u32 = 16_000;
const ITEMS_OF_LISTS: u32 = 2_000;
const PERCENT: f64 = 5.0;
const PERCENTS: [f64; 6] = [0.5, 1.0, 2.0, 5.0, 10.0, 20.0];
const ITEMS_BY_DENSITY: u32 = 4_000;

/// Longest run that is repeated.
const REPEATED_MAX: Duration = Duration::from_secs(4);

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
    /// Number of the case.
    x: usize,
    time: Duration,
    /// Bytes that the run took beside its input, at the most.
    bytes: u64,
}

/// Points of a layout on a number of cores.
struct Line {
    name: String,
    points: Vec<Point>,
}

/// The figures of the paper. Each prints its table, and is drawn into a folder if there is one.
pub(super) struct Paper<'a> {
    folder: Option<&'a Path>,
    rounds: usize,
    /// Items of all transactions together.
    elements: u32,
}

impl<'a> Paper<'a> {
    pub(super) fn new(folder: Option<&'a Path>, rounds: usize, quick: bool) -> Self {
        Self { folder, rounds, elements: if quick { ELEMENTS / 100 } else { ELEMENTS } }
    }

    /// Time and memory by the number of items.
    ///
    /// # Errors
    /// If a figure cannot be written.
    pub(super) fn by_items(&self) -> io::Result<()> {
        let sweep = Sweep {
            title: "Items",
            axis: "items",
            file: "frequent-pairs-items",
            about: format!("{PERCENT} %, {} items of transactions, one core", self.elements),
        };
        let cases = ITEMS.into_iter().map(|items| {
            let layouts = LAYOUTS.into_iter().filter(|layout| match layout {
                Layout::Auto => true,
                Layout::Lists => items <= ITEMS_OF_LISTS,
                _ => items <= ITEMS_OF_OTHERS,
            });
            (f64::from(items), case(items, PERCENT, self.elements), layouts.collect())
        });
        sweep.run(self.folder, cases, self.rounds)
    }

    /// Time and memory by the density of items.
    ///
    /// # Errors
    /// If a figure cannot be written.
    pub(super) fn by_density(&self) -> io::Result<()> {
        let elements = self.elements;
        let sweep = Sweep {
            title: "Density",
            axis: "density, %",
            file: "frequent-pairs-density",
            about: format!("{ITEMS_BY_DENSITY} items, {elements} items of transactions, one core"),
        };
        let cases = PERCENTS
            .into_iter()
            .map(|percent| (percent, case(ITEMS_BY_DENSITY, percent, elements), LAYOUTS.to_vec()));
        sweep.run(self.folder, cases, self.rounds)
    }

    /// Times by cores: 1, 2, 4 and so on, and all.
    ///
    /// # Errors
    /// If a figure cannot be written.
    pub(super) fn by_cores(&self) -> io::Result<()> {
        by_cores(self.folder, &case(ITEMS_BY_DENSITY, PERCENT, self.elements), self.rounds)
    }
}

/// Time and memory of layouts by one property of the transactions.
struct Sweep {
    title: &'static str,
    axis: &'static str,
    /// First part of the names of the figures.
    file: &'static str,
    about: String,
}

impl Sweep {
    /// Measures the layouts of each case, prints a row of each, and draws the figures.
    fn run(
        &self,
        folder: Option<&Path>,
        cases: impl Iterator<Item = (f64, Case, Vec<Layout>)>,
        rounds: usize,
    ) -> io::Result<()> {
        let Self { title, axis, about, .. } = self;
        println!("\n{title}: {about}; seconds / MB beside the input\n");
        println!("| {axis} | {} |", LAYOUTS.map(Layout::name).join(" | "));
        println!("|---:|{}", "---:|".repeat(LAYOUTS.len()));
        let line = |layout: Layout| Line { name: layout.name().to_owned(), points: Vec::new() };
        let mut lines: Vec<Line> = LAYOUTS.into_iter().map(line).collect();
        let mut names = Vec::new();
        for (x, case, layouts) in cases {
            let expected = check::<2>(&case);
            let mut cells = Vec::new();
            for (line, layout) in lines.iter_mut().zip(LAYOUTS) {
                if !layouts.contains(&layout) {
                    cells.push(String::new());
                    continue;
                }
                let (time, bytes) = point(&case, layout, expected, rounds);
                cells.push(format!("{:.3} / {:.0}", time.as_secs_f64(), bytes as f64 / 1e6));
                line.points.push(Point { x: names.len(), time, bytes });
            }
            println!("| {x} | {} |", cells.join(" | "));
            names.push(x.to_string());
        }
        folder.map_or(Ok(()), |folder| self.draw(folder, &lines, &names))
    }

    fn draw(&self, folder: &Path, lines: &[Line], names: &[String]) -> io::Result<()> {
        let draw = |what: &str, unit: &str, value: &dyn Fn(&Point) -> f64| {
            let title = format!("Frequent pairs: {what}");
            let mut plot = Plot::new(title, &self.about, Scale::Logarithmic)
                .axes(self.axis, unit)
                .x_names(names.to_vec());
            for line in lines {
                let points = line.points.iter().map(|point| (point.x as f64, value(point)));
                plot = plot.line(&line.name, points.collect());
            }
            plot.write(folder, &format!("{}-{what}", self.file))
        };
        draw("time", "seconds", &|point| point.time.as_secs_f64())?;
        draw("memory", "MB", &|point| (point.bytes as f64 / 1e6).max(0.1))?;
        Ok(())
    }
}

/// Median time of a layout on one core, and bytes that it takes beside its input. A long run is
/// not repeated.
fn point(case: &Case, layout: Layout, expected: Totals, rounds: usize) -> (Duration, u64) {
    let batches = case.batches();
    let run = Run { itemset: 2, layout, place: Place::Cores(1) };
    let before = reset_peak();
    let (time, rows) = mine(batches.clone(), case.least, run);
    let bytes = peak().saturating_sub(before);
    assert_eq!(totals(&rows), expected, "{}: {layout:?}", case.name);
    drop(rows);
    if time > REPEATED_MAX {
        return (time, bytes);
    }
    (measure_warm(case, &batches, run, expected, rounds), bytes)
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
