//! Synthetic streams, the same on every machine for the same seed.

mod scatter;
mod sets;
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
use sets::{RandomSets, SIZE_MAX, SetSource, Shape};
use zipf::SKEW_MAX;

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
    /// Sets of such items, some of them nearly the same as one before them.
    Sets,
}

/// Generates a stream of items or of sets.
///
/// # Ports
/// Out: `item` (UInt32), below `alphabet`; which item has which rank is a permutation that the seed
/// chooses. Or `id` (UInt32, from 0) and `set` (`List<UInt32>`, strictly ascending), made of such
/// items; one that is drawn twice for a set counts once in it, so that sets may be smaller than
/// their size was drawn.
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
    /// How many items, or sets; endless when left out.
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
    /// The least size of a set, 1 when left out; for `sets` only, as are `size_max`, `size_skew`
    /// and `duplicates`.
    #[serde(default)]
    #[schemars(range(min = 1, max = 65_536))]
    size_min: Option<u32>,
    /// The greatest size of a set, 20 when left out.
    #[serde(default)]
    #[schemars(range(min = 1, max = 65_536))]
    size_max: Option<u32>,
    /// How much small sets prevail: a size has a share proportional to 1 / r^size_skew if it is the
    /// r-th one from the least on; 0, uniform, when left out.
    #[serde(default)]
    #[schemars(range(min = 0.0, max = 10.0))]
    size_skew: Option<f64>,
    /// The share of sets that are copies of one of the last 1,024 sets with up to an eighth of
    /// their items drawn anew; 0.1 when left out.
    #[serde(default)]
    #[schemars(range(min = 0.0, max = 1.0))]
    duplicates: Option<f64>,
    /// Chooses the stream.
    #[serde(default = "default_seed")]
    seed: u64,
    /// Items, or sets, a batch.
    #[serde(default = "batch_items")]
    #[schemars(range(min = 1, max = 1_048_576))]
    batch: usize,
    /// Items, or sets, a second; as fast as they are taken when left out.
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
            size_min: None,
            size_max: None,
            size_skew: None,
            duplicates: None,
            seed: default_seed(),
            batch: batch_items(),
            rate: None,
        }
    }

    /// An endless stream of sets of items with that distribution.
    #[must_use]
    pub fn sets(alphabet: u32, skew: f64) -> Self {
        Self { kind: GenerateKind::Sets, ..Self::zipf(alphabet, skew) }
    }

    /// Sets the least and the greatest size of a set, 1 to 65,536; 1 to 20 if this is not called.
    #[must_use]
    pub fn sizes(mut self, sizes: RangeInclusive<u32>) -> Self {
        (self.size_min, self.size_max) = (Some(*sizes.start()), Some(*sizes.end()));
        self
    }

    /// Lets small sets prevail, as the exponent of a Zipf distribution over sizes; 0, the default,
    /// is uniform.
    #[must_use]
    pub fn size_skew(mut self, skew: f64) -> Self {
        self.size_skew = Some(skew);
        self
    }

    /// Sets the share of sets that are nearly copies of one before them, 0 to 1; 0.1 is the
    /// default.
    #[must_use]
    pub fn duplicates(mut self, share: f64) -> Self {
        self.duplicates = Some(share);
        self
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
    const SUMMARY: &'static str = "generate a synthetic stream of items or sets";
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
        let zipf = Zipf::new(self.alphabet, self.skew, self.seed).map_err(|error| {
            let parameter = error.parameter();
            BindErrorKind::Other(Box::new(error)).at(parameter)
        })?;
        let pace = self.rate.map(|rate| Pace { rate, started: None, sent: 0 });
        let quota = Quota { left: self.items, batch: self.batch, pace };
        match self.kind {
            GenerateKind::Zipf => {
                self.refuse_sizes()?;
                let schema = column_schema("item", DataType::UInt32);
                let source = ItemSource { zipf, schema: SchemaRef::clone(&schema), quota };
                Ok(Fragment::source(Load::Heavy, source, schema))
            }
            GenerateKind::Sets => {
                let source = SetSource::new(RandomSets::new(zipf, &self.shape()?), quota);
                let schema = SchemaRef::clone(source.schema());
                Ok(Fragment::source(Load::Heavy, source, schema))
            }
        }
    }
}

impl Generate {
    /// Refuses what is for sets only.
    fn refuse_sizes(&self) -> Result<(), BindError> {
        let given = [
            ("size_min", self.size_min.map(f64::from)),
            ("size_max", self.size_max.map(f64::from)),
            ("size_skew", self.size_skew),
            ("duplicates", self.duplicates),
        ];
        for (parameter, value) in given {
            if let Some(value) = value {
                let allowed = format!("`{parameter}` goes with `kind`: `sets` only");
                let value = value.to_string();
                return Err(BindErrorKind::Value { value, allowed }.at(parameter));
            }
        }
        Ok(())
    }

    fn shape(&self) -> Result<Shape, BindError> {
        let shape = Shape {
            size_min: self.size_min.unwrap_or(1),
            size_max: self.size_max.unwrap_or(20),
            size_skew: self.size_skew.unwrap_or(0.0),
            duplicates: self.duplicates.unwrap_or(0.1),
            seed: self.seed,
        };
        check_range("size_min", &shape.size_min, &(1..=SIZE_MAX))?;
        check_range("size_max", &shape.size_max, &(shape.size_min..=SIZE_MAX))?;
        check_range("size_skew", &shape.size_skew, &(0.0..=SKEW_MAX))?;
        check_range("duplicates", &shape.duplicates, &(0.0..=1.0))?;
        Ok(shape)
    }
}

/// How much is still to be sent, and when.
struct Quota {
    left: Option<u64>,
    batch: usize,
    pace: Option<Pace>,
}

impl Quota {
    /// How many to send now, at least one; or what to say instead.
    fn take(&mut self) -> Result<usize, SourceFlow> {
        let wanted = self.left.map_or(self.batch, |left| clamp_to_usize(left).min(self.batch));
        if wanted == 0 {
            return Err(SourceFlow::Finished);
        }
        let count = match &mut self.pace {
            None => wanted,
            Some(pace) => pace.take(wanted, Instant::now()).map_err(SourceFlow::Idle)?,
        };
        if let Some(left) = &mut self.left {
            *left -= count as u64;
        }
        Ok(count)
    }
}

/// Sends what its distribution draws.
struct ItemSource {
    zipf: Zipf,
    schema: SchemaRef,
    quota: Quota,
}

impl Source for ItemSource {
    fn next(&mut self, out: &mut Output) -> Result<SourceFlow, OperatorError> {
        let count = match self.quota.take() {
            Ok(count) => count,
            Err(flow) => return Ok(flow),
        };
        let mut items = vec![0; count];
        self.zipf.fill(&mut items);
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
