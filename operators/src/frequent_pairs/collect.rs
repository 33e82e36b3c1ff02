//! COLLECT: rows of frequent pairs.

use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, RecordBatch, UInt32Array};
use arrow_schema::{ArrowError, DataType, Field, FieldRef, Schema, SchemaRef};
use arrow_select::take::take;
use trommel_engine::operator::{Counters, OperatorError, Output};
use trommel_kernels::supports::Pair;

use super::chunk::{PairChunk, Work};
use super::options::Measure;
use super::vertical::VerticalData;
use crate::wave::{Consumer, Taken};
use crate::window::borders::Borders;

/// Makes rows of pairs.
#[derive(Debug, Clone)]
pub(super) struct FrequentRows {
    measures: Vec<Measure>,
    /// Of the windows, if there are any.
    borders: Option<Borders>,
    schema: SchemaRef,
}

impl FrequentRows {
    /// Rows of items of type `item`, with the columns of `measures`. The columns of windows with
    /// the given `borders` come first.
    pub(super) fn new(item: &DataType, measures: Vec<Measure>, borders: Option<Borders>) -> Self {
        let items = |name| Field::new(name, item.clone(), false);
        let support = Field::new("support", DataType::UInt32, false);
        let window = borders.iter().flat_map(|borders| borders.fields());
        let mut fields: Vec<FieldRef> = window.collect();
        fields.extend([items("left"), items("right"), support].map(Arc::new));
        for measure in &measures {
            let names = match measure {
                Measure::Confidence => &["left_confidence", "right_confidence"][..],
                Measure::Lift => &["lift"],
            };
            let share = |&name| Arc::new(Field::new(name, DataType::Float64, false));
            fields.extend(names.iter().map(share));
        }
        Self { measures, borders, schema: Arc::new(Schema::new(fields)) }
    }

    pub(super) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn batch(&self, data: &VerticalData, pairs: &[Pair]) -> Result<RecordBatch, ArrowError> {
        // Ranks are indexes of the items, so a column of items is one gather.
        let ranks = pairs.iter().map(|pair| data.sorted([pair.left, pair.right]));
        let (lefts, rights): (Vec<u32>, Vec<u32>) =
            ranks.map(|[left, right]| (left, right)).unzip();
        let supports = UInt32Array::from_iter_values(pairs.iter().map(|pair| pair.support));
        let (lefts, rights) = (UInt32Array::from(lefts), UInt32Array::from(rights));
        let window = self.borders.iter();
        let mut columns: Vec<ArrayRef> =
            window.flat_map(|borders| borders.columns(data.window(), pairs.len())).collect();
        for ranks in [&lefts, &rights] {
            columns.push(take(data.items(), ranks, None)?);
        }
        columns.push(Arc::new(supports.clone()));
        for measure in &self.measures {
            match measure {
                Measure::Confidence => {
                    columns.push(quotients(&supports, lefts.values(), |rank| data.support(rank)));
                    columns.push(quotients(&supports, rights.values(), |rank| data.support(rank)));
                }
                Measure::Lift => columns.push(lifts(data, &supports, &lefts, &rights)),
            }
        }
        RecordBatch::try_new(SchemaRef::clone(&self.schema), columns)
    }
}

/// Supports of pairs, divided by the supports of their items `ranks`.
fn quotients(pairs: &UInt32Array, ranks: &[u32], support: impl Fn(u32) -> u32) -> ArrayRef {
    let pairs = pairs.values().iter().zip(ranks);
    let quotient = |(&pair, &rank)| f64::from(pair) / f64::from(support(rank));
    Arc::new(Float64Array::from_iter_values(pairs.map(quotient)))
}

/// Supports of pairs, divided by the supports to be expected of independent items.
fn lifts(
    data: &VerticalData,
    pairs: &UInt32Array,
    lefts: &UInt32Array,
    rights: &UInt32Array,
) -> ArrayRef {
    let transactions = f64::from(data.transactions());
    let lift = |row: usize| {
        let [left, right] = [lefts, rights].map(|ranks| f64::from(data.support(ranks.value(row))));
        f64::from(pairs.value(row)) * transactions / (left * right)
    };
    Arc::new(Float64Array::from_iter_values((0..pairs.len()).map(lift)))
}

/// Sends the rows of frequent pairs.
pub(super) struct PairConsumer {
    rows: FrequentRows,
    batch_rows: usize,
    /// Number of pairs of the present chunk that have been sent.
    sent: usize,
    results: u64,
}

impl PairConsumer {
    /// Sends batches of up to `batch_rows` rows.
    pub(super) fn new(rows: FrequentRows, batch_rows: usize) -> Self {
        Self { rows, batch_rows, sent: 0, results: 0 }
    }
}

impl Consumer for PairConsumer {
    type Chunk = PairChunk;

    fn take(&mut self, chunk: &PairChunk, out: &mut Output) -> Result<Taken, OperatorError> {
        let Work::Count(data, _) = &chunk.work else { return Ok(Taken::All) };
        let left = &chunk.found.pairs()[self.sent..];
        let pairs = &left[..left.len().min(self.batch_rows)];
        if !pairs.is_empty() {
            out.send(self.rows.batch(data, pairs)?);
        }
        self.results += pairs.len() as u64;
        self.sent += pairs.len();
        if pairs.len() < left.len() {
            return Ok(Taken::Some);
        }
        self.sent = 0;
        Ok(Taken::All)
    }

    fn counters(&self) -> Counters {
        vec![("results", self.results)]
    }
}
