//! A number of bytes that one operator may use.

use thiserror::Error;

/// The memory that an operator may use, and how much of it is used.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Budget {
    used: usize,
    allowed: usize,
}

/// Something does not fit the memory that an operator may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("{what} need {needed} bytes in all; {allowed} are allowed (`memory_max`)")]
#[non_exhaustive]
pub struct BudgetFull {
    /// What was to be allocated.
    pub what: &'static str,
    /// Bytes with it.
    pub needed: usize,
    /// Bytes allowed.
    pub allowed: usize,
}

impl Budget {
    /// A budget of `allowed` bytes, none of them used.
    pub(crate) fn new(allowed: usize) -> Self {
        Self { used: 0, allowed }
    }

    /// Takes `bytes` more, before they are allocated for `what`.
    pub(crate) fn take(&mut self, what: &'static str, bytes: usize) -> Result<(), BudgetFull> {
        let needed = self.used.saturating_add(bytes);
        if needed > self.allowed {
            return Err(BudgetFull { what, needed, allowed: self.allowed });
        }
        self.used = needed;
        Ok(())
    }

    /// Gives `bytes` back that were taken.
    pub(crate) fn give_back(&mut self, bytes: usize) {
        self.used -= bytes;
    }
}
