//! Synthetic streams: a seed gives the same stream on every machine.

mod scatter;
mod sets;
mod vectors;
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

use crate::shared::columns::{column_batch, column_schema};
use crate::shared::parameters::{BATCH_ITEMS, Mistakes, check_range, parameters, refuse};
use sets::{RandomSets, SIZE_MAX, Shape};
use vectors::{RandomVectors, VectorSource};

pub use vectors::VectorDistribution;
pub use zipf::{Zipf, ZipfError};

/// Shortest sleep of a paced source, so that a high rate is sent in batches and not item by item.
const PACE: Duration = Duration::from_millis(1);

/// Kind of stream to generate.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum GenerateKind {
    /// Items with a Zipf distribution: the item of rank r has a share proportional to 1 / r^skew.
    #[default]
    Zipf,
    /// Sets of such items, some of them near-duplicates of earlier sets.
    Sets,
    /// Vectors.
    Vectors,
}

/// Generates a stream of items, of sets or of vectors.
///
/// # Ports
/// Out: `item` (UInt32), less than `alphabet`; the seed chooses the permutation of ranks to
/// items. Or `id` (UInt32, from 0) and `set` (`List<UInt32>`, strictly ascending) of such items.
/// An item drawn twice for a set counts once, so a set may be smaller than its drawn size. Or `id`
/// and `vector` (`FixedSizeList<Float32>`).
///
/// # Guarantees
/// The same parameters give the same stream on every machine, independent of `batch` and `rate`.
///
/// # Examples
/// ```
/// use trommel_engine::graph::Graph;
/// use trommel_engine::runtime::RunOptions;
/// use trommel_operators::{Collect, Generate};
///
/// let mut graph = Graph::new();
/// let sets = graph.add("sets", Generate::sets(1_000, 0.8).items(100).sizes(5..=10));
/// let (sink, rows) = Collect::new();
/// graph.add_after(sets, "rows", sink);
/// graph.build()?.run(RunOptions::new())?;
/// assert_eq!(rows.rows(), 100);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[parameters(own_new)]
pub struct Generate {
    /// Kind of stream: items, sets or vectors.
    #[default]
    #[setter(none)]
    kind: GenerateKind,
    /// Number of items, sets or vectors; endless when left out.
    items: Option<u64>,
    /// Number of distinct items.
    #[default(1_000_000)]
    #[schemars(range(min = 1, max = 268_435_456))]
    #[setter(none)]
    alphabet: u32,
    /// Exponent of the distribution: 0 is uniform, about 1 are words of a text; above 2, a few
    /// items make up most of the stream.
    #[default(1.0)]
    #[schemars(range(min = 0.0, max = 10.0))]
    #[setter(none)]
    skew: f64,
    /// Minimum size of a set, in items; 1 when left out. For `sets` only, as are `size_max`,
    /// `size_skew` and `duplicates`.
    #[schemars(range(min = 1, max = 65_536))]
    #[setter(none)]
    size_min: Option<u32>,
    /// Maximum size of a set, in items; 20 when left out.
    #[schemars(range(min = 1, max = 65_536))]
    #[setter(none)]
    size_max: Option<u32>,
    /// Exponent of the distribution of sizes: the r-th smallest size has a share proportional to
    /// 1 / r^size_skew. 0, uniform, when left out.
    #[range(0.0..=10.0)]
    size_skew: Option<f64>,
    /// Share of near-duplicates: copies of one of the last 1,024 sets, with up to an eighth of
    /// their items redrawn; 0.1 when left out.
    #[range(0.0..=1.0)]
    duplicates: Option<f64>,
    /// Coordinates of a vector; 8 when left out. For `vectors` only, as are `distribution` and
    /// `clusters`.
    #[range(1..=4_096)]
    #[setter(none)]
    dims: Option<u32>,
    /// Distribution of vectors; `uniform` when left out.
    #[setter(none)]
    distribution: Option<VectorDistribution>,
    /// Number of clusters; 5 when left out. For `clusters` and `correlated` only.
    #[range(1..=65_536)]
    clusters: Option<u32>,
    /// Seed of the random numbers.
    #[default(1)]
    seed: u64,
    /// Items, sets or vectors per batch.
    #[default(BATCH_ITEMS)]
    #[range(1..=1_048_576)]
    batch: usize,
    /// Items, sets or vectors per second; as fast as they are taken when left out.
    #[range(0.001..=1e10)]
    rate: Option<f64>,
}

impl Generate {
    /// An endless stream of items: a Zipf distribution with exponent `skew` over `alphabet`
    /// distinct items.
    #[must_use]
    pub fn zipf(alphabet: u32, skew: f64) -> Self {
        Self { kind: GenerateKind::Zipf, alphabet, skew, ..Self::defaults() }
    }

    /// An endless stream of sets of items with that distribution.
    #[must_use]
    pub fn sets(alphabet: u32, skew: f64) -> Self {
        Self { kind: GenerateKind::Sets, ..Self::zipf(alphabet, skew) }
    }

    /// An endless stream of vectors of `dims` coordinates, 1 to 4,096.
    #[must_use]
    pub fn vectors(dims: u32, distribution: VectorDistribution) -> Self {
        Self {
            kind: GenerateKind::Vectors,
            dims: Some(dims),
            distribution: Some(distribution),
            ..Self::defaults()
        }
    }

    /// Sets the range of set sizes, within 1 to 65,536; the default is 1 to 20.
    #[must_use]
    pub fn sizes(mut self, sizes: RangeInclusive<u32>) -> Self {
        (self.size_min, self.size_max) = (Some(*sizes.start()), Some(*sizes.end()));
        self
    }
}

impl Configured for Generate {
    const NAME: &'static str = "generate";
    const SUMMARY: &'static str = "generate a synthetic stream of items, sets or vectors";
}

impl OperatorSpec for Generate {
    fn operator(&self) -> &'static str {
        Self::NAME
    }

    fn input_ports(&self) -> RangeInclusive<usize> {
        0..=0
    }

    fn bind(self: Box<Self>, _: &[SchemaRef], context: BindContext) -> Result<Fragment, BindError> {
        let (zipf, content) = self.checked()?;
        let pace = self.rate.map(|rate| Pace { rate, started: None, sent: 0 });
        let quota = Quota { left: self.items, batch: self.batch, pace };
        Ok(match content {
            Content::Items => {
                let schema = column_schema("item", DataType::UInt32);
                let source = ItemSource { zipf, schema: SchemaRef::clone(&schema), quota };
                Fragment::source(Load::Heavy, source, schema)
            }
            Content::Sets(shape) => {
                sets::fragment(RandomSets::new(zipf, &shape), quota, context.threads)
            }
            Content::Vectors(vectors) => {
                let source = VectorSource::new(vectors, quota);
                let schema = SchemaRef::clone(source.schema());
                Fragment::source(Load::Heavy, source, schema)
            }
        })
    }
}

/// The content of the stream, with checked parameters.
enum Content {
    Items,
    Sets(Shape),
    Vectors(RandomVectors),
}

impl Generate {
    /// Checks all parameters.
    fn checked(&self) -> Result<(Zipf, Content), BindError> {
        let mut mistakes = Mistakes::default();
        let are_in_range = mistakes.check(self.check_ranges());
        let zipf = self.items_of(self.alphabet);
        if zipf.as_ref().is_err_and(|mistake| mistake.parameter != Some("skew")) {
            // An invalid alphabet leaves the exponent unchecked, so the check uses a valid
            // alphabet.
            mistakes.check(self.items_of(1));
        }
        let zipf = mistakes.check(zipf);
        mistakes.check(self.check_kind());
        let content = match self.kind {
            GenerateKind::Zipf => Some(Content::Items),
            GenerateKind::Sets => mistakes.check(self.shape()).map(Content::Sets),
            GenerateKind::Vectors => are_in_range.map(|()| Content::Vectors(self.random_vectors())),
        };
        mistakes.all(|| Some((zipf?, content?)))
    }

    /// The generator of items over an alphabet of `alphabet` items.
    fn items_of(&self, alphabet: u32) -> Result<Zipf, BindError> {
        Zipf::new(alphabet, self.skew, self.seed).map_err(|error| {
            let parameter = error.parameter();
            BindErrorKind::Other(Box::new(error)).at(parameter)
        })
    }

    /// Refuses parameters that belong to another kind of stream.
    fn check_kind(&self) -> Result<(), BindError> {
        let (sets, vectors) = ((GenerateKind::Sets, "sets"), (GenerateKind::Vectors, "vectors"));
        let given = [
            ("size_min", self.size_min.is_some(), sets),
            ("size_max", self.size_max.is_some(), sets),
            ("size_skew", self.size_skew.is_some(), sets),
            ("duplicates", self.duplicates.is_some(), sets),
            ("dims", self.dims.is_some(), vectors),
            ("distribution", self.distribution.is_some(), vectors),
            ("clusters", self.clusters.is_some(), vectors),
        ];
        let mut mistakes = Mistakes::default();
        for (parameter, is_given, (kind, name)) in given {
            mistakes.refuse(is_given && self.kind != kind, || {
                let allowed = format!("`{parameter}` is for `kind`: `{name}` only");
                refuse(parameter, "a value", allowed)
            });
        }
        let is_uniform = self.distribution.unwrap_or_default() == VectorDistribution::Uniform;
        let is_clustered = self.kind == GenerateKind::Vectors && self.clusters.is_some();
        mistakes.refuse(is_uniform && is_clustered, || {
            let allowed = "`clusters` is for `distribution` `clusters` or `correlated` only";
            refuse("clusters", "a value", allowed)
        });
        mistakes.none()
    }

    /// Generator of vectors. The parameters have been checked.
    fn random_vectors(&self) -> RandomVectors {
        let (dims, clusters) = (self.dims.unwrap_or(8), self.clusters.unwrap_or(5));
        RandomVectors::new(dims, self.distribution.unwrap_or_default(), clusters, self.seed)
    }

    /// Checked parameters of sets.
    fn shape(&self) -> Result<Shape, BindError> {
        let shape = Shape {
            size_min: self.size_min.unwrap_or(1),
            size_max: self.size_max.unwrap_or(20),
            size_skew: self.size_skew.unwrap_or(0.0),
            duplicates: self.duplicates.unwrap_or(0.1),
            seed: self.seed,
        };
        let mut mistakes = Mistakes::default();
        let min = mistakes.check(check_range("size_min", &shape.size_min, &(1..=SIZE_MAX)));
        // An invalid minimum is no bound of the maximum.
        let least = min.map_or(1, |()| shape.size_min);
        mistakes.check(check_range("size_max", &shape.size_max, &(least..=SIZE_MAX)));
        mistakes.all(|| Some(shape))
    }
}

/// Remaining items and their schedule.
struct Quota {
    left: Option<u64>,
    batch: usize,
    pace: Option<Pace>,
}

impl Quota {
    /// Number of items to send now, at least 1; otherwise the answer of the source.
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

/// Source of items.
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
        // Each batch has a new vector, which becomes the Arrow column without a copy.
        let mut items = vec![0; count];
        self.zipf.fill(&mut items);
        out.send(column_batch(&self.schema, Arc::new(UInt32Array::from(items))));
        Ok(SourceFlow::HaveOutput)
    }
}

fn clamp_to_usize(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

/// Schedule of a constant rate, counted from the first call.
struct Pace {
    rate: f64,
    started: Option<Instant>,
    sent: u64,
}

impl Pace {
    /// Number of due items at `now`, up to `wanted`, or the time until the next item is due.
    fn take(&mut self, wanted: usize, now: Instant) -> Result<usize, Duration> {
        let started = *self.started.get_or_insert(now);
        let elapsed = now.duration_since(started).as_secs_f64();
        // The due items are counted from the start, so that rounding does not add up.
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
