//! What is asked of a summary: by queries while it runs, and by the configuration when it emits.

use std::sync::Arc;

use arrow_array::{ArrayRef, BinaryArray, RecordBatch};
use arrow_schema::SchemaRef;
use serde::Deserialize;
use serde_json::Value;
use trommel_engine::query::{QueryError, Request};

use super::column::{Column, estimate_row, ranked_rows};
use super::{Counted, top};

/// The queries of the operator.
pub(super) const QUERIES: &[&str] = &["top", "at_least", "estimate"];
/// Those where the state is one summary.
pub(super) const STATE_QUERIES: &[&str] = &["top", "at_least", "estimate", SNAPSHOT];

const SNAPSHOT: &str = "snapshot";

/// Whether the state is asked for.
pub(super) fn is_snapshot(request: &Request) -> bool {
    request.name() == SNAPSHOT
}

/// The answer: one row of one column of bytes.
pub(super) fn snapshot_row(state: Vec<u8>) -> RecordBatch {
    let column: ArrayRef = Arc::new(BinaryArray::from_vec(vec![&state]));
    RecordBatch::try_from_iter([(SNAPSHOT, column)]).expect("one column of one row")
}

/// A query, read from its request.
pub(super) enum Question<K> {
    /// The `n` most frequent items.
    Top(usize),
    /// The items with at least this share of the stream.
    AtLeast(f64),
    /// One item.
    Estimate(K),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TopParameters {
    #[serde(default = "ten")]
    n: usize,
}

fn ten() -> usize {
    10
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AtLeastParameters {
    share: f64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EstimateParameters {
    item: Value,
}

impl<K: Column> Question<K> {
    /// `queries` are those that there are, for whoever asks for another.
    pub(super) fn read(
        request: &Request,
        queries: &'static [&'static str],
    ) -> Result<Self, QueryError> {
        match request.name() {
            "top" => Ok(Self::Top(request.parameters::<TopParameters>()?.n)),
            "at_least" => Ok(Self::AtLeast(request.parameters::<AtLeastParameters>()?.share)),
            "estimate" => {
                let item = request.parameters::<EstimateParameters>()?.item;
                K::from_json(&item).map(Self::Estimate).ok_or_else(|| QueryError::Parameters {
                    request: request.name().to_owned(),
                    source: serde::de::Error::custom(format!("{item} is not of type {}", K::TYPE)),
                })
            }
            _ => Err(QueryError::unsupported(request, queries)),
        }
    }

    /// Answers from all monitored items, in rows of `schema` where they are ranked. `unmonitored`
    /// is the most that any other item can have been seen.
    pub(super) fn answer<'a>(
        &self,
        schema: &SchemaRef,
        mut monitored: impl Iterator<Item = Counted<&'a K>>,
        observed: u64,
        unmonitored: impl FnOnce() -> u64,
    ) -> RecordBatch {
        match self {
            Self::Top(n) => ranked_rows(schema, &top(monitored, *n)),
            Self::AtLeast(share) => {
                let report = Report { n: usize::MAX, share: *share };
                ranked_rows(schema, &report.select(monitored, observed))
            }
            Self::Estimate(item) => {
                let counted = monitored.find(|counted| counted.item.stands_for(item));
                estimate_row(&counted.map_or_else(
                    || {
                        let most = unmonitored();
                        Counted { item: item.clone(), count: most, error: most }
                    },
                    |counted| counted.cloned(),
                ))
            }
        }
    }
}

/// Which items an operator emits: at most `n`, and only those with at least this share of the
/// stream.
#[derive(Debug, Clone, Copy)]
pub(super) struct Report {
    pub(super) n: usize,
    pub(super) share: f64,
}

impl Report {
    #[expect(
        clippy::cast_precision_loss,
        reason = "a share is a float; counts above 2^53 round by less than 2^-53 of themselves"
    )]
    pub(super) fn select<'a, K: Column>(
        &self,
        monitored: impl Iterator<Item = Counted<&'a K>>,
        observed: u64,
    ) -> Vec<Counted<K>> {
        let least = self.share * observed as f64;
        top(monitored.filter(|counted| counted.count as f64 >= least), self.n)
    }
}
