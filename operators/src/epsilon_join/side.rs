//! The vectors of one input while they are collected.

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, UInt32Type};
use arrow_array::{Array, BooleanArray, RecordBatch};
use arrow_schema::{Schema, SchemaRef};
use arrow_select::filter::filter_record_batch;
use trommel_engine::operator::OperatorError;
use trommel_kernels::Isa;
use trommel_kernels::vectors::{Directory, first_not_finite};

use super::built::Collected;
use super::error::EpsilonJoinError;
use super::options::NotFinite;
use super::rules::Rules;
use crate::budget::Budget;
use crate::carry::CarriedRows;

/// Maximum vectors of an input.
pub(super) const VECTORS_MAX: usize = Directory::POINTS_MAX;

/// Places of the columns of an input, and the type of its vectors.
#[derive(Debug, Clone)]
pub(super) struct VectorColumns {
    pub(super) id: usize,
    pub(super) vector: usize,
    pub(super) dims: usize,
    /// Carried columns, and their schema.
    pub(super) carry: Vec<usize>,
    pub(super) carried: SchemaRef,
}

/// The vectors of an input.
#[derive(Debug)]
pub(super) struct Side {
    pub(super) columns: VectorColumns,
    /// Number of the input, from 1.
    input: usize,
    not_finite: NotFinite,
    pub(super) coordinates: Vec<f32>,
    pub(super) ids: Vec<u32>,
    pub(super) carried: Vec<RecordBatch>,
    /// Rows so far, with those that are not joined.
    rows: u64,
    nulls: u64,
    left_out: u64,
}

impl Side {
    pub(super) fn new(columns: VectorColumns, input: usize, not_finite: NotFinite) -> Self {
        Self {
            columns,
            input,
            not_finite,
            coordinates: Vec::new(),
            ids: Vec::new(),
            carried: Vec::new(),
            rows: 0,
            nulls: 0,
            left_out: 0,
        }
    }

    /// Numbers of rows, of null rows, and of rows that are not finite.
    pub(super) fn numbers(&self) -> [u64; 3] {
        [self.rows, self.nulls, self.left_out]
    }

    /// The rows of a batch that are joined.
    ///
    /// # Errors
    /// If a vector is null or not finite, and such vectors are not left out.
    pub(super) fn accept(
        &mut self,
        isa: Isa,
        records: RecordBatch,
    ) -> Result<RecordBatch, OperatorError> {
        let begin = self.rows;
        self.rows += records.num_rows() as u64;
        match self.usable(isa, &records, begin)? {
            None => Ok(records),
            Some(usable) => Ok(filter_record_batch(&records, &usable)?),
        }
    }

    /// Takes the vectors that have been added since the last call, with `stamps`.
    pub(super) fn take(
        &mut self,
        rules: &Rules,
        has_directory: bool,
        stamps: Vec<u64>,
    ) -> Result<Collected, OperatorError> {
        let (coordinates, ids) =
            (std::mem::take(&mut self.coordinates), std::mem::take(&mut self.ids));
        let Rules { epsilon, tuning, .. } = *rules;
        let carried = match self.columns.carry.is_empty() {
            true => None,
            false => {
                let carried = std::mem::take(&mut self.carried);
                let batch_bytes = tuning.carried_batch_bytes;
                Some(CarriedRows::new(&self.columns.carried, carried, batch_bytes)?)
            }
        };
        let dims = self.columns.dims;
        let copies = None;
        Ok(Collected { coordinates, dims, epsilon, ids, carried, copies, has_directory, stamps })
    }

    /// Which rows are joined; `None` if all are.
    fn usable(
        &mut self,
        isa: Isa,
        records: &RecordBatch,
        begin: u64,
    ) -> Result<Option<BooleanArray>, EpsilonJoinError> {
        let (ids, vectors) = (records.column(self.columns.id), records.column(self.columns.vector));
        let vectors = vectors.as_fixed_size_list();
        let coordinates = vectors.values().as_primitive::<Float32Type>();
        let has_nulls = ids.null_count() + vectors.null_count() + coordinates.null_count() > 0;
        if !has_nulls && first_not_finite(isa, coordinates.values()).is_none() {
            return Ok(None);
        }
        let dims = self.columns.dims;
        let mut usable = Vec::with_capacity(records.num_rows());
        for row in 0..records.num_rows() {
            // The coordinates of a null may be anything.
            let has_null = ids.is_null(row)
                || vectors.is_null(row)
                || (row * dims..(row + 1) * dims).any(|place| coordinates.is_null(place));
            if has_null && self.not_finite == NotFinite::Fail {
                let (input, row) = (self.input, begin + row as u64);
                return Err(EpsilonJoinError::Null { input, row });
            }
            self.nulls += u64::from(has_null);
            let vector = &coordinates.values()[row * dims..][..dims];
            let fault = first_not_finite(isa, vector).filter(|_| !has_null);
            if let Some(coordinate) = fault {
                if self.not_finite == NotFinite::Fail {
                    let (input, row) = (self.input, begin + row as u64);
                    let value = vector[coordinate];
                    return Err(EpsilonJoinError::NotFinite { input, row, coordinate, value });
                }
                self.left_out += 1;
            }
            usable.push(!has_null && fault.is_none());
        }
        Ok(Some(BooleanArray::from(usable)))
    }

    /// Adds rows all of which are joined.
    ///
    /// # Errors
    /// If there is no room for them.
    pub(super) fn append(
        &mut self,
        records: &RecordBatch,
        budget: &mut Budget,
    ) -> Result<(), OperatorError> {
        if self.ids.len() + records.num_rows() > VECTORS_MAX {
            let (input, most) = (self.input, VECTORS_MAX);
            return Err(EpsilonJoinError::TooManyVectors { input, most }.into());
        }
        let VectorColumns { id, vector, carry, .. } = &self.columns;
        let vectors = records.column(*vector).as_fixed_size_list();
        let coordinates = vectors.values().as_primitive::<Float32Type>().values();
        let ids = records.column(*id).as_primitive::<UInt32Type>().values();
        budget.take("the vectors", size_of_val(&coordinates[..]) + size_of_val(&ids[..]))?;
        self.coordinates.extend_from_slice(coordinates);
        self.ids.extend_from_slice(ids);
        if !carry.is_empty() {
            let carried = records.project(carry)?;
            budget.take("the carried columns", carried.get_array_memory_size())?;
            self.carried.push(carried);
        }
        Ok(())
    }
}

/// The schema of the columns at `carry`.
pub(super) fn carried_schema(input: &Schema, carry: &[usize]) -> SchemaRef {
    input.project(carry).expect("columns of the input").into()
}
