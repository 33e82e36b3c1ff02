//! The share of a busy thread's time that queries may take.
//!
//! Work earns credit, and an answer spends credit. A fresh query is answered only while the credit
//! is not negative. So over time, queries take at most one part in [`SHARE`] + 1 of a busy thread,
//! whatever the number of callers that ask again at once. A thread without work forgives its debt,
//! because its time is free.

use std::sync::atomic::{AtomicI64, Ordering};

use crossbeam_utils::CachePadded;

/// Units of work that earn one unit of time for queries: queries get at most a fifth.
const SHARE: i64 = 4;
/// Maximum credit of a thread, so that a long time without queries is not followed by a burst.
const CREDIT_NS_MAX: i64 = 2_000_000;

/// The credit of one thread. This thread writes the credit; threads that forward queries to this
/// thread read the credit.
#[derive(Debug, Default)]
pub(crate) struct Allowance {
    /// The credit changes with every call, so the number has a cache line of its own.
    credit_ns: CachePadded<AtomicI64>,
}

impl Allowance {
    /// Adds the credit for `busy_ns` of work.
    pub(crate) fn earn(&self, busy_ns: u64) {
        let earned = i64::try_from(busy_ns).unwrap_or(i64::MAX) / SHARE;
        self.set(self.get().saturating_add(earned).min(CREDIT_NS_MAX));
    }

    /// Subtracts the time of an answer.
    pub(crate) fn spend(&self, answer_ns: u64) {
        self.set(self.get().saturating_sub(i64::try_from(answer_ns).unwrap_or(i64::MAX)));
    }

    /// Forgives the debt.
    pub(crate) fn forgive(&self) {
        self.set(self.get().max(0));
    }

    /// Whether a query may be answered now.
    pub(crate) fn is_open(&self) -> bool {
        self.get() >= 0
    }

    fn get(&self) -> i64 {
        // Relaxed: the credit has one writer, and an old value is good enough for other readers.
        self.credit_ns.load(Ordering::Relaxed)
    }

    fn set(&self, credit_ns: i64) {
        self.credit_ns.store(credit_ns, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_take_a_fifth_of_a_busy_thread_at_most() {
        let allowance = Allowance::default();
        let (mut work_ns, mut answers_ns) = (0_u64, 0_u64);
        for _ in 0..10_000 {
            allowance.earn(10_000);
            work_ns += 10_000;
            while allowance.is_open() {
                allowance.spend(114_000);
                answers_ns += 114_000;
            }
        }
        let share = answers_ns * 1_000 / (answers_ns + work_ns);
        assert!((190..=202).contains(&share), "{share} in a thousand");
    }

    #[test]
    fn debts_are_forgiven_and_credit_is_limited() {
        let allowance = Allowance::default();
        allowance.spend(u64::MAX);
        assert!(!allowance.is_open());
        allowance.forgive();
        assert!(allowance.is_open());
        allowance.earn(u64::MAX);
        allowance.spend(u64::try_from(CREDIT_NS_MAX).unwrap() + 1);
        assert!(!allowance.is_open());
    }
}
