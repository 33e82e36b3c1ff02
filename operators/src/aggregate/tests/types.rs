//! Columns of all types as groups and as values.

use std::sync::Arc;

use arrow_array::{
    Array, ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, StringArray,
    new_null_array,
};
use arrow_cast::cast;
use arrow_schema::{DataType, IntervalUnit, TimeUnit};
use arrow_select::concat::concat;

use super::{Aggregate, Cell, cells, run};
use crate::testing::bind;

/// The types of columns that become keys.
fn types() -> Vec<DataType> {
    use DataType::*;
    let dictionary = |values: DataType| Dictionary(Box::new(UInt8), Box::new(values));
    vec![
        Boolean,
        Int8,
        Int16,
        Int32,
        Int64,
        UInt8,
        UInt16,
        UInt32,
        UInt64,
        Float16,
        Float32,
        Float64,
        Decimal128(20, 2),
        Decimal256(40, 2),
        Date32,
        Date64,
        Time32(TimeUnit::Second),
        Time64(TimeUnit::Nanosecond),
        Timestamp(TimeUnit::Millisecond, None),
        Timestamp(TimeUnit::Microsecond, Some("+00:00".into())),
        Duration(TimeUnit::Second),
        Utf8,
        LargeUtf8,
        Utf8View,
        Binary,
        LargeBinary,
        dictionary(Utf8),
        dictionary(Int64),
    ]
}

/// Small numbers as values of a type, with a null.
fn values(kind: &DataType) -> ArrayRef {
    let numbers: ArrayRef =
        Arc::new(Int64Array::from(vec![Some(1), Some(0), None, Some(1), Some(3), Some(3), None]));
    let to = |kind: &DataType| cast(&numbers, kind);
    match kind {
        DataType::Binary | DataType::LargeBinary | DataType::Utf8View => {
            cast(&to(&DataType::Utf8).unwrap(), kind).unwrap()
        }
        DataType::Boolean => {
            let flags: BooleanArray = [1, 0, 9, 1, 1, 1, 9]
                .iter()
                .map(|flag| (*flag < 9).then_some(*flag == 1))
                .collect();
            Arc::new(flags)
        }
        DataType::Date32 | DataType::Time32(_) => {
            cast(&to(&DataType::Int32).unwrap(), kind).unwrap()
        }
        DataType::Float16 => cast(&to(&DataType::Float32).unwrap(), kind).unwrap(),
        kind => to(kind).unwrap(),
    }
}

#[test]
fn columns_of_all_types_are_groups_and_values() {
    for kind in types() {
        let column = values(&kind);
        let batch = RecordBatch::try_from_iter_with_nullable([("x", column, true)]).unwrap();
        let calls = [
            "count(x)",
            "count_distinct(x) as d",
            "approx_count_distinct(x) as e",
            "min(x)",
            "max(x)",
            "first(x)",
            "last(x)",
            "list(x)",
        ];
        let found = run(Aggregate::new(calls).by("x"), vec![batch.clone(), batch], None);
        let found = found.unwrap_or_else(|error| panic!("{kind}: {error}"));
        let groups = if kind == DataType::Boolean { 3 } else { 4 };
        assert_eq!(found[0].num_rows(), groups, "{kind}");
        let counts = cells(&[found[0].project(&[1, 2, 3]).unwrap()]).into_iter();
        let whole = |number: i128| Cell::Whole(number);
        let mut expected = vec![vec![whole(0), whole(0), whole(0)]];
        let sizes: &[i128] = if groups == 3 { &[2, 8] } else { &[2, 4, 4] };
        expected.extend(sizes.iter().map(|size| vec![whole(*size), whole(1), whole(1)]));
        assert_eq!(counts.collect::<Vec<_>>(), expected, "{kind}");
        // All values of a group are its key.
        let key = found[0].column(0);
        assert!(key.is_null(0), "{kind}: nulls come first");
        for place in 4..8 {
            assert_eq!(found[0].column(place), key, "{kind}: {}", calls[place - 1]);
        }
        let lists = found[0].column(8);
        let lists = arrow_array::cast::AsArray::as_list::<i32>(lists);
        for group in 1..groups {
            let values = lists.value(group);
            let one = key.slice(group, 1);
            let expected: Vec<&dyn Array> = (0..values.len()).map(|_| one.as_ref()).collect();
            assert_eq!(&values, &concat(&expected).unwrap(), "{kind}");
        }
    }
}

#[test]
fn zeros_and_nans_are_one_group_each() {
    let other_nan = f64::from_bits(f64::NAN.to_bits() ^ (1 << 63) ^ 5);
    let floats = Float64Array::from(vec![0.0, f64::NAN, -0.0, other_nan, f64::INFINITY, -1.0]);
    let batch = RecordBatch::try_from_iter([("x", Arc::new(floats) as ArrayRef)]).unwrap();
    let calls = ["count(*)", "min(x)", "max(x)"];
    for by in ["x", "x + 0", "cast(x as float)"] {
        let found = run(Aggregate::new(calls).by(by), vec![batch.clone()], Some(2)).unwrap();
        let sizes: Vec<Cell> = cells(&found).into_iter().map(|row| row[1].clone()).collect();
        assert_eq!(sizes, [1, 2, 1, 2].map(Cell::Whole), "{by}");
    }
    let calls = ["count_distinct(x)", "approx_count_distinct(x)", "max(x)", "min(x)", "sum(x)"];
    let found = cells(&run(Aggregate::new(calls), vec![batch], Some(2)).unwrap());
    assert_eq!(found[0][..2], [4, 4].map(Cell::Whole));
    assert!(matches!(found[0][2], Cell::Float(max) if max.is_nan()), "{found:?}");
    assert_eq!(found[0][3], Cell::Float(-1.0));
}

#[test]
fn sums_have_the_types_that_the_documentation_names() {
    use DataType::*;
    let cases = [
        (Int8, Some(Int64), Some(Float64)),
        (UInt32, Some(Int64), Some(Float64)),
        (UInt64, Some(UInt64), Some(Float64)),
        (Float32, Some(Float64), Some(Float64)),
        (Decimal128(9, 2), Some(Decimal128(38, 2)), Some(Float64)),
        (
            Duration(TimeUnit::Second),
            Some(Duration(TimeUnit::Second)),
            Some(Duration(TimeUnit::Second)),
        ),
        (Utf8, None, None),
        (Boolean, None, None),
        (Timestamp(TimeUnit::Second, None), None, None),
        (Interval(IntervalUnit::YearMonth), None, None),
    ];
    for (kind, sum, mean) in cases {
        let column = new_null_array(&kind, 1);
        let batch = RecordBatch::try_from_iter_with_nullable([("x", column, true)]).unwrap();
        for (call, expected) in [("sum(x)", sum), ("avg(x)", mean)] {
            let bound = bind(Aggregate::new(call), &[batch.schema()]);
            let found = bound.ok().map(|bound| bound.outputs[0].field(0).data_type().clone());
            assert_eq!(found, expected, "{call} of {kind}");
        }
    }
}

#[test]
fn sums_of_decimals_and_durations_are_exact() {
    let numbers: ArrayRef = Arc::new(Int64Array::from(vec![Some(5), Some(6), None, Some(-2)]));
    let durations = cast(&numbers, &DataType::Duration(TimeUnit::Second)).unwrap();
    let decimals = cast(&numbers, &DataType::Decimal128(10, 2)).unwrap();
    let texts: ArrayRef = Arc::new(StringArray::from(vec!["a", "b", "c", "d"]));
    let columns = [("t", durations, true), ("d", decimals, true), ("s", texts, true)];
    let batch = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
    let calls = ["sum(t)", "avg(t)", "sum(d)", "avg(d)"];
    let found = run(Aggregate::new(calls), vec![batch.clone(), batch], Some(2)).unwrap();
    let expected = [Cell::Whole(18), Cell::Whole(3), Cell::Whole(18), Cell::Float(3.0)];
    assert_eq!(cells(&found), [expected]);
}
