//! COLLECT: rows of answers.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use arrow_array::{Array, ArrayRef, ListArray, RecordBatch, StringArray, UInt32Array, UInt64Array};
use arrow_buffer::{OffsetBuffer, ScalarBuffer};
use arrow_schema::{ArrowError, DataType, Field, FieldRef, Schema, SchemaRef};
use arrow_select::interleave::interleave;
use hdrhistogram::Histogram;
use thiserror::Error;
use trommel_engine::operator::{Counters, OperatorError, Output};

use crate::conjunctive_query::answer::chunk::{QueryChunk, QueryWork};
use crate::conjunctive_query::data::index::Index;
use crate::conjunctive_query::parameters::options::QueryOutput;
use crate::conjunctive_query::parameters::tuning::Tuning;
use crate::conjunctive_query::plan::queries::Origin;
use crate::wave::{Consumer, Taken};

/// Maximum bytes of names in a batch of rows, because offsets have 31 bits.
const NAMES_BYTES_MAX: usize = i32::MAX as usize;
/// Longest latency that is recorded, an hour; a longer latency counts as an hour.
const LATENCY_NS_MAX: u64 = 3_600_000_000_000;
/// Approximate bytes of the names of a batch.
const NAMES_BYTES: usize = 1 << 20;

/// The names of the documents of one query are too long for a column.
#[derive(Debug, Error)]
#[error(
    "query {query} finds documents whose names have {bytes} bytes; at most {NAMES_BYTES_MAX} are \
     allowed in an answer"
)]
struct NamesTooLong {
    query: u64,
    bytes: usize,
}

/// Makes rows of answers.
#[derive(Debug, Clone)]
pub(crate) struct AnswerRows {
    output: QueryOutput,
    has_names: bool,
    has_latency: bool,
    schema: SchemaRef,
}

impl AnswerRows {
    /// Rows with the columns `carried` of the queries.
    pub(crate) fn new(
        output: QueryOutput,
        carried: &Schema,
        has_names: bool,
        has_latency: bool,
    ) -> Self {
        let mut fields: Vec<FieldRef> =
            vec![Arc::new(Field::new("query", DataType::UInt64, false))];
        fields.extend(carried.fields().iter().cloned());
        fields.push(Arc::new(match output {
            QueryOutput::Count => Field::new("count", DataType::UInt32, false),
            QueryOutput::Documents => {
                Field::new("documents", DataType::List(document(has_names)), false)
            }
        }));
        if has_latency {
            fields.push(Arc::new(Field::new("latency_us", DataType::UInt64, false)));
        }
        Self { output, has_names, has_latency, schema: Arc::new(Schema::new(fields)) }
    }

    pub(crate) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The answers to the queries `rows` of a chunk.
    fn batch(
        &self,
        chunk: &QueryChunk,
        index: &Index,
        rows: Range<usize>,
    ) -> Result<RecordBatch, OperatorError> {
        let origins = chunk.queries.origins();
        let places = &chunk.queries.rows()[rows.clone()];
        let numbers = places.iter().map(|&place| number(origins, place));
        let mut columns: Vec<ArrayRef> = vec![Arc::new(UInt64Array::from_iter_values(numbers))];
        columns.extend(carried(origins, places)?);
        columns.push(match self.output {
            QueryOutput::Count => Arc::new(UInt32Array::from(chunk.counts[rows].to_vec())),
            QueryOutput::Documents => {
                Arc::new(self.documents(chunk, index, rows, number(origins, places[0]))?)
            }
        });
        if self.has_latency {
            let micros = |&(origin, _): &(u32, u32)| {
                let latency = latency(chunk, &origins[origin as usize]);
                u64::try_from(latency.as_micros()).unwrap_or(u64::MAX)
            };
            columns.push(Arc::new(UInt64Array::from_iter_values(places.iter().map(micros))));
        }
        Ok(RecordBatch::try_new(SchemaRef::clone(&self.schema), columns)?)
    }

    fn documents(
        &self,
        chunk: &QueryChunk,
        index: &Index,
        rows: Range<usize>,
        query: u64,
    ) -> Result<ListArray, OperatorError> {
        let offsets = &chunk.found.offsets[rows.start..=rows.end];
        // Offsets of a chunk have 64 bits; offsets of a batch have 31 bits.
        let first = offsets[0];
        let end = |end: &u64| i32::try_from(end - first).expect("an answer has below 2^31");
        let ends: ScalarBuffer<i32> = offsets.iter().map(end).collect();
        let found = documents(chunk, &rows);
        let values: ArrayRef = if self.has_names {
            let bytes = found.iter().map(|&document| index.name(document).len()).sum();
            if bytes > NAMES_BYTES_MAX {
                return Err(NamesTooLong { query, bytes }.into());
            }
            let names = found.iter().map(|&document| index.name(document));
            Arc::new(StringArray::from_iter_values(names))
        } else {
            Arc::new(UInt32Array::from(found.to_vec()))
        };
        let field = document(self.has_names);
        Ok(ListArray::try_new(field, OffsetBuffer::new(ends), values, None)?)
    }

    /// Bytes of the documents of a query in the rows.
    fn answer_bytes(&self, chunk: &QueryChunk, index: &Index, query: usize) -> usize {
        let found = documents(chunk, &(query..query + 1));
        if !self.has_names {
            return size_of_val(found);
        }
        found.iter().map(|&document| index.name(document).len() + size_of::<i32>()).sum()
    }
}

/// An element of a list of documents.
fn document(has_names: bool) -> FieldRef {
    let data_type = if has_names { DataType::Utf8 } else { DataType::UInt32 };
    Arc::new(Field::new_list_field(data_type, false))
}

/// The documents of some queries.
fn documents<'a>(chunk: &'a QueryChunk, rows: &Range<usize>) -> &'a [u32] {
    let place = |row: usize| usize::try_from(chunk.found.offsets[row]).expect("it is in memory");
    &chunk.found.documents[place(rows.start)..place(rows.end)]
}

/// The position of a query in the stream.
fn number(origins: &[Origin], (origin, row): (u32, u32)) -> u64 {
    origins[origin as usize].first + u64::from(row)
}

/// The carried columns of queries.
fn carried(origins: &[Origin], places: &[(u32, u32)]) -> Result<Vec<ArrayRef>, ArrowError> {
    let places: Vec<(usize, usize)> =
        places.iter().map(|&(origin, row)| (origin as usize, row as usize)).collect();
    let column = |column: usize| {
        let parts: Vec<&dyn Array> =
            origins.iter().map(|origin| origin.carried.column(column).as_ref()).collect();
        interleave(&parts, &places)
    };
    (0..origins[0].carried.num_columns()).map(column).collect()
}

/// The time from the arrival of queries to their answers.
fn latency(chunk: &QueryChunk, origin: &Origin) -> Duration {
    let answered = chunk.answered.map(|at| at.saturating_duration_since(origin.entered));
    answered.unwrap_or_default()
}

/// Sends the rows of answers.
pub(crate) struct AnswerConsumer {
    rows: AnswerRows,
    tuning: Tuning,
    /// Queries of the present chunk that have been sent.
    sent: usize,
    answers: u64,
    documents: u64,
    latency_ns: Histogram<u64>,
}

impl AnswerConsumer {
    pub(crate) fn new(rows: AnswerRows, tuning: Tuning) -> Self {
        let latency_ns = Histogram::new_with_max(LATENCY_NS_MAX, 2);
        let latency_ns = latency_ns.expect("two digits are within 0..=5");
        Self { rows, tuning, sent: 0, answers: 0, documents: 0, latency_ns }
    }

    /// The end of the queries that the next batch has, from `sent` on.
    fn batch_end(&self, chunk: &QueryChunk, index: &Index) -> usize {
        let most = chunk.finished.min(self.sent + self.tuning.batch_rows);
        if self.rows.output == QueryOutput::Count {
            return most;
        }
        let (mut bytes, mut found) = (0, 0);
        let full = (self.sent..most).find(|&query| {
            bytes += self.rows.answer_bytes(chunk, index, query);
            found += documents(chunk, &(query..query + 1)).len();
            bytes > NAMES_BYTES || found > self.tuning.batch_documents
        });
        // A query with too many documents for a batch has a batch alone.
        full.map_or(most, |query| query.max(self.sent + 1))
    }

    /// Counts the answers in a chunk and their latencies.
    fn count(&mut self, chunk: &QueryChunk) {
        self.answers += chunk.finished as u64;
        let counted: u64 = chunk.counts.iter().map(|&count| u64::from(count)).sum();
        self.documents += counted + chunk.found.documents.len() as u64;
        let origins = chunk.queries.origins();
        let nanos = |origin| u64::try_from(latency(chunk, origin).as_nanos()).unwrap_or(u64::MAX);
        let latencies: Vec<u64> = origins.iter().map(nanos).collect();
        for &(origin, _) in &chunk.queries.rows()[..chunk.finished] {
            self.latency_ns.saturating_record(latencies[origin as usize]);
        }
    }
}

impl Consumer for AnswerConsumer {
    type Chunk = QueryChunk;

    fn take(&mut self, chunk: &QueryChunk, out: &mut Output) -> Result<Taken, OperatorError> {
        let QueryWork::Answer(index) = &chunk.work else {
            unreachable!("other chunks have no rows")
        };
        // The answers are counted once for each chunk, not for each batch of its rows.
        if self.sent == 0 {
            self.count(chunk);
        }
        let end = self.batch_end(chunk, index);
        out.send(self.rows.batch(chunk, index, self.sent..end)?);
        self.sent = end;
        if end < chunk.finished {
            return Ok(Taken::Some);
        }
        self.sent = 0;
        Ok(Taken::All)
    }

    fn counters(&self) -> Counters {
        vec![
            ("answers", self.answers),
            ("results", self.documents),
            ("answer_p50_ns", self.latency_ns.value_at_quantile(0.5)),
            ("answer_p99_ns", self.latency_ns.value_at_quantile(0.99)),
            ("answer_max_ns", self.latency_ns.max()),
        ]
    }
}
