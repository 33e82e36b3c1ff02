//! Checks of parameters that Rust programs set. A configuration has been checked against its
//! schema before.

use std::fmt::Display;
use std::ops::RangeInclusive;

use trommel_engine::error::{BindError, BindErrorKind};

/// Default items per batch: few enough for the second-level cache, and many enough to hide the
/// engine's cost of some 110 ns per stage and batch (`trommel-bench engine`).
pub(crate) const BATCH_ITEMS: usize = 16_384;
/// Maximum items per batch.
pub(crate) const BATCH_ITEMS_MAX: usize = 1 << 20;
/// Bytes of text, or of tokens of sets, after which a batch is sent before it has all its items.
pub(crate) const BATCH_BYTES: usize = 1 << 20;

/// Default of every `batch` parameter.
pub(crate) const fn batch_items() -> usize {
    BATCH_ITEMS
}

/// Error for an invalid `value` of `parameter`; `allowed` describes valid values.
pub(crate) fn refuse(
    parameter: &'static str,
    value: impl Into<String>,
    allowed: impl Into<String>,
) -> BindError {
    BindErrorKind::Value { value: value.into(), allowed: allowed.into() }.at(parameter)
}

/// Checks that the `value` of `parameter` is in the range `allowed`.
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

/// Checks a `batch` parameter: 1 to [`BATCH_ITEMS_MAX`] items.
pub(crate) fn check_batch(items: usize) -> Result<(), BindError> {
    check_range("batch", &items, &(1..=BATCH_ITEMS_MAX))
}
