//! Synthetic streams, the same on every machine for the same seed.

mod scatter;
mod zipf;

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_array::UInt32Array;
use arrow_schema::{DataType, SchemaRef};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use trommel_engine::error::{BindError, BindErrorKind};
use trommel_engine::operator::{
    BindContext, Fragment, Load, OperatorError, OperatorSpec, Output, Source, SourceFlow,
};
use trommel_engine::registry::Configured;

use crate::columns::{column_batch, column_schema};
use crate::parameters::{batch_items, check_batch, check_range};

pub use zipf::{Zipf, ZipfError};

const RATE_RANGE: RangeInclusive<f64> = 0.001..=1e10;
/// A paced source sleeps at least this long, so that a high rate comes in batches and not item by
/// item.
const PACE: Duration = Duration::from_millis(1);

/// What is generated.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum GenerateKind {
    /// Items whose frequency falls with their rank: the item of rank r has a share proportional to
    /// 1 / r^skew.
    #[default]
    Zipf,
}

/// Generates a stream of items.
///
/// # Ports
/// Out: `item` (UInt32), below `alphabet`. Which item has which rank is a permutation that the seed
/// chooses.
///
/// # Guarantees
/// The same parameters give the same stream on every machine, whatever the batch size and the rate.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Generate {
    /// What is generated.
    #[serde(default)]
    kind: GenerateKind,
    /// How many items; endless when left out.
    #[serde(default)]
    items: Option<u64>,
    /// How many distinct items there are.
    #[serde(default = "default_alphabet")]
    #[schemars(range(min = 1, max = 268_435_456))]
    alphabet: u32,
    /// Exponent of the distribution: 0 is uniform, 1 is like words in a text, above 2 a few items
    /// are nearly all.
    #[serde(default = "default_skew")]
    #[schemars(range(min = 0.0, max = 10.0))]
    skew: f64,
    /// Chooses the stream.
    #[serde(default = "default_seed")]
    seed: u64,
    /// Items a batch.
    #[serde(default = "batch_items")]
    #[schemars(range(min = 1, max = 1_048_576))]
    batch: usize,
    /// Items a second; as fast as they are taken when left out.
    #[serde(default)]
    #[schemars(range(min = 0.001, max = 1e10))]
    rate: Option<f64>,
}

fn default_alphabet() -> u32 {
    1_000_000
}

fn default_skew() -> f64 {
    1.0
}

fn default_seed() -> u64 {
    1
}

impl Generate {
    /// An endless Zipf stream over `alphabet` distinct items.
    #[must_use]
    pub fn zipf(alphabet: u32, skew: f64) -> Self {
        Self {
            kind: GenerateKind::Zipf,
            items: None,
            alphabet,
            skew,
            seed: default_seed(),
            batch: batch_items(),
            rate: None,
        }
    }

    /// Ends the stream after `items` items.
    #[must_use]
    pub fn items(mut self, items: u64) -> Self {
        self.items = Some(items);
        self
    }

    /// Chooses the stream; the default is 1.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Sets how many items a batch has: 1 to 1,048,576.
    #[must_use]
    pub fn batch(mut self, items: usize) -> Self {
        self.batch = items;
        self
    }

    /// Sends this many items a second, counted from the first call, so that a delay is made up for
    /// afterwards.
    #[must_use]
    pub fn rate(mut self, items_per_second: f64) -> Self {
        self.rate = Some(items_per_second);
        self
    }
}

impl Configured for Generate {
    const NAME: &'static str = "generate";
    const SUMMARY: &'static str = "generate a synthetic stream of items";
}

impl OperatorSpec for Generate {
    fn operator(&self) -> &'static str {
        Self::NAME
    }

    fn input_ports(&self) -> RangeInclusive<usize> {
        0..=0
    }

    fn bind(self: Box<Self>, _: &[SchemaRef], _: BindContext) -> Result<Fragment, BindError> {
        check_batch(self.batch)?;
        if let Some(rate) = self.rate {
            check_range("rate", &rate, &RATE_RANGE)?;
        }
        let GenerateKind::Zipf = self.kind;
        let zipf = Zipf::new(self.alphabet, self.skew, self.seed).map_err(|error| {
            let parameter = error.parameter();
            BindErrorKind::Other(Box::new(error)).at(parameter)
        })?;
        let schema = column_schema("item", DataType::UInt32);
        let source = ItemSource {
            zipf,
            schema: SchemaRef::clone(&schema),
            left: self.items,
            batch: self.batch,
            pace: self.rate.map(|rate| Pace { rate, started: None, sent: 0 }),
        };
        Ok(Fragment::source(Load::Heavy, source, schema))
    }
}

/// Sends what its distribution draws.
struct ItemSource {
    zipf: Zipf,
    schema: SchemaRef,
    left: Option<u64>,
    batch: usize,
    pace: Option<Pace>,
}

impl Source for ItemSource {
    fn next(&mut self, out: &mut Output) -> Result<SourceFlow, OperatorError> {
        let wanted = self.left.map_or(self.batch, |left| clamp_to_usize(left).min(self.batch));
        if wanted == 0 {
            return Ok(SourceFlow::Finished);
        }
        let count = match &mut self.pace {
            None => wanted,
            Some(pace) => match pace.take(wanted, Instant::now()) {
                Ok(count) => count,
                Err(wait) => return Ok(SourceFlow::Idle(wait)),
            },
        };
        let mut items = vec![0; count];
        self.zipf.fill(&mut items);
        if let Some(left) = &mut self.left {
            *left -= count as u64;
        }
        out.send(column_batch(&self.schema, Arc::new(UInt32Array::from(items))));
        Ok(SourceFlow::HaveOutput)
    }
}

fn clamp_to_usize(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

/// Sends items at the times they are due, counted from the first call.
struct Pace {
    rate: f64,
    started: Option<Instant>,
    sent: u64,
}

impl Pace {
    /// How many of `wanted` items to send at `now`, or how long to wait for the next.
    fn take(&mut self, wanted: usize, now: Instant) -> Result<usize, Duration> {
        let started = *self.started.get_or_insert(now);
        let elapsed = now.duration_since(started).as_secs_f64();
        let due = due_items(elapsed, self.rate).saturating_sub(self.sent);
        if due == 0 {
            #[expect(clippy::cast_precision_loss, reason = "a time to sleep need not be exact")]
            let next = (self.sent + 1) as f64 / self.rate;
            return Err(Duration::from_secs_f64((next - elapsed).max(0.0)).max(PACE));
        }
        let count = clamp_to_usize(due).min(wanted);
        self.sent += count as u64;
        Ok(count)
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "elapsed times and rates are positive, and the cast saturates"
)]
fn due_items(elapsed_s: f64, rate: f64) -> u64 {
    (elapsed_s * rate) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::cast::AsArray;
    use arrow_array::types::UInt32Type;

    fn run(spec: Generate) -> Vec<u32> {
        let mut source = crate::testing::bind_source(spec);
        let batches = crate::testing::drain_source(&mut *source).expect("generates");
        let items = batches.iter().flat_map(|b| b.column(0).as_primitive::<UInt32Type>().values());
        items.copied().collect()
    }

    #[test]
    fn the_stream_does_not_depend_on_the_batch_size() {
        let expected = run(Generate::zipf(1000, 1.0).items(10_000));
        assert_eq!(expected.len(), 10_000);
        for batch in [1, 7, 4096, 20_000] {
            assert_eq!(run(Generate::zipf(1000, 1.0).items(10_000).batch(batch)), expected);
        }
        assert_ne!(run(Generate::zipf(1000, 1.0).items(10_000).seed(2)), expected);
    }

    #[test]
    fn the_library_type_draws_the_same_stream() {
        let mut items = vec![0; 5000];
        Zipf::new(777, 1.3, 9).unwrap().fill(&mut items);
        assert_eq!(run(Generate::zipf(777, 1.3).seed(9).items(5000).batch(100)), items);
    }

    #[test]
    fn no_items_is_an_empty_stream() {
        assert!(run(Generate::zipf(10, 1.0).items(0)).is_empty());
    }

    #[test]
    fn a_pace_sends_what_is_due_and_makes_up_for_delays() {
        let start = Instant::now();
        let mut pace = Pace { rate: 100.0, started: None, sent: 0 };
        assert_eq!(pace.take(50, start), Err(Duration::from_millis(10)));
        let after = |ms| start + Duration::from_millis(ms);
        assert_eq!(pace.take(50, after(30)), Ok(3));
        assert!(pace.take(50, after(30)).is_err());
        assert_eq!(pace.take(50, after(1030)), Ok(50));
        assert_eq!(pace.take(80, after(1030)), Ok(50));
        let mut fast = Pace { rate: 1e9, started: Some(start), sent: 1000 };
        assert_eq!(fast.take(50, start + Duration::from_micros(1)), Err(PACE));
    }

    #[test]
    fn parameters_out_of_range_are_named() {
        let blamed = |spec: Generate| {
            let error = Box::new(spec).bind(&[], BindContext::new(0)).expect_err("out of range");
            error.parameter.expect("names a parameter")
        };
        assert_eq!(blamed(Generate::zipf(0, 1.0)), "alphabet");
        assert_eq!(blamed(Generate::zipf((1 << 28) + 1, 1.0)), "alphabet");
        assert_eq!(blamed(Generate::zipf(5, 10.5)), "skew");
        assert_eq!(blamed(Generate::zipf(5, f64::NAN)), "skew");
        assert_eq!(blamed(Generate::zipf(5, 1.0).batch(0)), "batch");
        assert_eq!(blamed(Generate::zipf(5, 1.0).rate(0.0)), "rate");
    }
}
