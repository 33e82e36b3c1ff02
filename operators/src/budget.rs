//! Memory budget of one operator.

use thiserror::Error;
use trommel_engine::error::BindError;
use trommel_engine::memory::{MemoryBudget, Reservation};

use crate::parameters::{check_range, refuse};

/// Bytes of a vector of `capacity` elements of `element` bytes, `len` of which are used, while `more`
/// are added. A vector that is full is copied to one of twice the size.
pub(crate) fn bytes_with(capacity: usize, len: usize, more: usize, element: usize) -> usize {
    let needed = len + more;
    let copied = if needed > capacity { needed.max(2 * capacity) } else { 0 };
    element * (capacity + copied)
}

/// Bytes that an operator may use, and bytes that it uses.
#[derive(Debug, Clone)]
pub(crate) struct Budget {
    used: usize,
    allowed: usize,
}

/// The memory of an operator would exceed its budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error(
    "not enough memory for {what}: {needed} bytes needed in all, {allowed} allowed (`memory_max`)"
)]
#[non_exhaustive]
pub struct BudgetFull {
    /// Name of the last request.
    pub what: &'static str,
    /// Bytes in use with this request.
    pub needed: usize,
    /// Bytes of the budget.
    pub allowed: usize,
}

/// Reserves the memory of a stage from that of its pipeline: `memory_max` bytes, which must be
/// there if the pipeline was given a number, or without a number three quarters of what is left, at
/// most `most` bytes.
pub(crate) fn reserve(
    memory_max: Option<usize>,
    most: usize,
    pipeline: &MemoryBudget,
) -> Result<Reservation, BindError> {
    let left = pipeline.limit().saturating_sub(pipeline.reserved());
    let bytes = memory_max.unwrap_or_else(|| (left - left / 4).min(most));
    check_range("memory_max", &bytes, &(1..=usize::MAX))?;
    pipeline.make_room(memory_max.unwrap_or(0));
    pipeline.reserve(bytes).map_err(|_| {
        let limit = pipeline.limit();
        let allowed = format!(
            "{left} of the {limit} bytes of the pipeline are left; lower the number, or raise \
             `memory_max` of the pipeline"
        );
        refuse("memory_max", bytes.to_string(), allowed)
    })
}

impl Budget {
    /// A budget of `allowed` bytes, none of them used.
    pub(crate) fn new(allowed: usize) -> Self {
        Self { used: 0, allowed }
    }

    /// Takes `bytes` for `what`, before these are allocated.
    pub(crate) fn take(&mut self, what: &'static str, bytes: usize) -> Result<(), BudgetFull> {
        let needed = self.used.saturating_add(bytes);
        if needed > self.allowed {
            return Err(BudgetFull { what, needed, allowed: self.allowed });
        }
        self.used = needed;
        Ok(())
    }

    /// Checks that `bytes` for `what` could be taken, before something grows to these.
    pub(crate) fn check(&self, what: &'static str, bytes: usize) -> Result<(), BudgetFull> {
        self.clone().take(what, bytes)
    }

    /// Gives `bytes` back that were taken before.
    pub(crate) fn give_back(&mut self, bytes: usize) {
        self.used -= bytes;
    }
}
