//! Rows of candidates over streams of different skew.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::stream::{Answer, Stream};
use crate::runner::Runs;
use crate::runner::report::{Table, cells, or_empty, right};
use crate::runner::turns::{Run, Turns, median};

/// Counts a stream once.
pub(super) type Counting<'a> = Box<dyn Fn() -> Answer + 'a>;

/// Named way to count a stream.
pub(super) struct Candidate {
    pub(super) name: String,
    pub(super) run: Box<dyn Fn(&Stream) -> Answer>,
}

impl Candidate {
    pub(super) fn new(name: impl Into<String>, run: impl Fn(&Stream) -> Answer + 'static) -> Self {
        Self { name: name.into(), run: Box::new(run) }
    }
}

/// Measured cell of the table.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub(super) struct Cell {
    /// Millions of items per second.
    pub(super) rate: f64,
    pub(super) precision: Option<f64>,
    pub(super) relative_error: Option<f64>,
    pub(super) state_bytes: Option<usize>,
}

impl Cell {
    /// A cell of a rate and an answer, which is checked.
    fn of(name: &str, stream: &Stream, time: Duration, answer: &Answer) -> Self {
        stream.check(name, &answer.estimates);
        let has_answer = !answer.estimates.is_empty();
        Self {
            rate: stream.len() as f64 / time.as_secs_f64() / 1e6,
            precision: has_answer.then(|| stream.precision(&answer.estimates)),
            relative_error: has_answer.then(|| stream.relative_error(&answer.estimates)).flatten(),
            state_bytes: answer.state_bytes,
        }
    }

    /// A cell of the median of some times and an answer, which is checked.
    pub(super) fn of_median(
        name: &str,
        stream: &Stream,
        times: Vec<Duration>,
        answer: &Answer,
    ) -> Self {
        Self::of(name, stream, median(times), answer)
    }

    pub(super) fn bytes(&self) -> Option<f64> {
        self.state_bytes.map(|bytes| bytes as f64)
    }
}

/// Cells of one candidate by skew; empty where it could not be measured.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) name: String,
    cells: Vec<Option<Cell>>,
}

impl Row {
    pub(super) fn rates(&self) -> Vec<Option<f64>> {
        self.cells.iter().map(|cell| Some(cell.as_ref()?.rate)).collect()
    }
}

/// Rows of all candidates in the order of printing.
#[derive(Debug, Default)]
pub(super) struct Rows(Vec<Row>);

impl Rows {
    /// Measures candidates on this stream by turns, as column `column`; the `digest` of all answers
    /// has to be the same.
    pub(super) fn measure_alike<'a, K: PartialEq + std::fmt::Debug>(
        &mut self,
        candidates: impl IntoIterator<Item = (&'a str, Counting<'a>)>,
        stream: &'a Stream,
        column: usize,
        runs: Runs,
        digest: impl Fn(&Answer) -> K + Copy + 'a,
    ) {
        let mut turns = Turns::new(runs);
        for (name, run) in candidates {
            turns.add(name, move || {
                let answer = run();
                let cell = Cell::of(name, stream, answer.time, &answer);
                Run { time: answer.time, answer: digest(&answer), rest: cell }
            });
        }
        for measured in turns.run() {
            self.set(&measured.name, column, *measured.rest());
        }
    }

    /// Measures candidates on this stream by turns, as column `column`.
    pub(super) fn measure(
        &mut self,
        candidates: &[Candidate],
        stream: &Stream,
        column: usize,
        runs: Runs,
    ) {
        let runs_of = candidates.iter().map(|Candidate { name, run }| {
            let run: Counting = Box::new(|| run(stream));
            (name.as_str(), run)
        });
        self.measure_alike(runs_of, stream, column, runs, |_| ());
    }

    /// Measures one candidate as [`Self::measure`].
    pub(super) fn measure_one(
        &mut self,
        candidate: &Candidate,
        stream: &Stream,
        column: usize,
        runs: Runs,
    ) -> Cell {
        self.measure(std::slice::from_ref(candidate), stream, column, runs);
        let row = self.0.iter().find(|row| row.name == candidate.name).expect("it was measured");
        row.cells[column].expect("it was measured")
    }

    pub(super) fn set(&mut self, name: &str, column: usize, cell: Cell) {
        let index = self.0.iter().position(|row| row.name == name).unwrap_or_else(|| {
            self.0.push(Row { name: name.to_owned(), cells: Vec::new() });
            self.0.len() - 1
        });
        let cells = &mut self.0[index].cells;
        cells.resize(cells.len().max(column + 1), None);
        cells[column] = Some(cell);
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Row> {
        self.0.iter()
    }

    /// The cells of a table with a single column.
    pub(super) fn first_column(&self) -> impl Iterator<Item = (&str, Cell)> {
        self.0.iter().filter_map(|row| Some((row.name.as_str(), *row.cells.first()?.as_ref()?)))
    }

    /// Rates of a row; none if there is no such row.
    pub(super) fn rates(&self, name: &str) -> Vec<Option<f64>> {
        self.0.iter().find(|row| row.name == name).map_or_else(Vec::new, Row::rates)
    }

    /// Rates of a row by skew.
    pub(super) fn line(&self, name: &str, skews: &[f64]) -> Vec<(f64, f64)> {
        let rates = skews.iter().zip(self.rates(name));
        rates.filter_map(|(&skew, rate)| Some((skew, rate?))).collect()
    }

    /// Prints one property of all rows that have it.
    pub(super) fn print(
        &self,
        title: &str,
        skews: &[f64],
        value: impl Fn(&Cell) -> Option<f64>,
        shown: impl Fn(f64) -> String,
    ) {
        let of = |row: &Row| {
            let values = row.cells.iter().map(|cell| value(cell.as_ref()?));
            (row.name.clone(), values.collect::<Vec<_>>())
        };
        print(title, skews, self.0.iter().map(of), shown);
    }

    pub(super) fn print_rates(&self, title: &str, skews: &[f64]) {
        self.print(title, skews, |cell| Some(cell.rate), |rate| format!("{rate:.0}"));
    }

    /// Prints how near the counts are, and the bytes of the state.
    pub(super) fn print_accuracy(&self, skews: &[f64], bytes: &str) {
        let share = |share| format!("{share:.2}");
        self.print("top-100 precision", skews, |cell| cell.precision, share);
        let error = |cell: &Cell| cell.relative_error;
        let shown = |error| format!("{error:.1e}");
        self.print("relative error of the top 100", skews, error, shown);
        self.print(bytes, skews, Cell::bytes, |bytes| format!("{bytes:.0}"));
    }
}

/// Prints a table with one column per skew, of the rows that have a value.
pub(super) fn print(
    title: &str,
    skews: &[f64],
    rows: impl IntoIterator<Item = (String, Vec<Option<f64>>)>,
    shown: impl Fn(f64) -> String,
) {
    let mut table = Table::new(&format!("{title} | {}", right(skews)));
    for (name, values) in rows {
        if values.iter().any(Option::is_some) {
            let values = values.iter().map(|value| or_empty(*value, &shown));
            table.row(format!("{name} | {}", cells(values)));
        }
    }
}

/// Quotients of two rows where both have a value.
pub(super) fn ratios(over: &[Option<f64>], under: &[Option<f64>]) -> Vec<Option<f64>> {
    over.iter().zip(under).map(|(over, under)| Some((*over)? / (*under)?)).collect()
}
