//! COLLECT: rows of frequent pairs and triples.

use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, RecordBatch, UInt32Array};
use arrow_schema::{ArrowError, DataType, Field, FieldRef, Schema, SchemaRef};
use arrow_select::take::take;
use trommel_engine::operator::{Counters, OperatorError, Output};
use trommel_kernels::supports::Pair;

use crate::frequent_pairs::answer::chunk::{PairChunk, PairWork};
use crate::frequent_pairs::data::vertical::VerticalData;
use crate::frequent_pairs::parameters::options::Measure;
use crate::shared::window::borders::Borders;
use crate::wave::{Consumer, Taken};

/// Names of the items of a row.
const ITEMS: [&str; 3] = ["left", "right", "third"];

/// Makes rows of pairs or triples.
#[derive(Debug, Clone)]
pub(crate) struct FrequentRows {
    /// Items of a row, 2 or 3.
    itemset: usize,
    measures: Vec<Measure>,
    /// Borders of the windows, if there are windows.
    borders: Option<Borders>,
    schema: SchemaRef,
}

/// The ranks of the items of some rows, a column for each item, and supports of the rows.
struct Ranked<'a> {
    data: &'a VerticalData,
    ranks: Vec<UInt32Array>,
    supports: UInt32Array,
}

impl FrequentRows {
    /// Rows of `itemset` items of type `item`, with the columns of `measures`. The columns of
    /// windows with the given `borders` come first.
    pub(crate) fn new(
        item: &DataType,
        itemset: usize,
        measures: Vec<Measure>,
        borders: Option<Borders>,
    ) -> Self {
        let items = ITEMS[..itemset].iter().map(|&name| Field::new(name, item.clone(), false));
        let support = Field::new("support", DataType::UInt32, false);
        let window = borders.iter().flat_map(|borders| borders.fields());
        let mut fields: Vec<FieldRef> = window.collect();
        fields.extend(items.chain([support]).map(Arc::new));
        for measure in &measures {
            let names = match measure {
                Measure::Confidence => parts(itemset).map(confidence_of).collect(),
                Measure::Lift => vec!["lift".to_owned()],
            };
            let share = |name| Arc::new(Field::new(name, DataType::Float64, false));
            fields.extend(names.into_iter().map(share));
        }
        Self { itemset, measures, borders, schema: Arc::new(Schema::new(fields)) }
    }

    pub(crate) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// A batch of the first `rows` results of `found`, the answer of `work`; `None` if `found` is
    /// empty, or if `work` has itemsets of another size than the rows.
    fn batch(
        &self,
        work: &PairWork,
        found: &[Pair],
        rows: usize,
    ) -> Result<Option<RecordBatch>, ArrowError> {
        let found = &found[..found.len().min(rows)];
        let supports = UInt32Array::from_iter_values(found.iter().map(|found| found.support));
        let ranked = match work {
            PairWork::Count(data, _) if self.itemset == 2 && !found.is_empty() => {
                let ranks = found.iter().map(|pair| data.sorted([pair.left, pair.right]));
                (data, columns(ranks))
            }
            PairWork::CountTriples(pairs, _) if !found.is_empty() => {
                let data = pairs.data();
                let triple = |found: &Pair| {
                    let [second, third] = pairs.items(found.right);
                    data.sorted([found.left, second, third])
                };
                (data, columns(found.iter().map(triple)))
            }
            _ => return Ok(None),
        };
        let (data, ranks) = ranked;
        let ranked = Ranked { data, ranks, supports };
        let window = self.borders.iter();
        let mut columns: Vec<ArrayRef> =
            window.flat_map(|borders| borders.columns(data.window(), found.len())).collect();
        for ranks in &ranked.ranks {
            // Ranks are indexes of the items, so a column of items is one gather.
            columns.push(take(data.items(), ranks, None)?);
        }
        columns.push(Arc::new(ranked.supports.clone()));
        for measure in &self.measures {
            match measure {
                Measure::Confidence => {
                    let confidence = |part| ranked.confidence(part, work);
                    columns.extend(parts(self.itemset).map(confidence));
                }
                Measure::Lift => columns.push(ranked.lift()),
            }
        }
        RecordBatch::try_new(SchemaRef::clone(&self.schema), columns).map(Some)
    }
}

/// A column for each item of the rows `ranks`.
fn columns<const N: usize>(ranks: impl Iterator<Item = [u32; N]> + Clone) -> Vec<UInt32Array> {
    let column = |item: usize| {
        UInt32Array::from_iter_values(ranks.clone().map(move |ranks: [u32; N]| ranks[item]))
    };
    (0..N).map(column).collect()
}

/// The parts of an itemset that are conditions of a confidence: each item, then each pair of a
/// triple.
fn parts(itemset: usize) -> impl Iterator<Item = &'static [usize]> {
    const PARTS: [&[usize]; 6] = [&[0], &[1], &[2], &[0, 1], &[0, 2], &[1, 2]];
    PARTS.into_iter().filter(move |part| part.len() < itemset && part.iter().all(|&i| i < itemset))
}

fn confidence_of(part: &[usize]) -> String {
    let items = part.iter().map(|&item| ITEMS[item]);
    items.chain(["confidence"]).collect::<Vec<_>>().join("_")
}

impl Ranked<'_> {
    /// Supports of the rows, divided by the supports of the items `part` of each row.
    fn confidence(&self, part: &[usize], work: &PairWork) -> ArrayRef {
        let support = |row: usize| match (part, work) {
            (&[first, second], PairWork::CountTriples(pairs, _)) => {
                let mut items = [first, second].map(|item| self.ranks[item].value(row));
                items.sort_unstable();
                pairs.support(items)
            }
            _ => self.data.support(self.ranks[part[0]].value(row)),
        };
        let supports = self.supports.values().iter().enumerate();
        let quotient = |(row, &joint)| f64::from(joint) / f64::from(support(row));
        Arc::new(Float64Array::from_iter_values(supports.map(quotient)))
    }

    /// Supports of the rows, divided by the supports to be expected of independent items.
    fn lift(&self) -> ArrayRef {
        let transactions = f64::from(self.data.transactions());
        let lift = |(row, &joint): (usize, &u32)| {
            let alone = |ranks: &UInt32Array| f64::from(self.data.support(ranks.value(row)));
            let expected: f64 = self.ranks.iter().map(alone).product();
            let others = self.ranks[1..].iter();
            others.fold(f64::from(joint), |product, _| product * transactions) / expected
        };
        let supports = self.supports.values().iter().enumerate();
        Arc::new(Float64Array::from_iter_values(supports.map(lift)))
    }
}

/// Sends the rows of frequent pairs or triples.
pub(crate) struct PairConsumer {
    rows: FrequentRows,
    batch_rows: usize,
    /// Rows of the present chunk that have been sent.
    sent: usize,
    results: u64,
}

impl PairConsumer {
    /// Sends batches of up to `batch_rows` rows.
    pub(crate) fn new(rows: FrequentRows, batch_rows: usize) -> Self {
        Self { rows, batch_rows, sent: 0, results: 0 }
    }
}

impl Consumer for PairConsumer {
    type Chunk = PairChunk;

    fn take(&mut self, chunk: &PairChunk, out: &mut Output) -> Result<Taken, OperatorError> {
        let left = &chunk.found.pairs()[self.sent..];
        if let Some(rows) = self.rows.batch(&chunk.work, left, self.batch_rows)? {
            self.results += rows.num_rows() as u64;
            self.sent += rows.num_rows();
            out.send(rows);
            if self.sent < chunk.found.pairs().len() {
                return Ok(Taken::Some);
            }
        }
        self.sent = 0;
        Ok(Taken::All)
    }

    fn counters(&self) -> Counters {
        vec![("results", self.results)]
    }
}
