//! Checks of parameters that Rust callers set: a configuration is checked against its schema before
//! it gets here.

use std::fmt::Display;
use std::ops::RangeInclusive;

use trommel_engine::error::{BindError, BindErrorKind};

/// Items a batch: small enough for the second-level cache, and large enough that the engine costs
/// nothing. It takes some 110 ns a stage and batch (`trommel-bench engine`).
pub(crate) const BATCH_ITEMS: usize = 16_384;
/// The most items that a batch may be asked to have.
pub(crate) const BATCH_ITEMS_MAX: usize = 1 << 20;
/// Text, or tokens of sets, that a batch holds before it is sent although it is not full.
pub(crate) const BATCH_BYTES: usize = 1 << 20;

/// The default of every `batch` parameter.
pub(crate) const fn batch_items() -> usize {
    BATCH_ITEMS
}

/// The error that refuses `value` for `parameter`, and says what is `allowed`.
pub(crate) fn refuse(
    parameter: &'static str,
    value: impl Into<String>,
    allowed: impl Into<String>,
) -> BindError {
    BindErrorKind::Value { value: value.into(), allowed: allowed.into() }.at(parameter)
}

/// Refuses a value of `parameter` that is outside `allowed`.
pub(crate) fn check_range<T: PartialOrd + Display>(
    parameter: &'static str,
    value: &T,
    allowed: &RangeInclusive<T>,
) -> Result<(), BindError> {
    if allowed.contains(value) {
        return Ok(());
    }
    let allowed = format!("expected {} to {}", allowed.start(), allowed.end());
    Err(refuse(parameter, value.to_string(), allowed))
}

/// Refuses a `batch` that is empty or too large.
pub(crate) fn check_batch(items: usize) -> Result<(), BindError> {
    check_range("batch", &items, &(1..=BATCH_ITEMS_MAX))
}
