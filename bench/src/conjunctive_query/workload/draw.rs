//! Random lengths of queries.

use crate::runner::numbers::Numbers;

/// Percent of queries of two terms, three, and so on, as in the paper's queries of 2 to 8.
const TERMS_OF_QUERIES: [usize; 7] = [30, 25, 18, 11, 8, 5, 3];

/// Queries laid end to end.
pub(super) struct Queries {
    pub(super) offsets: Vec<u32>,
    pub(super) terms: Vec<u32>,
}

impl Default for Queries {
    fn default() -> Self {
        Self { offsets: vec![0], terms: Vec::new() }
    }
}

impl Queries {
    /// Adds a query.
    pub(super) fn push(&mut self, terms: &[u32]) {
        self.terms.extend_from_slice(terms);
        self.offsets.push(u32::try_from(self.terms.len()).expect("queries are few"));
    }
}

/// A number between 0 and 1.
pub(super) fn unit(numbers: &mut Numbers) -> f64 {
    numbers.below(1 << 24) as f64 / f64::from(1 << 24)
}

/// A number from `least` to `most`, uniform by its logarithm.
pub(super) fn by_logarithm(numbers: &mut Numbers, least: f64, most: f64) -> f64 {
    least * (unit(numbers) * (most / least).ln()).exp()
}

/// The number of terms of a query: 2 to 8.
pub(super) fn query_len(numbers: &mut Numbers) -> usize {
    let mut drawn = numbers.below(100);
    let mut len = 2;
    for share in TERMS_OF_QUERIES {
        if drawn < share {
            break;
        }
        drawn -= share;
        len += 1;
    }
    len
}
