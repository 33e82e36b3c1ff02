//! The operator against an oracle: rows of the test in a `BTreeMap`.

mod errors;
mod limits;
mod oracle;
mod questions;
mod types;
mod windows;

use std::fmt;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{Array, ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};
use arrow_cast::cast;
use arrow_schema::DataType;
use trommel_engine::graph::Graph;
use trommel_engine::runtime::RunOptions;

use super::Aggregate;
use crate::sink::Collect;
use crate::source::Memory;
use crate::testing::streams::Random;

/// A value of a row.
#[derive(Clone, PartialEq)]
enum Cell {
    Null,
    Whole(i128),
    Float(f64),
    /// A float that may be off by a thousandth.
    About(f64),
    /// A number that may be off by a sixteenth.
    Estimate(i128),
    Text(String),
    List(Vec<Cell>),
}

impl fmt::Debug for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Whole(whole) => write!(f, "{whole}"),
            Self::Float(float) => write!(f, "{float:?}f"),
            Self::About(float) => write!(f, "about {float:?}"),
            Self::Estimate(whole) => write!(f, "about {whole}"),
            Self::Text(text) => write!(f, "{text:?}"),
            Self::List(cells) => f.debug_list().entries(cells).finish(),
        }
    }
}

impl Cell {
    fn of<T>(value: Option<T>, cell: impl FnOnce(T) -> Self) -> Self {
        value.map_or(Self::Null, cell)
    }

    /// The value of a column in a row.
    fn at(column: &ArrayRef, row: usize) -> Self {
        if column.is_null(row) {
            return Self::Null;
        }
        let one = column.slice(row, 1);
        match column.data_type() {
            DataType::List(_) => {
                let values = column.as_list::<i32>().value(row);
                Self::List((0..values.len()).map(|place| Self::at(&values, place)).collect())
            }
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => {
                let text = cast(&one, &DataType::Utf8).unwrap();
                Self::Text(text.as_string::<i32>().value(0).to_owned())
            }
            kind if kind.is_floating() => {
                let float = cast(&one, &DataType::Float64).unwrap();
                Self::Float(float.as_primitive::<Float64Type>().value(0))
            }
            DataType::UInt64 => {
                use arrow_array::types::UInt64Type;
                Self::Whole(one.as_primitive::<UInt64Type>().value(0).into())
            }
            _ => {
                let whole = cast(&one, &DataType::Int64).unwrap();
                Self::Whole(whole.as_primitive::<Int64Type>().value(0).into())
            }
        }
    }

    /// Whether both values are equal, but for rounding.
    fn is_near(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Float(left), Self::Float(right)) => {
                let is_exact = left == right || (left.is_nan() && right.is_nan());
                is_exact || (left - right).abs() <= 1e-12 * left.abs().max(right.abs()).max(1.0)
            }
            (Self::Float(left), Self::About(right)) => {
                (left - right).abs() <= right.abs() / 1_000.0 || (left.is_nan() && right.is_nan())
            }
            (Self::Whole(left), Self::Estimate(right)) => 16 * (left - right).abs() <= *right,
            (Self::List(left), Self::List(right)) => {
                left.len() == right.len()
                    && left.iter().zip(right).all(|(left, right)| left.is_near(right))
            }
            _ => self == other,
        }
    }
}

/// The rows of batches.
fn cells(batches: &[RecordBatch]) -> Vec<Vec<Cell>> {
    let rows = batches.iter().flat_map(|batch| {
        let row = |row: usize| batch.columns().iter().map(move |column| Cell::at(column, row));
        (0..batch.num_rows()).map(move |number| row(number).collect())
    });
    rows.collect()
}

fn assert_near(found: &[Vec<Cell>], expected: &[Vec<Cell>], context: impl fmt::Display) {
    assert_eq!(found.len(), expected.len(), "{context}: {found:?}\n{expected:?}");
    for (found, expected) in found.iter().zip(expected) {
        let is_near = found.len() == expected.len()
            && found.iter().zip(expected).all(|(found, expected)| found.is_near(expected));
        assert!(is_near, "{context}:\n   found {found:?}\nexpected {expected:?}");
    }
}

/// The rows of a graph of this operator over batches; of one worker, if no number is given.
fn run(
    spec: Aggregate,
    batches: Vec<RecordBatch>,
    workers: Option<usize>,
) -> Result<Vec<RecordBatch>, String> {
    let mut graph = Graph::new();
    let rows = graph.add("in", Memory::new(batches[0].schema(), batches));
    let groups = graph.add_after(rows, "groups", spec);
    if let Some(workers) = workers {
        graph.workers(groups, workers);
    }
    let (sink, rows) = Collect::new();
    graph.add_after(groups, "rows", sink);
    let topology = graph.build().map_err(|error| error.to_string())?;
    topology.run(RunOptions::new()).map_err(|error| {
        let mut text = error.to_string();
        let mut source = std::error::Error::source(&error);
        while let Some(error) = source {
            text += &format!(": {error}");
            source = error.source();
        }
        text
    })?;
    Ok(rows.take())
}

/// A row of the tests.
#[derive(Clone, Debug, PartialEq)]
struct Row {
    host: Option<String>,
    code: Option<i64>,
    ms: Option<f64>,
}

fn batch(rows: &[Row]) -> RecordBatch {
    let hosts: StringArray = rows.iter().map(|row| row.host.as_deref()).collect();
    let codes: Int64Array = rows.iter().map(|row| row.code).collect();
    let times: Float64Array = rows.iter().map(|row| row.ms).collect();
    let columns: [(&str, ArrayRef); 3] =
        [("host", Arc::new(hosts)), ("code", Arc::new(codes)), ("ms", Arc::new(times))];
    let columns = columns.into_iter().map(|(name, column)| (name, column, true));
    RecordBatch::try_from_iter_with_nullable(columns).unwrap()
}

fn batches(rows: &[Row], len: usize) -> Vec<RecordBatch> {
    match rows {
        [] => vec![batch(&[])],
        rows => rows.chunks(len).map(batch).collect(),
    }
}

/// `count` rows with `groups` hosts and codes, some nulls and a NaN now and then.
fn random_rows(seed: u64, count: usize, groups: u64) -> Vec<Row> {
    let mut random = Random(seed);
    let one = |random: &mut Random| {
        let has = |random: &mut Random| random.below(9) > 0;
        let host = random.below(groups);
        let code = i64::try_from(random.below(groups)).unwrap() - 3;
        let ms = match random.below(40) {
            0 => f64::NAN,
            1 => -0.0,
            2 => 0.0,
            _ => random.unit() * 1_000.0 - 200.0,
        };
        Row {
            host: has(random).then(|| format!("host-{}", host * host)),
            code: has(random).then_some(code),
            ms: has(random).then_some(ms),
        }
    };
    (0..count).map(|_| one(&mut random)).collect()
}
