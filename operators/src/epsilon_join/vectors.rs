//! The vectors of an input: a column of lists, an expression, or a column for each coordinate.

use arrow_array::cast::AsArray;
use arrow_array::types::Float32Type;
use arrow_array::{Array, ArrayRef, Float32Array, RecordBatch, UInt64Array};
use arrow_buffer::{NullBuffer, ScalarBuffer};
use arrow_cast::cast;
use arrow_schema::{DataType, SchemaRef};
use arrow_select::take::take;
use trommel_engine::error::{BindError, BindErrorKind};
use trommel_engine::operator::OperatorError;

use super::error::EpsilonJoinError;
use crate::columns::DIMS_MAX;
use crate::expressions::ColumnInput;
use crate::parameters::{Mistakes, Names, check_range, refuse};
use crate::sets::lists;

/// Types of vectors, for messages.
const EXPECTED: &str = "a list of 1 to 4,096 numbers, or a number for each coordinate";

/// Columns that vectors come from.
#[derive(Debug, Clone)]
enum Form {
    /// A list of coordinates.
    Lists(ColumnInput),
    /// A number for each coordinate.
    Coordinates(Vec<ColumnInput>),
}

/// The vectors of an input.
#[derive(Debug, Clone)]
pub(super) struct VectorInput {
    form: Form,
    /// Number of the input, from 1.
    input: usize,
    /// Coordinates of each vector, once that is known.
    dims: Option<usize>,
}

/// The coordinates of some vectors, one vector after the other.
pub(super) struct Coordinates {
    pub(super) values: Float32Array,
    /// Vectors that are null; their coordinates are any.
    pub(super) nulls: Option<NullBuffer>,
}

impl VectorInput {
    /// The vectors `names` of each of `inputs`, which have `dims` coordinates if that is given.
    /// Inputs with as many coordinates as others tell them.
    ///
    /// # Errors
    /// If an input has no such columns, or they are no numbers; or if vectors differ in length.
    pub(super) fn bind(
        inputs: &[SchemaRef],
        names: &Names,
        dims: Option<u32>,
    ) -> Result<Vec<Self>, BindError> {
        let mut mistakes = Mistakes::default();
        let is_in_range = mistakes.check(check_range("dims", &dims.unwrap_or(1), &(1..=DIMS_MAX)));
        let mut known = is_in_range.and(dims).map(|dims| dims as usize);
        let mut bound = Vec::with_capacity(inputs.len());
        for (input, schema) in (1..).zip(inputs) {
            let form = mistakes.check(bind_form(schema, names));
            let Some((form, of_type)) = form else { continue };
            let others = known.filter(|&known| of_type.is_some_and(|found| found != known));
            mistakes.refuse(others.is_some(), || {
                let [found, known] = [of_type, others].map(Option::unwrap_or_default);
                let value = format!("vectors of {found} coordinates, beside {known}");
                let parameter = if dims.is_some() { "dims" } else { "vector" };
                refuse(parameter, value, "all vectors need one length")
            });
            known = known.or(of_type);
            bound.push(Self { form, input, dims: None });
        }
        mistakes.none()?;
        bound.iter_mut().for_each(|input| input.dims = known);
        Ok(bound)
    }

    /// Coordinates of each vector, if that is known.
    pub(super) fn dims(&self) -> Option<usize> {
        self.dims
    }

    /// The vectors of a batch, the first of which is the row `begin` of the input. The first vector
    /// says how many coordinates each has, unless the type has said so.
    ///
    /// # Errors
    /// If a vector has another length, or an expression has no value for a row.
    pub(super) fn of(
        &mut self,
        records: &RecordBatch,
        begin: u64,
    ) -> Result<Coordinates, OperatorError> {
        match &self.form {
            Form::Coordinates(columns) => {
                let columns = columns.iter().map(|column| to_floats(&column.of(records)?));
                interleaved(&columns.collect::<Result<Vec<_>, OperatorError>>()?)
            }
            Form::Lists(column) => {
                let column = column.of(records)?;
                self.of_lists(&column, begin)
            }
        }
    }

    fn of_lists(&mut self, column: &ArrayRef, begin: u64) -> Result<Coordinates, OperatorError> {
        let nulls = column.logical_nulls().filter(|nulls| nulls.null_count() > 0);
        if let Some(vectors) = column.as_fixed_size_list_opt() {
            return Ok(Coordinates { values: to_floats(vectors.values())?, nulls });
        }
        let vectors = lists(column)?;
        let offsets = vectors.offsets();
        let valid = |row: &usize| nulls.as_ref().is_none_or(|nulls| nulls.is_valid(*row));
        let lengths = || offsets.lengths().enumerate().filter(|(row, _)| valid(row));
        if let (None, Some((row, found))) = (self.dims, lengths().next()) {
            if !(1..=DIMS_MAX as usize).contains(&found) {
                return Err(self.wrong_length(begin + row as u64, found).into());
            }
            self.dims = Some(found);
        }
        let Some(dims) = self.dims else {
            // No vector has come yet.
            let values = Float32Array::from(Vec::<f32>::new());
            return Ok(Coordinates { values, nulls });
        };
        if let Some((row, found)) = lengths().find(|(_, found)| *found != dims) {
            return Err(self.wrong_length(begin + row as u64, found).into());
        }
        let mut values = to_floats(vectors.values())?;
        if vectors.null_count() > 0 {
            // Each vector has its place, a null too.
            let places = (0..vectors.len()).flat_map(|row| {
                let first = valid(&row).then(|| u64::from(offsets[row].unsigned_abs()));
                (0..dims as u64).map(move |coordinate| first.map(|first| first + coordinate))
            });
            let taken = take(&values, &places.collect::<UInt64Array>(), None)?;
            values = taken.as_primitive::<Float32Type>().clone();
        }
        Ok(Coordinates { values, nulls })
    }

    fn wrong_length(&self, row: u64, found: usize) -> EpsilonJoinError {
        EpsilonJoinError::Length { input: self.input, row, found, expected: self.dims }
    }
}

/// The columns `names` of an input, and the coordinates of a vector if their types say so.
fn bind_form(schema: &SchemaRef, names: &Names) -> Result<(Form, Option<usize>), BindError> {
    let names = names.as_slice();
    if names.is_empty() || names.len() > DIMS_MAX as usize {
        return Err(refuse("vector", format!("{} columns", names.len()), "expected 1 to 4,096"));
    }
    let (mut mistakes, mut columns) = (Mistakes::default(), Vec::with_capacity(names.len()));
    for name in names {
        let bound = mistakes.check(ColumnInput::bind(schema, name, "vector"));
        let Some((column, found)) = bound else { continue };
        if found.is_numeric() && !is_decimal(&found) {
            columns.push(column);
            continue;
        }
        if let Some(dims) = coordinates_of(&found).filter(|_| names.len() == 1) {
            return Ok((Form::Lists(column), dims));
        }
        mistakes.refuse(true, || {
            let (column, expected) = (name.clone(), EXPECTED);
            BindErrorKind::ColumnType { column, found, expected }.at("vector")
        });
    }
    mistakes.none()?;
    let dims = columns.len();
    Ok((Form::Coordinates(columns), Some(dims)))
}

/// The length of the vectors of a type, if the type says so; `None` if it is no type of vectors.
fn coordinates_of(kind: &DataType) -> Option<Option<usize>> {
    let (item, dims) = match kind {
        DataType::FixedSizeList(item, dims) => {
            let dims = usize::try_from(*dims).ok()?;
            (item, Some((1..=DIMS_MAX as usize).contains(&dims).then_some(dims)?))
        }
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::ListView(item)
        | DataType::LargeListView(item) => (item, None),
        _ => return None,
    };
    let item = item.data_type();
    (item.is_numeric() && !is_decimal(item)).then_some(dims)
}

fn is_decimal(kind: &DataType) -> bool {
    !kind.is_integer() && !kind.is_floating()
}

/// Numbers as float32, rounded to the nearest.
fn to_floats(numbers: &ArrayRef) -> Result<Float32Array, OperatorError> {
    Ok(cast(numbers, &DataType::Float32)?.as_primitive::<Float32Type>().clone())
}

/// Vectors of columns of coordinates.
fn interleaved(columns: &[Float32Array]) -> Result<Coordinates, OperatorError> {
    let (dims, rows) = (columns.len(), columns[0].len());
    let mut values = vec![0.0; dims * rows];
    for (place, column) in columns.iter().enumerate() {
        let places = values.iter_mut().skip(place).step_by(dims);
        places.zip(column.values()).for_each(|(value, &coordinate)| *value = coordinate);
    }
    let nulls = columns.iter().fold(None, |nulls: Option<NullBuffer>, column| {
        NullBuffer::union(nulls.as_ref(), column.nulls())
    });
    Ok(Coordinates { values: Float32Array::new(ScalarBuffer::from(values), None), nulls })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::builder::{Float64Builder, ListBuilder};
    use arrow_array::{Float64Array, Int16Array};

    use super::*;

    fn read(
        columns: &[(&str, ArrayRef)],
        names: Names,
        dims: Option<u32>,
    ) -> Result<(Vec<Option<f32>>, Option<usize>), String> {
        let records = RecordBatch::try_from_iter(columns.iter().cloned()).unwrap();
        let bound = VectorInput::bind(&[records.schema()], &names, dims);
        let mut input = bound.map_err(|error| error.to_string())?.remove(0);
        let read = input.of(&records, 40).map_err(|error| error.to_string())?;
        Ok((read.values.iter().collect(), input.dims()))
    }

    fn floats(rows: &[Option<&[f64]>]) -> ArrayRef {
        let mut lists = ListBuilder::new(Float64Builder::new());
        for row in rows {
            lists.values().append_slice(row.unwrap_or_default());
            lists.append(row.is_some());
        }
        Arc::new(lists.finish())
    }

    #[test]
    fn the_first_vector_says_how_long_all_are() {
        let vectors = floats(&[None, Some(&[0.1, 2.0]), Some(&[-1.0, 1e300])]);
        let (found, dims) = read(&[("vector", vectors)], "vector".into(), None).unwrap();
        let expected = [None, None, Some(0.1), Some(2.0), Some(-1.0), Some(f32::INFINITY)];
        assert_eq!((&found[..], dims), (&expected[..], Some(2)));
        let columns = [("vector", floats(&[Some(&[0.1, 2.0]), Some(&[3.0])]))];
        let error = read(&columns, "vector".into(), None).unwrap_err();
        assert_eq!(error, "row 41 of input 1: the vector has 1 coordinates; expected 2, as others");
        let error = read(&columns, "vector".into(), Some(3)).unwrap_err();
        assert_eq!(error, "row 40 of input 1: the vector has 2 coordinates; expected 3, as others");
        let error = read(&[("vector", floats(&[Some(&[])]))], "vector".into(), None).unwrap_err();
        assert_eq!(error, "row 40 of input 1: the vector has 0 coordinates; expected 1 to 4096");
    }

    #[test]
    fn columns_and_expressions_are_coordinates() {
        let columns = [
            ("x", Arc::new(Int16Array::from(vec![1, 2])) as ArrayRef),
            ("y", Arc::new(Float64Array::from(vec![0.5, -0.5]))),
        ];
        let (found, dims) = read(&columns, ["x", "y * 2"].into(), None).unwrap();
        let expected = [1.0, 1.0, 2.0, -1.0].map(Some);
        assert_eq!((&found[..], dims), (&expected[..], Some(2)));
        let error = read(&columns, ["x", "y || 'a'"].into(), None).unwrap_err();
        assert!(error.contains("a number for each coordinate"), "{error}");
        let error = read(&columns, ["x", "y"].into(), Some(3)).unwrap_err();
        assert!(error.contains("vectors of 2 coordinates, beside 3"), "{error}");
    }
}
