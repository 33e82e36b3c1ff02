//! The vectors of one input while they are collected.

use arrow_array::{BooleanArray, RecordBatch};
use arrow_buffer::ScalarBuffer;
use arrow_schema::ArrowError;
use arrow_select::filter::filter_record_batch;
use trommel_engine::operator::OperatorError;
use trommel_kernels::Isa;
use trommel_kernels::vectors::Directory;

use super::built::Collected;
use super::vectors::VectorInput;
use crate::epsilon_join::parameters::error::EpsilonJoinError;
use crate::epsilon_join::parameters::rules::Rules;
use crate::shared::budget::Budget;
use crate::shared::columns::carry::{CarriedColumns, CarriedRows};
use crate::shared::columns::ids::IdInput;
use crate::shared::rejected::BadRows;

/// Maximum vectors of an input.
pub(crate) const VECTORS_MAX: usize = Directory::POINTS_MAX;

/// Names of the memory in errors.
const VECTORS: &str = "the vectors";
const CARRIED: &str = "the carried columns";

/// Columns of an input.
#[derive(Debug, Clone)]
pub(crate) struct VectorSource {
    pub(crate) ids: IdInput,
    pub(crate) vectors: VectorInput,
    pub(crate) carried: CarriedColumns,
}

/// Rows of a batch that are all joined.
#[derive(Debug)]
pub(crate) struct VectorBatch {
    ids: ScalarBuffer<u32>,
    coordinates: ScalarBuffer<f32>,
    dims: usize,
    /// Carried columns, if there are any.
    carried: Option<RecordBatch>,
}

impl VectorBatch {
    /// Number of rows.
    pub(crate) fn len(&self) -> usize {
        self.ids.len()
    }

    /// Bytes that the rows take in a [`Side`], with stamps.
    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&self.coordinates[..])
            + size_of_val(&self.ids[..])
            + self.ids.len() * size_of::<u64>()
            + self.carried.as_ref().map_or(0, RecordBatch::get_array_memory_size)
    }

    /// The `len` rows from `begin` on.
    pub(crate) fn slice(&self, begin: usize, len: usize) -> Self {
        let dims = self.dims;
        Self {
            ids: self.ids.slice(begin, len),
            coordinates: self.coordinates.slice(begin * dims, len * dims),
            dims,
            carried: self.carried.as_ref().map(|carried| carried.slice(begin, len)),
        }
    }

    /// The rows that are `usable`.
    fn filtered(self, usable: &BooleanArray) -> Result<Self, ArrowError> {
        let dims = self.dims;
        let rows = || (0..self.ids.len()).filter(|&row| usable.value(row));
        let coordinates = rows().flat_map(|row| &self.coordinates[row * dims..(row + 1) * dims]);
        let carried = self.carried.as_ref().map(|carried| filter_record_batch(carried, usable));
        Ok(Self {
            ids: rows().map(|row| self.ids[row]).collect(),
            coordinates: coordinates.copied().collect(),
            dims,
            carried: carried.transpose()?,
        })
    }
}

/// The vectors of an input.
#[derive(Debug)]
pub(crate) struct Side {
    source: VectorSource,
    /// Number of the input, from 0.
    input: usize,
    coordinates: Vec<f32>,
    ids: Vec<u32>,
    carried: Vec<RecordBatch>,
}

impl Side {
    pub(crate) fn new(source: VectorSource, input: usize) -> Self {
        let (coordinates, ids, carried) = (Vec::new(), Vec::new(), Vec::new());
        Self { source, input, coordinates, ids, carried }
    }

    /// Coordinates of each vector; 1 before there is one.
    pub(crate) fn dims(&self) -> usize {
        self.source.vectors.dims().unwrap_or(1)
    }

    /// The rows of a batch that are joined.
    ///
    /// # Errors
    /// If a row cannot be used and the action for such rows is to end the run.
    pub(crate) fn accept(
        &mut self,
        isa: Isa,
        records: &RecordBatch,
        bad: &mut BadRows,
    ) -> Result<VectorBatch, OperatorError> {
        let VectorSource { ids, vectors, carried } = &mut self.source;
        let mut faults = bad.faults();
        let ids = ids.of(records, &mut faults)?;
        let coordinates = vectors.of(isa, records, &mut faults)?;
        bad.settle(self.input, records, &faults)?;
        let carried = (!carried.is_empty()).then(|| carried.of(records, &ids)).transpose()?;
        let (ids, dims) = (ids.numbers.values().clone(), self.dims());
        let batch = VectorBatch { ids, coordinates, dims, carried };
        Ok(match faults.usable(records.num_rows()) {
            None => batch,
            Some(usable) => batch.filtered(&usable)?,
        })
    }

    /// Takes the vectors that have been added since the last call, with `stamps`. Their bytes have
    /// been taken from `budget`.
    ///
    /// # Errors
    /// If there is no room to put the carried columns together.
    pub(crate) fn take(
        &mut self,
        rules: &Rules,
        has_directory: bool,
        stamps: Vec<u64>,
        budget: &mut Budget,
    ) -> Result<Collected, OperatorError> {
        let (mut coordinates, mut ids) =
            (std::mem::take(&mut self.coordinates), std::mem::take(&mut self.ids));
        budget.trim(VECTORS, &mut coordinates);
        budget.trim(VECTORS, &mut ids);
        let Rules { epsilon, tuning, .. } = *rules;
        let carried = match self.source.carried.is_empty() {
            true => None,
            false => {
                let carried = std::mem::take(&mut self.carried);
                let batch_bytes = tuning.carried_batch_bytes;
                let bytes: usize = carried.iter().map(RecordBatch::get_array_memory_size).sum();
                // A single batch stays as it is; several batches are copied, up to `batch_bytes`
                // bytes at once.
                let copied = if carried.len() > 1 { bytes.min(batch_bytes) } else { 0 };
                budget.reserve(CARRIED, copied)?;
                Some(CarriedRows::new(self.source.carried.schema(), carried, batch_bytes)?)
            }
        };
        let (dims, copies) = (self.dims(), None);
        Ok(Collected { coordinates, dims, epsilon, ids, carried, copies, has_directory, stamps })
    }

    /// Adds the rows of `batch`.
    ///
    /// # Errors
    /// If there is no room for the rows.
    pub(crate) fn append(
        &mut self,
        batch: VectorBatch,
        budget: &mut Budget,
    ) -> Result<(), OperatorError> {
        if self.ids.len() + batch.len() > VECTORS_MAX {
            let (input, most) = (self.input + 1, VECTORS_MAX);
            return Err(EpsilonJoinError::TooManyVectors { input, most }.into());
        }
        let VectorBatch { ids, coordinates, carried, .. } = batch;
        budget.grow(VECTORS, &mut self.coordinates, coordinates.len())?;
        budget.grow(VECTORS, &mut self.ids, ids.len())?;
        self.coordinates.extend_from_slice(&coordinates);
        self.ids.extend_from_slice(&ids);
        if let Some(carried) = carried {
            budget.take(CARRIED, carried.get_array_memory_size())?;
            self.carried.push(carried);
        }
        Ok(())
    }
}
