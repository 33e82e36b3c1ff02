//! The vectors of an input: a column of lists, an expression, or a column for each coordinate.

use std::fmt::Display;
use std::ops::Range;

use arrow_array::cast::AsArray;
use arrow_array::types::Float32Type;
use arrow_array::{Array, ArrayRef, Float32Array, RecordBatch};
use arrow_buffer::ScalarBuffer;
use arrow_cast::cast;
use arrow_schema::{DataType, SchemaRef};
use trommel_engine::error::{BindError, BindErrorKind};
use trommel_engine::operator::OperatorError;
use trommel_kernels::Isa;
use trommel_kernels::vectors::first_not_finite;

use crate::expressions::ColumnInput;
use crate::shared::columns::DIMS_MAX;
use crate::shared::parameters::{Mistakes, Names, check_range, refuse};
use crate::shared::rejected::Faults;
use crate::shared::sets::lists;

/// Types of vectors, for messages.
const EXPECTED: &str = "a list of 1 to 4,096 numbers, or a number for each coordinate";

/// Columns that hold the vectors.
#[derive(Debug, Clone)]
enum VectorColumns {
    /// A list of coordinates.
    Lists(ColumnInput),
    /// A number for each coordinate.
    Coordinates(Vec<ColumnInput>),
}

/// The vectors of an input.
#[derive(Debug, Clone)]
pub(crate) struct VectorInput {
    form: VectorColumns,
    /// Number of coordinates of each vector, once that number is known.
    dims: Option<usize>,
}

impl VectorInput {
    /// The vectors `names` of each of `inputs`, with `dims` coordinates if `dims` is given. All
    /// inputs have the same number of coordinates, so the type of one input gives the number for
    /// all inputs.
    ///
    /// # Errors
    /// If an input has no such columns, if the columns do not hold numbers, or if vectors differ in
    /// length.
    pub(crate) fn bind(
        inputs: &[SchemaRef],
        names: &Names,
        dims: Option<u32>,
    ) -> Result<Vec<Self>, BindError> {
        let mut mistakes = Mistakes::default();
        let is_in_range = mistakes.check(check_range("dims", &dims.unwrap_or(1), &(1..=DIMS_MAX)));
        let mut known = is_in_range.and(dims).map(|dims| dims as usize);
        let mut bound = Vec::with_capacity(inputs.len());
        for schema in inputs {
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
            bound.push(Self { form, dims: None });
        }
        mistakes.none()?;
        bound.iter_mut().for_each(|input| input.dims = known);
        Ok(bound)
    }

    /// Number of coordinates of each vector, if that number is known.
    pub(crate) fn dims(&self) -> Option<usize> {
        self.dims
    }

    /// The coordinates of the vectors of a batch, one vector after the other. A row with a fault
    /// has arbitrary coordinates. The first vector without a fault sets the number of coordinates,
    /// unless the type has set that number.
    ///
    /// # Errors
    /// If the lists of a batch are too long for a column.
    pub(crate) fn of(
        &mut self,
        isa: Isa,
        records: &RecordBatch,
        faults: &mut Faults,
    ) -> Result<ScalarBuffer<f32>, OperatorError> {
        let schema = records.schema_ref();
        match &self.form {
            VectorColumns::Coordinates(columns) => {
                let dims = columns.len();
                let mut floats = Vec::with_capacity(dims);
                for input in columns {
                    let column = to_floats(&faults.values(input, records)?)?;
                    faults.note_nulls(column.nulls(), input.text(schema), "a coordinate");
                    floats.push(column);
                }
                let values = interleaved(&floats);
                if first_not_finite(isa, &values).is_some() {
                    for row in 0..records.num_rows() {
                        let vector = &values[row * dims..][..dims];
                        if let Some(at) = first_not_finite(isa, vector) {
                            faults.note(row, columns[at].text(schema), not_finite(at, vector[at]));
                        }
                    }
                }
                Ok(values)
            }
            VectorColumns::Lists(input) => {
                let column = faults.values(input, records)?;
                let nulls = column.logical_nulls();
                let name = input.text(schema).to_owned();
                faults.note_nulls(nulls.as_ref(), &name, "the vector");
                self.of_lists(isa, &column, &name, faults)
            }
        }
    }

    fn of_lists(
        &mut self,
        isa: Isa,
        column: &ArrayRef,
        name: &str,
        faults: &mut Faults,
    ) -> Result<ScalarBuffer<f32>, OperatorError> {
        if let (Some(vectors), Some(dims)) = (column.as_fixed_size_list_opt(), self.dims) {
            let values = to_floats(vectors.values())?;
            let whole = (0..vectors.len()).map(|row| (row, row * dims..(row + 1) * dims));
            note_faults(isa, &values, whole, name, faults);
            return Ok(values.values().clone());
        }
        let vectors = lists(column)?;
        let values = to_floats(vectors.values())?;
        let place = |end: i32| usize::try_from(end).expect("offsets are not negative");
        let ends = vectors.value_offsets().windows(2).map(|ends| place(ends[0])..place(ends[1]));
        // Whether each row has exactly `dims` coordinates, so that the values can be used without a
        // copy.
        let mut is_dense = true;
        for (row, range) in ends.clone().enumerate() {
            let found = range.len();
            if faults.has(row) {
                is_dense = false;
                continue;
            }
            match self.dims {
                Some(dims) if dims == found => continue,
                Some(dims) => {
                    let said = wrong_length(found, format_args!("{dims}, as others"));
                    faults.note(row, name, said);
                }
                None if !(1..=DIMS_MAX as usize).contains(&found) => {
                    let said = wrong_length(found, format_args!("1 to {DIMS_MAX}"));
                    faults.note(row, name, said);
                }
                None => {
                    note_fault(isa, &values, (row, range), name, faults);
                    self.dims = (!faults.has(row)).then_some(found);
                }
            }
            is_dense &= !faults.has(row);
        }
        let Some(dims) = self.dims else {
            // No vector that can be joined has arrived yet, so the values do not matter.
            return Ok(vec![0.0; vectors.len()].into());
        };
        note_faults(isa, &values, ends.clone().enumerate(), name, faults);
        if is_dense {
            return Ok(values.values().clone());
        }
        // Each row has a place of `dims` coordinates, even a row with a fault.
        let mut coordinates = vec![0.0; dims * vectors.len()];
        for ((row, range), to) in ends.enumerate().zip(coordinates.chunks_exact_mut(dims)) {
            if !faults.has(row) {
                to.copy_from_slice(&values.values()[range]);
            }
        }
        Ok(coordinates.into())
    }
}

/// Notes the vectors with a coordinate that is null or not finite: each `range` of `values` is the
/// vector of a row.
fn note_faults(
    isa: Isa,
    values: &Float32Array,
    vectors: impl IntoIterator<Item = (usize, Range<usize>)>,
    name: &str,
    faults: &mut Faults,
) {
    if values.null_count() > 0 || first_not_finite(isa, values.values()).is_some() {
        vectors.into_iter().for_each(|vector| note_fault(isa, values, vector, name, faults));
    }
}

/// As [`note_faults`], for one vector.
fn note_fault(
    isa: Isa,
    values: &Float32Array,
    (row, range): (usize, Range<usize>),
    name: &str,
    faults: &mut Faults,
) {
    if values.slice(range.start, range.len()).null_count() > 0 {
        return faults.note(row, name, "a coordinate is null");
    }
    let vector = &values.values()[range];
    if let Some(at) = first_not_finite(isa, vector) {
        faults.note(row, name, not_finite(at, vector[at]));
    }
}

fn wrong_length(found: usize, expected: impl Display) -> String {
    format!("the vector has {found} coordinates; expected {expected}")
}

fn not_finite(coordinate: usize, value: f32) -> String {
    format!("coordinate {coordinate} of the vector is {value}; expected finite numbers")
}

/// The columns `names` of an input, and the number of coordinates of a vector if the types set that
/// number.
fn bind_form(
    schema: &SchemaRef,
    names: &Names,
) -> Result<(VectorColumns, Option<usize>), BindError> {
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
            return Ok((VectorColumns::Lists(column), dims));
        }
        mistakes.refuse(true, || {
            let (column, expected) = (name.clone(), EXPECTED);
            BindErrorKind::ColumnType { column, found, expected }.at("vector")
        });
    }
    mistakes.none()?;
    let dims = columns.len();
    Ok((VectorColumns::Coordinates(columns), Some(dims)))
}

/// The length of the vectors of a type: `Some(None)` if the type does not set a length; `None` if
/// the type is not a type of vectors.
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
fn interleaved(columns: &[Float32Array]) -> ScalarBuffer<f32> {
    let (dims, rows) = (columns.len(), columns[0].len());
    let mut values = vec![0.0; dims * rows];
    for (place, column) in columns.iter().enumerate() {
        let places = values.iter_mut().skip(place).step_by(dims);
        places.zip(column.values()).for_each(|(value, &coordinate)| *value = coordinate);
    }
    ScalarBuffer::from(values)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::builder::{Float64Builder, ListBuilder};
    use arrow_array::{Float64Array, Int16Array};

    use super::*;
    use crate::shared::rejected::{BadRows, OnError};

    /// The coordinates of the vectors, the rows with a fault, and the length of a vector.
    type Read = (Vec<f32>, Vec<usize>, Option<usize>);

    fn read(
        columns: &[(&str, ArrayRef)],
        names: Names,
        dims: Option<u32>,
        action: OnError,
    ) -> Result<Read, String> {
        let records = RecordBatch::try_from_iter(columns.iter().cloned()).unwrap();
        let bound = VectorInput::bind(&[records.schema()], &names, dims);
        let mut input = bound.map_err(|error| error.to_string())?.remove(0);
        let mut bad = BadRows::new(Some(action), 1);
        let mut faults = bad.faults();
        let isa = Isa::selected().unwrap();
        let read = input.of(isa, &records, &mut faults).map_err(|error| error.to_string())?;
        bad.settle(0, &records, &faults).map_err(|error| error.to_string())?;
        Ok((read.to_vec(), faults.rows().collect(), input.dims()))
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
    fn the_first_usable_vector_says_how_long_all_are() {
        let rows: [Option<&[f64]>; 7] = [
            None,
            Some(&[f64::NAN, 1.0, 2.0]),
            Some(&[0.1, 2.0]),
            Some(&[-1.0, 1e300]),
            Some(&[7.0]),
            Some(&[]),
            Some(&[-1.0, 8.0]),
        ];
        let columns = [("vector", floats(&rows))];
        let (found, bad, dims) = read(&columns, "vector".into(), None, OnError::Skip).unwrap();
        assert_eq!(
            (&found[4..6], &found[12..], dims),
            (&[0.1, 2.0][..], &[-1.0, 8.0][..], Some(2))
        );
        assert_eq!((found.len(), &bad[..]), (14, &[0, 1, 3, 4, 5][..]));
        let errors = [
            (0..1, None, "row 1 of the input: the vector is null"),
            (1..2, None, "row 1 of the input: coordinate 0 of the vector is NaN; expected finite"),
            (2..4, None, "row 2 of the input: coordinate 1 of the vector is inf; expected finite"),
            (4..7, None, "row 2 of the input: the vector has 0 coordinates; expected 1, as others"),
            (4..5, Some(3), "row 1 of the input: the vector has 1 coordinates; expected 3, as oth"),
            (5..6, None, "row 1 of the input: the vector has 0 coordinates; expected 1 to 4096"),
        ];
        for (part, dims, expected) in errors {
            let columns = [("vector", floats(&rows[part]))];
            let error = read(&columns, "vector".into(), dims, OnError::Fail).unwrap_err();
            assert!(error.starts_with(expected), "{error}");
        }
    }

    #[test]
    fn columns_and_expressions_are_coordinates() {
        let columns = [
            ("x", Arc::new(Int16Array::from(vec![Some(1), Some(2), None, Some(3)])) as ArrayRef),
            ("y", Arc::new(Float64Array::from(vec![0.5, -0.5, 0.0, f64::INFINITY]))),
        ];
        let read = |y: &str, dims, action| read(&columns, ["x", y].into(), dims, action);
        let (found, bad, dims) = read("y * 2", None, OnError::Reject).unwrap();
        assert_eq!(
            (&found[..4], &bad[..], dims),
            (&[1.0, 1.0, 2.0, -1.0][..], &[2, 3][..], Some(2))
        );
        let error = read("y || 'a'", None, OnError::Skip).unwrap_err();
        assert!(error.contains("a number for each coordinate"), "{error}");
        let error = read("y", Some(3), OnError::Skip).unwrap_err();
        assert!(error.contains("vectors of 2 coordinates, beside 3"), "{error}");
        // An expression without a value is a fault, and no value replaces the missing value.
        let (found, bad, _) =
            read("(case y > 0 when true then 'a' else '7' end)::float", None, OnError::Skip)
                .unwrap();
        assert_eq!((&found[2..4], &bad[..]), (&[2.0, 7.0][..], &[0, 2, 3][..]));
    }
}
