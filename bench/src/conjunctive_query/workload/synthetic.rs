//! Synthetic indexes: lists with uniform gaps, whose lengths are as in Zipf's law.

use std::fmt;
use std::str::FromStr;

use super::Workload;
use super::documents::Documents;
use super::draw::{Queries, query_len, unit};
use crate::runner::numbers::Numbers;

/// The length of list `r` is as `1 / (r + 1)` to this power.
const SKEW: f64 = 0.8;

/// The size of an index.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shape {
    terms: u32,
    documents: u32,
    postings: u64,
}

impl FromStr for Shape {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts: Vec<&str> = text.split(':').collect();
        let [terms, documents, postings] = parts[..] else {
            return Err("needed are TERMS:DOCUMENTS:POSTINGS".to_owned());
        };
        let number = |text: &str| text.parse::<u32>().map_err(|error| error.to_string());
        let [terms, documents] = [number(terms)?, number(documents)?];
        if terms < 16 || documents < 16 {
            return Err("an index has at least 16 terms and 16 documents".to_owned());
        }
        Ok(Self { terms, documents, postings: number(postings)?.into() })
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "synthetic-{}-{}", self.terms, self.documents)
    }
}

impl Shape {
    /// Draws lists with uniform gaps, and terms of queries uniform by the logarithm of their rank.
    pub(crate) fn workload(self, queries: usize) -> Workload {
        let mut numbers = Numbers::default();
        let lists = self.lists(&mut numbers);
        let mut drawn = Queries::default();
        let mut terms = Vec::new();
        for _ in 0..queries {
            self.query(&mut numbers, &mut terms);
            drawn.push(&terms);
        }
        let documents = Documents::of_lists(self.documents, &lists);
        Workload::new(self.to_string(), documents, lists, drawn)
    }

    #[expect(clippy::cast_possible_truncation, reason = "positions are below the documents")]
    #[expect(clippy::cast_sign_loss, reason = "positions are not negative")]
    fn lists(self, numbers: &mut Numbers) -> Vec<Vec<u32>> {
        let weight = |rank: u32| f64::from(rank + 1).powf(-SKEW);
        let norm: f64 = (0..self.terms).map(weight).sum();
        let documents = f64::from(self.documents);
        let draw = |rank| {
            let len = (self.postings as f64 / norm * weight(rank)).clamp(1.0, documents / 3.0);
            let gap = documents / len;
            let mut list = Vec::with_capacity(len as usize + 8);
            let mut position = gap * unit(numbers);
            while position < documents {
                list.push(position as u32);
                position += 1.0 + (gap - 1.0) * 2.0 * unit(numbers);
            }
            list
        };
        (0..self.terms).map(draw).collect()
    }

    /// Replaces `terms` by the distinct terms of a query.
    #[expect(clippy::cast_possible_truncation, reason = "ranks are below the terms")]
    #[expect(clippy::cast_sign_loss, reason = "ranks are not negative")]
    fn query(self, numbers: &mut Numbers, terms: &mut Vec<u32>) {
        let len = query_len(numbers);
        terms.clear();
        while terms.len() < len {
            // Frequent terms are drawn more often, as in real queries.
            let rank = (unit(numbers) * f64::from(self.terms).ln()).exp() - 1.0;
            let term = rank as u32;
            if !terms.contains(&term) {
                terms.push(term);
            }
        }
    }
}
