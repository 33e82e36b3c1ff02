//! Figures 5 to 9 of the paper (Amossen, Pagh, IPDPS 2011, §IV): memory and time by the number of
//! items, by their density and by cores. Figure 10, a collection of texts, is a file in the table;
//! figure 11, rates of comparison, is the section `throughput`.

use std::io;
use std::time::Duration;

use trommel::frequent_pairs::Layout;
use trommel::placement::available_cores;

use super::data::Case;
use super::operator::{Engine, Place, Totals, check};
use crate::runner::memory::{peak, reset_peak};
use crate::runner::plot::{Plot, Scale};
use crate::runner::report::{Table, cells, right};
use crate::runner::turns::Turns;
use crate::runner::{Figures, Runs};

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

/// Seconds of a layout by the number of the case, and MB that its runs take beside their input.
type Line = [Vec<Option<f64>>; 2];

/// The figures of the paper. Each prints its table, and is drawn into a folder if there is one.
pub(super) struct Paper<'a> {
    figures: &'a Figures,
    runs: Runs,
    /// Items of all transactions together.
    elements: u32,
}

impl<'a> Paper<'a> {
    pub(super) fn new(figures: &'a Figures, runs: Runs, quick: bool) -> Self {
        Self { figures, runs, elements: if quick { ELEMENTS / 100 } else { ELEMENTS } }
    }

    /// Time and memory by the number of items.
    ///
    /// # Errors
    /// If a figure cannot be written.
    pub(super) fn by_items(&self) -> io::Result<()> {
        let about = format!("{PERCENT} %, {} items of transactions, one core", self.elements);
        let cases = ITEMS.into_iter().map(|items| {
            let layouts = LAYOUTS.into_iter().filter(|layout| match layout {
                Layout::Auto => true,
                Layout::Lists => items <= ITEMS_OF_LISTS,
                _ => items <= ITEMS_OF_OTHERS,
            });
            (f64::from(items), case(items, PERCENT, self.elements), layouts.collect())
        });
        self.sweep(["Items", "items", "items"], &about, cases)
    }

    /// Time and memory by the density of items.
    ///
    /// # Errors
    /// If a figure cannot be written.
    pub(super) fn by_density(&self) -> io::Result<()> {
        let elements = self.elements;
        let about = format!("{ITEMS_BY_DENSITY} items, {elements} items of transactions, one core");
        let cases = PERCENTS
            .into_iter()
            .map(|percent| (percent, case(ITEMS_BY_DENSITY, percent, elements), LAYOUTS.to_vec()));
        self.sweep(["Density", "density, %", "density"], &about, cases)
    }

    /// Measures the layouts of each case, prints a row of each, and draws the figures.
    fn sweep(
        &self,
        [title, axis, file]: [&str; 3],
        about: &str,
        cases: impl Iterator<Item = (f64, Case, Vec<Layout>)>,
    ) -> io::Result<()> {
        println!("{title}: {about}; seconds / MB beside the input\n");
        let mut table = Table::new(&format!("{axis}: | {}", right(LAYOUTS.map(Layout::name))));
        let mut lines: [Line; LAYOUTS.len()] = Default::default();
        let mut names = Vec::new();
        for (x, case, layouts) in cases {
            let expected = check::<2>(&case);
            let mut shown = Vec::new();
            for ([times, bytes], layout) in lines.iter_mut().zip(LAYOUTS) {
                let point = layouts.contains(&layout).then(|| self.point(&case, layout, expected));
                times.push(point.map(|(seconds, _)| seconds));
                bytes.push(point.map(|(_, megabytes)| megabytes.max(0.1)));
                let cell = |(seconds, megabytes)| format!("{seconds:.3} / {megabytes:.0}");
                shown.push(point.map_or_else(String::new, cell));
            }
            table.row(format!("{x} | {}", cells(shown)));
            names.push(x.to_string());
        }
        drop(table);
        for (number, (what, unit)) in [("time", "seconds"), ("memory", "MB")].iter().enumerate() {
            let mut plot = Plot::new(format!("Frequent pairs: {what}"), about, Scale::Logarithmic)
                .axes(axis, unit)
                .x_names(names.clone());
            for (line, layout) in lines.iter().zip(LAYOUTS) {
                plot = plot.line_by_number(layout.name(), line[number].iter().copied());
            }
            plot.save(self.figures, &format!("frequent-pairs-{file}-{what}"))?;
        }
        Ok(())
    }

    /// Median seconds of a layout on one core, and MB that it takes beside its input. A long run is
    /// not repeated.
    fn point(&self, case: &Case, layout: Layout, expected: Totals) -> (f64, f64) {
        let batches = case.batches();
        let engine = Engine { itemset: 2, layout, place: Place::Cores(1), least: case.least };
        let before = reset_peak();
        let first = engine.run(&batches);
        let megabytes = peak().saturating_sub(before) as f64 / 1e6;
        assert_eq!(first.answer, expected, "{}: {layout:?}", case.name);
        if first.time > REPEATED_MAX {
            return (first.time.as_secs_f64(), megabytes);
        }
        let mut turns = Turns::new(self.runs).cold().expect(expected);
        turns.add(layout.name(), || engine.run(&batches));
        (turns.run()[0].seconds(), megabytes)
    }

    /// Times by cores: 1, 2, 4 and so on, and all.
    ///
    /// # Errors
    /// If a figure cannot be written.
    pub(super) fn by_cores(&self) -> io::Result<()> {
        let case = case(ITEMS_BY_DENSITY, PERCENT, self.elements);
        let (expected, batches) = (check::<2>(&case), case.batches());
        let all = available_cores().len();
        let doubled = std::iter::successors(Some(1), |count| Some(2 * count));
        let mut counts: Vec<usize> = doubled.take_while(|count| *count < all).collect();
        counts.push(all);
        let about = format!("{}, support {}", case.name, case.least);
        println!("Cores: {about}; seconds\n");
        let names: Vec<String> = counts.iter().map(usize::to_string).collect();
        let mut table = Table::new(&format!("layout | {} | first / last:", right(&names)));
        let mut plot = Plot::new("Frequent pairs: cores", about, Scale::Logarithmic)
            .axes("cores", "seconds")
            .x_names(names);
        for layout in LAYOUTS {
            let mut turns = Turns::new(self.runs).expect(expected);
            for &count in &counts {
                let place = Place::Cores(count);
                let engine = Engine { itemset: 2, layout, place, least: case.least };
                let batches = &batches;
                turns.add(count.to_string(), move || engine.run(batches));
            }
            let times: Vec<f64> = turns.run().iter().map(|engine| engine.seconds()).collect();
            let shown = cells(times.iter().map(|time| format!("{time:.4}")));
            let ratio = times[0] / times[times.len() - 1];
            table.row(format!("`{}` | {shown} | {ratio:.2}", layout.name()));
            plot = plot.line_by_number(layout.name(), times.into_iter().map(Some));
        }
        drop(table);
        plot.save(self.figures, "frequent-pairs-cores")
    }
}
