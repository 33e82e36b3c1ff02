//! Quantiles of numbers.
//!
//! A group with few values keeps these. A group with more values counts them in bins, as in an HDR
//! histogram: a bin has all floats with the same sign, exponent and first 10 bits of the fraction,
//! so the ends of a bin differ by less than 0.1 %. The bins are those of the bits of a float and
//! not those of the crate `hdrhistogram`, whose values are whole numbers from 0 in a range that is
//! known before: these bins have numbers of any size and both signs, and only bins with values take
//! memory.
//!
//! Bins are a sorted list. New values wait in a buffer as long as the list, and enter the list
//! together: a value costs a step of a sort.

use std::any::Any;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Float64Type;
use arrow_array::{ArrayRef, Float64Array};
use arrow_cast::cast;
use arrow_schema::DataType;
use trommel_engine::operator::OperatorError;

use super::{Accumulator, Asked, Finish, Update, each, grow};
use crate::shared::budget::{Budget, BudgetFull};

const WHAT: &str = "quantiles";
/// Maximum values of a group that are kept as they are.
const VALUES_MAX: usize = 128;
/// Minimum values that wait for their bins.
const WAITING_MIN: usize = 256;
/// Bits of a float below the bits that are the number of its bin.
const BIN_SHIFT: u32 = 42;

/// Whether values of this type have quantiles here.
pub(crate) fn is_quantified(kind: &DataType) -> bool {
    kind.is_numeric() && !matches!(kind, DataType::Decimal256(..))
}

/// The number of the bin of a value: bins ascend as their values, and NaN has the last bin.
#[inline(always)]
fn bin_of(value: f64) -> u32 {
    let bits = if value.is_nan() { f64::NAN.to_bits() } else { value.to_bits() };
    let code = u32::try_from(bits >> BIN_SHIFT).expect("22 bits");
    let sign = 1 << (u64::BITS - BIN_SHIFT - 1);
    // Negative values descend with their codes.
    if code & sign == 0 { code | sign } else { !code & (sign - 1) }
}

/// The value of a bin that is nearest to zero.
fn value_of(bin: u32) -> f64 {
    let sign = 1 << (u64::BITS - BIN_SHIFT - 1);
    let code = if bin & sign == 0 { !bin & (2 * sign - 1) } else { bin ^ sign };
    f64::from_bits(u64::from(code) << BIN_SHIFT)
}

/// The values of a group.
#[derive(Debug, Clone)]
enum Histogram {
    Values(Vec<f64>),
    Bins { waiting: Vec<u32>, bins: Vec<(u32, u64)> },
}

impl Default for Histogram {
    fn default() -> Self {
        Self::Values(Vec::new())
    }
}

impl Histogram {
    #[inline]
    fn add(&mut self, value: f64, budget: &mut Budget) -> Result<(), BudgetFull> {
        match self {
            Self::Values(values) if values.len() < VALUES_MAX => {
                if values.len() == values.capacity() {
                    budget.grow(WHAT, values, values.len().max(1))?;
                }
                values.push(value);
            }
            Self::Values(_) => {
                self.use_bins(budget)?;
                return self.add(value, budget);
            }
            Self::Bins { waiting, bins } => {
                if waiting.len() == waiting.capacity() {
                    settle(waiting, bins, budget)?;
                }
                waiting.push(bin_of(value));
            }
        }
        Ok(())
    }

    fn use_bins(&mut self, budget: &mut Budget) -> Result<(), BudgetFull> {
        if let Self::Values(values) = self {
            let mut waiting = Vec::new();
            budget.grow(WHAT, &mut waiting, WAITING_MIN)?;
            waiting.extend(values.iter().map(|&value| bin_of(value)));
            budget.give_back(values.capacity() * size_of::<f64>());
            *self = Self::Bins { waiting, bins: Vec::new() };
        }
        Ok(())
    }

    fn merge(&mut self, other: &Self, budget: &mut Budget) -> Result<(), BudgetFull> {
        match other {
            Self::Values(values) => values.iter().try_for_each(|&value| self.add(value, budget)),
            Self::Bins { waiting: others, bins: other_bins } => {
                self.use_bins(budget)?;
                if let Self::Bins { waiting, bins } = self {
                    settle(waiting, bins, budget)?;
                    add_bins(bins, other_bins, budget)?;
                    for &bin in others {
                        if waiting.len() == waiting.capacity() {
                            settle(waiting, bins, budget)?;
                        }
                        waiting.push(bin);
                    }
                }
                Ok(())
            }
        }
    }

    /// The values or bins at these shares of all values, of which there is one at least.
    fn quantile(&self, share: f64) -> f64 {
        match self {
            Self::Values(values) => {
                let mut values = values.clone();
                let place = place_of(share, values.len() as u64);
                let place = usize::try_from(place).expect("a place in a list");
                // NaN is above all numbers, whatever its sign.
                let order = |value: &f64| if value.is_nan() { f64::NAN } else { *value };
                values.sort_unstable_by(|left, right| order(left).total_cmp(&order(right)));
                values[place]
            }
            Self::Bins { waiting, bins } => {
                let mut waiting = waiting.clone();
                waiting.sort_unstable();
                let bins = merged(bins, &counted(&waiting));
                let mut left = place_of(share, bins.iter().map(|(_, count)| count).sum());
                let found = bins.iter().find(|(_, count)| {
                    let is_here = left < *count;
                    left = left.saturating_sub(*count);
                    is_here
                });
                value_of(found.or(bins.last()).expect("there is a value").0)
            }
        }
    }
}

/// The place, from 0, of the smallest value that at least this share of `count` values does not
/// exceed.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a share from 0 to 1 of a count"
)]
fn place_of(share: f64, count: u64) -> u64 {
    // 0.1 * 30 is above 3 in binary.
    let exact = share * count as f64;
    let rank =
        if (exact - exact.round()).abs() < 1e-9 * exact { exact.round() } else { exact.ceil() };
    (rank as u64).clamp(1, count) - 1
}

/// Moves waiting values to the bins, and lets as many values wait as there are bins.
fn settle(
    waiting: &mut Vec<u32>,
    bins: &mut Vec<(u32, u64)>,
    budget: &mut Budget,
) -> Result<(), BudgetFull> {
    waiting.sort_unstable();
    add_bins(bins, &counted(waiting), budget)?;
    waiting.clear();
    budget.grow(WHAT, waiting, bins.len().max(WAITING_MIN))
}

/// The distinct bins of a sorted list, with their numbers.
fn counted(sorted: &[u32]) -> Vec<(u32, u64)> {
    sorted.chunk_by(|left, right| left == right).map(|run| (run[0], run.len() as u64)).collect()
}

fn add_bins(
    bins: &mut Vec<(u32, u64)>,
    others: &[(u32, u64)],
    budget: &mut Budget,
) -> Result<(), BudgetFull> {
    let bytes = |len: usize| len * size_of::<(u32, u64)>();
    budget.take(WHAT, bytes(bins.len() + others.len()))?;
    let mut sum = merged(bins, others);
    sum.shrink_to_fit();
    budget.give_back(bytes(bins.len() + others.len() - sum.capacity()) + bytes(bins.capacity()));
    *bins = sum;
    Ok(())
}

/// The sum of two sorted lists of bins.
fn merged(left: &[(u32, u64)], right: &[(u32, u64)]) -> Vec<(u32, u64)> {
    let mut sum: Vec<(u32, u64)> = Vec::with_capacity(left.len() + right.len());
    let (mut left, mut right) = (left.iter().peekable(), right.iter().peekable());
    loop {
        let is_left = match (left.peek(), right.peek()) {
            (None, None) => return sum,
            (Some(left), Some(right)) => left.0 <= right.0,
            (left, _) => left.is_some(),
        };
        let next = if is_left { left.next() } else { right.next() };
        let &(bin, count) = next.expect("it was looked at");
        match sum.last_mut() {
            Some(last) if last.0 == bin => last.1 += count,
            _ => sum.push((bin, count)),
        }
    }
}

/// The histograms of all groups.
#[derive(Debug, Clone, Default)]
pub(crate) struct Quantiles(Vec<Histogram>);

impl Accumulator for Quantiles {
    fn copy(&self) -> Box<dyn Accumulator> {
        Box::new(self.clone())
    }

    fn update(&mut self, update: &mut Update<'_>) -> Result<(), OperatorError> {
        self.grow(update.len, update.budget)?;
        let values = cast(update.values, &DataType::Float64)?;
        let (histograms, budget) = (&mut self.0, &mut *update.budget);
        let mut full = None;
        each(update.groups, values.as_primitive::<Float64Type>(), |group, value| {
            if full.is_none() {
                full = histograms[group].add(value, budget).err();
            }
        });
        full.map_or(Ok(()), |full| Err(full.into()))
    }

    fn grow(&mut self, len: usize, budget: &mut Budget) -> Result<(), BudgetFull> {
        grow(WHAT, &mut self.0, len, Histogram::default(), budget)
    }

    fn merge(
        &mut self,
        other: &dyn Any,
        numbers: &[u32],
        budget: &mut Budget,
    ) -> Result<(), OperatorError> {
        let Self(other) = other.downcast_ref::<Self>().expect("workers have like accumulators");
        for (histogram, &to) in other.iter().zip(numbers) {
            self.0[to as usize].merge(histogram, budget)?;
        }
        Ok(())
    }

    fn finish(&self, finish: &Finish<'_>) -> Result<ArrayRef, OperatorError> {
        let Asked::Quantile(share) = finish.asked else { unreachable!("quantiles are asked for") };
        let values = finish
            .groups
            .iter()
            // The sum has no negative zero.
            .map(|&group| finish.valid(group, || self.0[group as usize].quantile(share) + 0.0));
        Ok(Arc::new(values.collect::<Float64Array>()))
    }
}
