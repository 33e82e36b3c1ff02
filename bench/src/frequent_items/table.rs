//! Table of candidates over streams of different skew.

use std::fmt::Write;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::stream::{Answer, Stream};

/// Named way to count a stream.
pub(crate) struct Candidate {
    pub(crate) name: &'static str,
    pub(crate) run: Box<dyn Fn(&Stream) -> Answer>,
}

impl Candidate {
    pub(crate) fn new(name: &'static str, run: impl Fn(&Stream) -> Answer + 'static) -> Self {
        Self { name, run: Box::new(run) }
    }
}

/// Measured cell of the table.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Cell {
    /// Millions of items per second.
    pub(crate) rate: f64,
    pub(crate) precision: Option<f64>,
    pub(crate) relative_error: Option<f64>,
    pub(crate) state_bytes: Option<usize>,
}

impl Cell {
    /// A cell of the times of all rounds and the answer of the last one, which is checked.
    #[expect(clippy::cast_precision_loss, reason = "the number of items is far below 2^53")]
    pub(crate) fn of(
        name: &str,
        stream: &Stream,
        mut times: Vec<Duration>,
        answer: &Answer,
    ) -> Self {
        stream.check(name, &answer.estimates);
        times.sort_unstable();
        let median = times[times.len() / 2].as_secs_f64();
        let has_answer = !answer.estimates.is_empty();
        Self {
            rate: stream.len() as f64 / median / 1e6,
            precision: has_answer.then(|| stream.precision(&answer.estimates)),
            relative_error: has_answer.then(|| stream.relative_error(&answer.estimates)).flatten(),
            state_bytes: answer.state_bytes,
        }
    }
}

/// Cells of one candidate by skew; empty where it could not be measured.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) cells: Vec<Option<Cell>>,
}

impl Row {
    pub(crate) fn rates(&self) -> Vec<Option<f64>> {
        self.cells.iter().map(|cell| Some(cell.as_ref()?.rate)).collect()
    }
}

/// Rows of all candidates in the order of printing.
#[derive(Debug, Default)]
pub(crate) struct Rows {
    rows: Vec<Row>,
}

impl Rows {
    /// Measures all candidates on this stream, in interleaved rounds after one to warm up, as
    /// column `column`.
    pub(crate) fn measure(
        &mut self,
        candidates: &[Candidate],
        stream: &Stream,
        column: usize,
        rounds: usize,
    ) {
        let mut times: Vec<Vec<Duration>> = vec![Vec::new(); candidates.len()];
        let mut answers = Vec::new();
        for round in 0..=rounds {
            answers = candidates.iter().map(|candidate| (candidate.run)(stream)).collect();
            if round > 0 {
                let both = answers.iter().zip(&mut times);
                both.for_each(|(answer, times)| times.push(answer.time));
            }
        }
        for ((candidate, times), answer) in candidates.iter().zip(times).zip(&answers) {
            let cell = Cell::of(candidate.name, stream, times, answer);
            self.set(candidate.name, column, cell);
        }
    }

    /// Measures one summary like [`Self::measure`].
    pub(crate) fn measure_one(
        &mut self,
        name: &str,
        run: impl Fn(&Stream) -> Answer,
        stream: &Stream,
        column: usize,
        rounds: usize,
    ) -> Cell {
        let answers: Vec<Answer> = (0..=rounds).map(|_| run(stream)).collect();
        let times = answers[1..].iter().map(|answer| answer.time).collect();
        let cell = Cell::of(name, stream, times, &answers[rounds]);
        self.set(name, column, cell);
        cell
    }

    pub(crate) fn set(&mut self, name: &str, column: usize, cell: Cell) {
        let index = self.rows.iter().position(|row| row.name == name).unwrap_or_else(|| {
            self.rows.push(Row { name: name.to_owned(), cells: Vec::new() });
            self.rows.len() - 1
        });
        let cells = &mut self.rows[index].cells;
        cells.resize(cells.len().max(column + 1), None);
        cells[column] = Some(cell);
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter()
    }

    pub(crate) fn named(&self, name: &str) -> Option<&Row> {
        self.rows.iter().find(|row| row.name == name)
    }

    /// Prints one property of all rows that have it.
    pub(crate) fn print(
        &self,
        title: &str,
        skews: &[f64],
        value: impl Fn(&Cell) -> Option<f64>,
        shown: impl Fn(f64) -> String,
    ) {
        header(title, skews);
        for row in &self.rows {
            let of = |cell: &Option<Cell>| value(cell.as_ref()?);
            let values: Vec<Option<f64>> = row.cells.iter().map(of).collect();
            if values.iter().any(Option::is_some) {
                print_row(&row.name, skews.len(), &values, &shown);
            }
        }
        println!();
    }
}

/// Prints the head of a table with one column per skew.
pub(crate) fn header(title: &str, skews: &[f64]) {
    println!("| {title} | {} |", skews.iter().map(f64::to_string).collect::<Vec<_>>().join(" | "));
    println!("|---|{}", "---:|".repeat(skews.len()));
}

/// Prints a row of such a table; missing values are left empty.
pub(crate) fn print_row(
    name: &str,
    columns: usize,
    values: &[Option<f64>],
    shown: impl Fn(f64) -> String,
) {
    let mut line = format!("| {name} |");
    for column in 0..columns {
        let value = values.get(column).copied().flatten();
        write!(line, " {} |", value.map_or_else(String::new, &shown)).expect("memory suffices");
    }
    println!("{line}");
}

/// Quotients of two rows where both have a value.
pub(crate) fn ratios(over: &[Option<f64>], under: &[Option<f64>]) -> Vec<Option<f64>> {
    over.iter().zip(under).map(|(over, under)| Some((*over)? / (*under)?)).collect()
}
