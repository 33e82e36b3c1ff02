//! COLLECT: rows of frequent pairs.

use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, RecordBatch, UInt32Array};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use trommel_engine::operator::{Counters, OperatorError, Output};
use trommel_kernels::supports::Pair;

use super::chunk::{PairChunk, Work};
use super::options::Measure;
use super::vertical::VerticalData;
use crate::wave::{Consumer, Taken};

/// Makes rows of pairs.
#[derive(Debug, Clone)]
pub(super) struct FrequentRows {
    measures: Vec<Measure>,
    schema: SchemaRef,
}

/// A pair as its row names it: the smaller item is on the left.
struct NamedPair {
    items: [u32; 2],
    /// Supports of the items.
    supports: [u32; 2],
    support: u32,
}

impl NamedPair {
    fn new(data: &VerticalData, &Pair { left, right, support }: &Pair) -> Self {
        let mut ranks = [left, right];
        ranks.sort_unstable_by_key(|&rank| data.item(rank));
        let [items, supports] =
            [ranks.map(|rank| data.item(rank)), ranks.map(|rank| data.support(rank))];
        Self { items, supports, support }
    }
}

impl FrequentRows {
    /// Rows with the columns of `measures`.
    pub(super) fn new(measures: Vec<Measure>) -> Self {
        let whole = |name| Field::new(name, DataType::UInt32, false);
        let mut fields = vec![whole("left"), whole("right"), whole("support")];
        for measure in &measures {
            let names = match measure {
                Measure::Confidence => &["left_confidence", "right_confidence"][..],
                Measure::Lift => &["lift"],
            };
            fields.extend(names.iter().map(|&name| Field::new(name, DataType::Float64, false)));
        }
        Self { measures, schema: Arc::new(Schema::new(fields)) }
    }

    pub(super) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn batch(&self, data: &VerticalData, pairs: &[Pair]) -> Result<RecordBatch, ArrowError> {
        let pairs: Vec<NamedPair> = pairs.iter().map(|pair| NamedPair::new(data, pair)).collect();
        let whole = |value: fn(&NamedPair) -> u32| -> ArrayRef {
            Arc::new(UInt32Array::from_iter_values(pairs.iter().map(value)))
        };
        let mut columns = vec![
            whole(|pair| pair.items[0]),
            whole(|pair| pair.items[1]),
            whole(|pair| pair.support),
        ];
        let share = |side: usize| -> ArrayRef {
            let share = |pair: &NamedPair| f64::from(pair.support) / f64::from(pair.supports[side]);
            Arc::new(Float64Array::from_iter_values(pairs.iter().map(share)))
        };
        for measure in &self.measures {
            match measure {
                Measure::Confidence => columns.extend([share(0), share(1)]),
                Measure::Lift => {
                    let transactions = f64::from(data.transactions());
                    let lift = |pair: &NamedPair| {
                        let [left, right] = pair.supports.map(f64::from);
                        f64::from(pair.support) * transactions / (left * right)
                    };
                    let lifts = pairs.iter().map(lift);
                    columns.push(Arc::new(Float64Array::from_iter_values(lifts)));
                }
            }
        }
        RecordBatch::try_new(SchemaRef::clone(&self.schema), columns)
    }
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
