//! COLLECT: rows of pairs, their number, or rows of vectors.

use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, RecordBatch, UInt32Array, UInt64Array};
use arrow_schema::{DataType, Field, FieldRef, Schema, SchemaRef};
use trommel_engine::operator::{Counters, OperatorError, Output};
use trommel_kernels::vectors::{Pair, Partners};

use crate::epsilon_join::answer::chunk::{EpsilonChunk, Task};
use crate::epsilon_join::answer::found::{Answer, LaterRows, PartnerCounts};
use crate::epsilon_join::answer::join::PartedJoin;
use crate::epsilon_join::data::built::{Sides, as_row};
use crate::epsilon_join::data::copies::Copies;
use crate::epsilon_join::parameters::tuning::Tuning;
use crate::epsilon_join::plan::job::{DeviceJob, Outcome};
use crate::shared::columns::carry::CarriedColumns;
use crate::shared::columns::column_schema;
use crate::shared::columns::pairs::{PairRows, PairSide};
use crate::wave::{Consumer, Taken};

/// Kind of the rows of a join.
#[derive(Debug)]
pub(crate) enum ResultRows {
    /// One row per pair.
    Pairs(PairRows),
    /// One row with the number of pairs; the schema of that row.
    Count(SchemaRef),
    /// Rows of vectors of the left input, of `schema`: all vectors with the number of their
    /// partners, or only the vectors without an earlier partner.
    Vectors {
        schema: SchemaRef,
        /// Whether the first carried column has the ids.
        carries_ids: bool,
    },
}

impl ResultRows {
    /// One row per pair, with the carried columns of both inputs.
    pub(crate) fn pairs(carried: [&CarriedColumns; 2], batch_bytes: usize) -> Self {
        let distance = Field::new("distance", DataType::Float64, false);
        Self::Pairs(PairRows::new([distance], carried, batch_bytes))
    }

    pub(crate) fn count() -> Self {
        Self::Count(column_schema("count", DataType::UInt64))
    }

    /// One row per vector, with the number of its partners if `has_partners`, and its carried
    /// columns.
    pub(crate) fn vectors(has_partners: bool, carried: &CarriedColumns) -> Self {
        let (carries_ids, id) = match carried.id_type() {
            Some(id) => (true, id.clone()),
            None => (false, DataType::UInt32),
        };
        let mut fields: Vec<FieldRef> = vec![Arc::new(Field::new("id", id, false))];
        let partners = || Arc::new(Field::new("partners", DataType::UInt32, false));
        fields.extend(has_partners.then(partners));
        fields.extend(carried.others().iter().cloned());
        Self::Vectors { schema: Arc::new(Schema::new(fields)), carries_ids }
    }

    /// Columns of the rows.
    pub(crate) fn schema(&self) -> &SchemaRef {
        match self {
            Self::Pairs(rows) => rows.schema(),
            Self::Count(schema) | Self::Vectors { schema, .. } => schema,
        }
    }
}

/// Sends the rows.
pub(crate) struct EpsilonConsumer {
    rows: ResultRows,
    batch_rows: usize,
    block_rows: usize,
    /// Number of pairs, or of rows, of the present chunk that have been read.
    read: usize,
    /// Rows with an earlier partner.
    later: LaterRows,
    /// Partners of the vectors that are reported.
    partners: Option<Partners>,
    results: u64,
}

impl EpsilonConsumer {
    pub(crate) fn new(rows: ResultRows, tuning: &Tuning) -> Self {
        let Tuning { batch_rows, block_rows, .. } = *tuning;
        let (later, partners) = (LaterRows::default(), None);
        Self { rows, batch_rows, block_rows, read: 0, later, partners, results: 0 }
    }

    /// Sends a batch of pairs of the chunk; returns whether all pairs have been sent.
    fn send_pairs(
        &mut self,
        sides: &Sides,
        pairs: &[Pair],
        out: &mut Output,
    ) -> Result<Taken, OperatorError> {
        let ResultRows::Pairs(rows) = &self.rows else { return Ok(Taken::All) };
        let pairs = &pairs[self.read..];
        let batch = &pairs[..pairs.len().min(self.batch_rows)];
        let len = rows.batch_len(batch.iter().map(|pair| sides_of(sides, pair)));
        let batch = &batch[..len];
        let distances = batch.iter().map(|pair| pair.square.sqrt());
        let distances: ArrayRef = Arc::new(Float64Array::from_iter_values(distances));
        out.send(rows.batch(batch.iter().map(|pair| sides_of(sides, pair)), [distances])?);
        self.results += len as u64;
        self.read += len;
        Ok(if len < pairs.len() { Taken::Some } else { Taken::All })
    }

    /// Takes the answer of a device; returns whether all pairs of the answer have been sent.
    fn take_block(&mut self, job: &DeviceJob, out: &mut Output) -> Result<Taken, OperatorError> {
        match &job.outcome {
            Outcome::Pairs(pairs) => return self.send_pairs(&job.sides, pairs, out),
            Outcome::Count(count) => self.results += count,
            Outcome::Later(rows) => self.later.merge(rows),
            Outcome::Undone | Outcome::Full | Outcome::Partners(_) => {}
        }
        Ok(Taken::All)
    }

    /// Sends a batch of rows of the left vectors, after the whole join; returns whether all rows
    /// have been sent.
    fn report(
        &mut self,
        sides: &Sides,
        partners: Option<&PartnerCounts>,
        out: &mut Output,
    ) -> Result<Taken, OperatorError> {
        let ResultRows::Vectors { schema, carries_ids } = &self.rows else {
            // The join has not counted the pairs of equal vectors of one input.
            let copies = sides.left.copies.as_ref().filter(|_| sides.right.is_none());
            self.results += copies.map_or(0, Copies::pairs);
            return Ok(Taken::All);
        };
        if let (None, Some(partners)) = (&self.partners, partners) {
            let mut total = partners.total();
            PartedJoin::new(sides, self.block_rows).settle(&mut total);
            self.partners = Some(total);
        }
        let left = &*sides.left;
        let row_count = left.ids.len();
        if row_count == 0 {
            return Ok(Taken::All);
        }
        let end = row_count.min(self.read + self.batch_rows);
        let copies = left.copies.as_ref();
        let vector = |row: usize| copies.map_or(row, |copies| copies.number(row));
        // Each copy except the first copy has an earlier partner.
        let is_first = |row: &usize| {
            let is_later = self.later.contains(vector(*row));
            let is_copy = || copies.is_some_and(|copies| !copies.is_first(*row));
            self.partners.is_some() || !(is_later || is_copy())
        };
        let rows: Vec<usize> = (self.read..end).filter(is_first).collect();
        let number = |&row: &usize| u32::try_from(row).expect("rows have 32-bit numbers");
        let carried = left.carried.as_ref().map(|carried| carried.take(rows.iter().map(number)));
        let mut carried = carried.transpose()?.unwrap_or_default();
        let ids = || UInt32Array::from_iter_values(rows.iter().map(|&row| left.ids[row]));
        let mut columns: Vec<ArrayRef> =
            vec![if *carries_ids { carried.remove(0) } else { Arc::new(ids()) }];
        if let Some(partners) = &self.partners {
            let of_copies = |vector: usize| match sides.right {
                None => as_row(left.rows(&as_row(vector)).len()) - 1,
                Some(_) => 0,
            };
            let counts = rows.iter().map(|&row| {
                let vector = vector(row);
                partners.left()[vector] + of_copies(vector)
            });
            columns.push(Arc::new(UInt32Array::from_iter_values(counts)));
        }
        columns.extend(carried);
        out.send(RecordBatch::try_new(SchemaRef::clone(schema), columns)?);
        self.results += rows.len() as u64;
        self.read = end;
        if end < row_count {
            return Ok(Taken::Some);
        }
        self.later.clear();
        self.partners = None;
        Ok(Taken::All)
    }
}

/// The two vectors of a pair.
fn sides_of<'a>(sides: &'a Sides, pair: &Pair) -> [PairSide<'a>; 2] {
    [sides.left.side(pair.left), sides.right().side(pair.right)]
}

impl Consumer for EpsilonConsumer {
    type Chunk = EpsilonChunk;

    fn take(&mut self, chunk: &EpsilonChunk, out: &mut Output) -> Result<Taken, OperatorError> {
        let taken = match (&chunk.task, &chunk.answer) {
            (Task::Join { sides, .. }, Answer::Pairs(found)) => {
                self.send_pairs(sides, found.pairs(), out)?
            }
            (Task::Join { .. }, Answer::Count(count)) => {
                self.results += count.0;
                Taken::All
            }
            (Task::Join { .. }, Answer::Later(rows)) => {
                self.later.merge(rows);
                Taken::All
            }
            (Task::Device(job), _) => self.take_block(job, out)?,
            (Task::Report { sides, partners }, _) => self.report(sides, partners.as_ref(), out)?,
            (Task::Join { .. }, Answer::Partners) => Taken::All,
            (Task::None | Task::Build { .. } | Task::Gather(_), _) => {
                unreachable!("other chunks have no rows")
            }
        };
        if taken == Taken::All {
            self.read = 0;
        }
        Ok(taken)
    }

    fn finish(&mut self, out: &mut Output) -> Result<(), OperatorError> {
        if let ResultRows::Count(schema) = &self.rows {
            let count: ArrayRef = Arc::new(UInt64Array::from(vec![self.results]));
            out.send(RecordBatch::try_new(SchemaRef::clone(schema), vec![count])?);
        }
        Ok(())
    }

    fn counters(&self) -> Counters {
        vec![("results", self.results)]
    }
}
