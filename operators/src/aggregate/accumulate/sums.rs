//! Sums of numbers, exact for whole numbers and decimals, compensated for floats.

use std::any::Any;
use std::sync::Arc;

use arrow_array::builder::PrimitiveBuilder;
use arrow_array::cast::AsArray;
use arrow_array::types::{ArrowPrimitiveType, Decimal128Type, Float64Type, Int64Type, UInt64Type};
use arrow_array::{Array, ArrayRef, Float64Array};
use arrow_cast::cast;
use arrow_schema::{ArrowError, DataType};
use trommel_engine::operator::OperatorError;

use super::{Accumulator, Asked, Finish, Overflow, Update, each, grow};
use crate::shared::budget::{Budget, BudgetFull};

const WHAT: &str = "sums";

/// A whole number whose sums are exact: the number of carries is kept beside the sum.
pub(super) trait Whole: Copy + Default + Send + Sync + 'static {
    /// The sum modulo 2^bits, and the carry.
    fn add(self, other: Self) -> (Self, i64);

    /// The number that stands for this one and `carries` carries.
    fn as_float(self, carries: i64) -> f64;

    /// That number divided by a count, rounded towards zero.
    fn quotient(self, carries: i64, count: u64) -> Option<Self>;
}

fn wide(sum: impl Into<i128>, carries: i64) -> i128 {
    (i128::from(carries) << 64) + sum.into()
}

impl Whole for i64 {
    #[inline(always)]
    fn add(self, other: Self) -> (Self, i64) {
        let (sum, overflows) = self.overflowing_add(other);
        (sum, if overflows { other.signum() } else { 0 })
    }

    #[expect(clippy::cast_precision_loss, reason = "the mean is a float")]
    fn as_float(self, carries: i64) -> f64 {
        wide(self, carries) as f64
    }

    fn quotient(self, carries: i64, count: u64) -> Option<Self> {
        wide(self, carries).checked_div(i128::from(count))?.try_into().ok()
    }
}

impl Whole for u64 {
    #[inline(always)]
    fn add(self, other: Self) -> (Self, i64) {
        let (sum, overflows) = self.overflowing_add(other);
        (sum, i64::from(overflows))
    }

    #[expect(clippy::cast_precision_loss, reason = "the mean is a float")]
    fn as_float(self, carries: i64) -> f64 {
        wide(self, carries) as f64
    }

    fn quotient(self, carries: i64, count: u64) -> Option<Self> {
        wide(self, carries).checked_div(i128::from(count))?.try_into().ok()
    }
}

impl Whole for i128 {
    #[inline(always)]
    fn add(self, other: Self) -> (Self, i64) {
        let (sum, overflows) = self.overflowing_add(other);
        (sum, if overflows && other > 0 { 1 } else { -i64::from(overflows) })
    }

    #[expect(clippy::cast_precision_loss, reason = "the mean is a float")]
    fn as_float(self, carries: i64) -> f64 {
        carries as f64 * 128_f64.exp2() + self as f64
    }

    fn quotient(self, carries: i64, count: u64) -> Option<Self> {
        if carries == 0 { self.checked_div(i128::from(count)) } else { None }
    }
}

/// Sums of whole numbers of the native type of `T`.
pub(super) struct WholeSums<T: ArrowPrimitiveType> {
    /// The type in which values are added.
    kind: DataType,
    sums: Vec<T::Native>,
    /// The carries of each group; empty as long as no sum has a carry.
    carries: Vec<i64>,
}

impl<T: ArrowPrimitiveType> WholeSums<T>
where
    T::Native: Whole,
{
    pub(super) fn new(kind: DataType) -> Self {
        Self { kind, sums: Vec::new(), carries: Vec::new() }
    }

    /// Notes a carry, which is rare.
    #[cold]
    #[inline(never)]
    fn carry(&mut self, group: usize, carry: i64) {
        self.carries.resize(self.sums.len(), 0);
        self.carries[group] += carry;
    }

    fn carries(&self, group: u32) -> i64 {
        self.carries.get(group as usize).copied().unwrap_or(0)
    }
}

impl<T: ArrowPrimitiveType> Accumulator for WholeSums<T>
where
    T::Native: Whole,
{
    fn copy(&self) -> Box<dyn Accumulator> {
        let (sums, carries) = (self.sums.clone(), self.carries.clone());
        Box::new(Self { kind: self.kind.clone(), sums, carries })
    }

    fn update(&mut self, update: &mut Update<'_>) -> Result<(), OperatorError> {
        self.grow(update.len, update.budget)?;
        let values = cast(update.values, &self.kind)?;
        let mut carried = Vec::new();
        let sums = &mut self.sums[..];
        each(update.groups, values.as_primitive::<T>(), |group, value| {
            let (sum, carry) = sums[group].add(value);
            sums[group] = sum;
            if carry != 0 {
                carried.push((group, carry));
            }
        });
        carried.into_iter().for_each(|(group, carry)| self.carry(group, carry));
        Ok(())
    }

    fn grow(&mut self, len: usize, budget: &mut Budget) -> Result<(), BudgetFull> {
        grow(WHAT, &mut self.sums, len, T::Native::default(), budget)
    }

    fn merge(
        &mut self,
        other: &dyn Any,
        numbers: &[u32],
        _: &mut Budget,
    ) -> Result<(), OperatorError> {
        let other = other.downcast_ref::<Self>().expect("workers have like accumulators");
        for (from, &to) in numbers.iter().enumerate() {
            let to = to as usize;
            let (sum, carry) = self.sums[to].add(other.sums[from]);
            self.sums[to] = sum;
            let carry = carry + other.carries.get(from).copied().unwrap_or(0);
            if carry != 0 {
                self.carry(to, carry);
            }
        }
        Ok(())
    }

    fn finish(&self, finish: &Finish<'_>) -> Result<ArrayRef, OperatorError> {
        let is_mean = finish.asked == Asked::Mean;
        if is_mean && *finish.kind == DataType::Float64 {
            let scale = match self.kind {
                DataType::Decimal128(_, scale) => 10_f64.powi(i32::from(scale)),
                _ => 1.0,
            };
            let mean = |group: u32| {
                let sum = self.sums[group as usize].as_float(self.carries(group));
                sum / scale / finish.count_as_float(group)
            };
            let means = finish.groups.iter().map(|&group| finish.valid(group, || mean(group)));
            return Ok(Arc::new(means.collect::<Float64Array>()));
        }
        let mut sums = PrimitiveBuilder::<T>::with_capacity(finish.groups.len());
        for &group in finish.groups {
            let (sum, carries) = (self.sums[group as usize], self.carries(group));
            let count = if is_mean { finish.count(group) } else { 1 };
            // A group without values has no mean, and the sum 0, which is not shown.
            let sum = if count == 0 { Some(sum) } else { sum.quotient(carries, count) };
            let sum = sum.ok_or_else(|| finish.overflow())?;
            sums.append_option(finish.valid(group, || sum));
        }
        let sums = sums.finish();
        let data = sums.into_data().into_builder().data_type(finish.kind.clone()).build()?;
        let column = arrow_array::make_array(data);
        check_digits(&column).map_err(|_| finish.overflow())?;
        Ok(column)
    }
}

/// Checks that decimals have at most as many digits as their type.
fn check_digits(column: &ArrayRef) -> Result<(), ArrowError> {
    match column.as_primitive_opt::<Decimal128Type>() {
        Some(decimals) => decimals.validate_decimal_precision(decimals.precision()),
        None => Ok(()),
    }
}

/// A sum of floats and the sum of the parts that rounding has cut off (Neumaier, *Rundungsfehler-
/// analyse einiger Verfahren zur Summation endlicher Summen*, ZAMM 54, 1974; the parts are found
/// without a branch, as by Knuth, *The Art of Computer Programming* 2, §4.2.2).
#[derive(Debug, Clone, Copy, Default)]
struct FloatSum {
    sum: f64,
    lost: f64,
}

impl FloatSum {
    #[inline(always)]
    fn add(&mut self, value: f64) {
        let sum = self.sum + value;
        let of_value = sum - self.sum;
        self.lost += (self.sum - (sum - of_value)) + (value - of_value);
        self.sum = sum;
    }

    fn total(self) -> f64 {
        // After an infinite value or NaN, no part is known.
        if self.sum.is_finite() { self.sum + self.lost } else { self.sum }
    }
}

/// Sums of floats.
#[derive(Clone, Default)]
pub(super) struct FloatSums(Vec<FloatSum>);

impl Accumulator for FloatSums {
    fn copy(&self) -> Box<dyn Accumulator> {
        Box::new(self.clone())
    }

    fn update(&mut self, update: &mut Update<'_>) -> Result<(), OperatorError> {
        self.grow(update.len, update.budget)?;
        let values = cast(update.values, &DataType::Float64)?;
        let sums = &mut self.0[..];
        each(update.groups, values.as_primitive::<Float64Type>(), |group, value| {
            sums[group].add(value);
        });
        Ok(())
    }

    fn grow(&mut self, len: usize, budget: &mut Budget) -> Result<(), BudgetFull> {
        grow(WHAT, &mut self.0, len, FloatSum::default(), budget)
    }

    fn merge(
        &mut self,
        other: &dyn Any,
        numbers: &[u32],
        _: &mut Budget,
    ) -> Result<(), OperatorError> {
        let Self(other) = other.downcast_ref::<Self>().expect("workers have like accumulators");
        for (&FloatSum { sum, lost }, &to) in other.iter().zip(numbers) {
            let to = &mut self.0[to as usize];
            to.add(sum);
            to.lost += lost;
        }
        Ok(())
    }

    fn finish(&self, finish: &Finish<'_>) -> Result<ArrayRef, OperatorError> {
        let value = |group: u32| {
            let total = self.0[group as usize].total();
            match finish.asked {
                Asked::Mean => total / finish.count_as_float(group),
                _ => total,
            }
        };
        let values = finish.groups.iter().map(|&group| finish.valid(group, || value(group)));
        Ok(Arc::new(values.collect::<Float64Array>()))
    }
}

/// Sums of values of the type `kind`; `None` if there are none.
pub(crate) fn sums(kind: &DataType) -> Option<Box<dyn Accumulator>> {
    Some(match kind {
        DataType::UInt64 => Box::new(WholeSums::<UInt64Type>::new(DataType::UInt64)),
        integer if integer.is_integer() => Box::new(WholeSums::<Int64Type>::new(DataType::Int64)),
        DataType::Duration(_) => Box::new(WholeSums::<Int64Type>::new(DataType::Int64)),
        float if float.is_floating() => Box::new(FloatSums::default()),
        DataType::Decimal32(_, scale)
        | DataType::Decimal64(_, scale)
        | DataType::Decimal128(_, scale) => {
            let kind = DataType::Decimal128(38, *scale);
            Box::new(WholeSums::<Decimal128Type>::new(kind))
        }
        _ => return None,
    })
}

/// The type of sums of values of this type; `None` if there are none.
pub(crate) fn sum_type(kind: &DataType) -> Option<DataType> {
    Some(match kind {
        DataType::UInt64 => DataType::UInt64,
        integer if integer.is_integer() => DataType::Int64,
        duration @ DataType::Duration(_) => duration.clone(),
        float if float.is_floating() => DataType::Float64,
        DataType::Decimal32(_, scale)
        | DataType::Decimal64(_, scale)
        | DataType::Decimal128(_, scale) => DataType::Decimal128(38, *scale),
        _ => return None,
    })
}

/// The type of means of values of this type; `None` if there are none.
pub(crate) fn mean_type(kind: &DataType) -> Option<DataType> {
    match sum_type(kind)? {
        duration @ DataType::Duration(_) => Some(duration),
        _ => Some(DataType::Float64),
    }
}

impl Finish<'_> {
    #[expect(clippy::cast_precision_loss, reason = "the mean is a float")]
    fn count_as_float(&self, group: u32) -> f64 {
        self.count(group) as f64
    }

    fn overflow(&self) -> OperatorError {
        Overflow { call: self.text.to_owned(), kind: self.kind.clone() }.into()
    }
}
