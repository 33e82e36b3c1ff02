//! Obviously right answers, by other means than those under test.

use std::collections::HashMap;
use std::hash::Hash;

/// Counts exactly.
#[derive(Debug, Default)]
pub(crate) struct ExactCounts<K> {
    counts: HashMap<K, u64>,
    total: u64,
}

impl<K: Hash + Eq + Clone> ExactCounts<K> {
    pub(crate) fn new() -> Self {
        Self { counts: HashMap::new(), total: 0 }
    }

    pub(crate) fn add(&mut self, item: &K, weight: u64) {
        *self.counts.entry(item.clone()).or_default() += weight;
        self.total += weight;
    }

    pub(crate) fn count(&self, item: &K) -> u64 {
        self.counts.get(item).copied().unwrap_or(0)
    }

    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&K, u64)> {
        self.counts.iter().map(|(item, &count)| (item, count))
    }
}
