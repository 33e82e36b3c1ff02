//! The state of the filter, and the processing of a batch.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, BooleanArray, RecordBatch, UInt64Array};
use arrow_buffer::BooleanBuffer;
use arrow_schema::SchemaRef;
use arrow_select::filter::{filter, filter_record_batch};
use trommel_engine::batch::Payload;
use trommel_engine::operator::{Counters, Flow, NamedInputs, Operator, OperatorError, Output};
use trommel_kernels::Isa;
use trommel_kernels::sieve::{HotKeys, KEYS_MAX, MISSED_SLACK, sift};

use super::{HeavyFilter, SAMPLED};
use crate::expressions::ColumnInput;
use crate::shared::columns::column_batch;
use crate::shared::items::{Column, Items, from_native, to_native};
use crate::shared::names::secret::random_seed;
use crate::shared::rejected::BadRows;
use crate::summary::{NARROW_SHARE, SpaceSaving, Summary, hottest};

/// Number of counters of the sample; an item that is worth a place in the filter has a share of at
/// least 1/64.
const SAMPLE_COUNTERS: usize = 128;

/// Number of sampled rows before the first choice, and maximum number between two choices.
const WINDOW_MIN: u64 = 1 << 8;
const WINDOW_MAX: u64 = 1 << 15;

pub(super) struct Filtering<K: Column> {
    isa: Isa,
    rest: SchemaRef,
    counts: SchemaRef,
    item: ColumnInput,
    bad: BadRows,
    /// The hot items, at most [`KEYS_MAX`], with their codes and the numbers of rows taken out.
    hot: Vec<K>,
    codes: Vec<K::Code>,
    hits: Vec<u64>,
    sample: SpaceSaving<K>,
    places: RandomPlaces,
    /// The sampled rows of the present batch.
    sampled: Vec<u32>,
    /// Number of sampled rows at which the next choice follows.
    window: u64,
    taken_out: u64,
}

impl<K: Column> Filtering<K> {
    pub(super) fn new(
        isa: Isa,
        rest: &SchemaRef,
        (item, bad): (ColumnInput, BadRows),
        counts: &SchemaRef,
    ) -> Self {
        Self {
            isa,
            rest: SchemaRef::clone(rest),
            counts: SchemaRef::clone(counts),
            item,
            bad,
            hot: Vec::with_capacity(KEYS_MAX),
            codes: Vec::with_capacity(KEYS_MAX),
            hits: Vec::with_capacity(KEYS_MAX),
            sample: SpaceSaving::new(SAMPLE_COUNTERS).expect("the number is in range"),
            places: RandomPlaces::default(),
            sampled: Vec::new(),
            window: WINDOW_MIN,
            taken_out: 0,
        }
    }

    /// Counts one row in [`SAMPLED`]; true if the next choice is due.
    ///
    /// The sample takes one row of each block, at a pseudo-random place, so that a periodic stream
    /// cannot hide items from the sample or show the same items each time.
    fn sample(&mut self, items: &dyn Array) -> bool {
        self.sampled.clear();
        for block in (0..items.len()).step_by(SAMPLED) {
            let row = block + self.places.next_below(SAMPLED);
            if row < items.len() && items.is_valid(row) {
                self.sampled.push(u32::try_from(row).expect("batches have fewer rows"));
            }
        }
        self.sample.observe_at(K::lend(items), &self.sampled);
        self.sample.observed() >= self.window
    }

    /// Reports the counts of the hot items, and chooses new hot items by the sample.
    fn choose(&mut self, out: &mut Output) {
        self.report(out);
        let window = self.sample.observed();
        // The choice takes the lower bound of each count: with many items, the counts of cold items
        // are mostly error.
        let seen = self.sample.iter().map(|counted| (counted.count - counted.error, counted.item));
        self.hot.clear();
        self.hot.extend(hottest(window, NARROW_SHARE, seen).cloned());
        self.codes.clear();
        let secret = self.sample.secret();
        self.codes.extend(self.hot.iter().map(|item| K::code_of_key(item.key(), secret)));
        self.hits.clear();
        self.hits.resize(self.hot.len(), 0);
        self.sample = self.sample.to_empty();
        self.window = (2 * window).min(WINDOW_MAX);
    }

    fn report(&mut self, out: &mut Output) {
        let counted = || self.hot.iter().zip(&self.hits).filter(|&(_, &hits)| hits > 0);
        let items = K::collect(counted().map(|(item, _)| item));
        let columns: Vec<ArrayRef> = vec![
            from_native(items, self.counts.field(0).data_type()),
            Arc::new(UInt64Array::from_iter_values(counted().map(|(_, &hits)| hits))),
        ];
        let rows = RecordBatch::try_new(SchemaRef::clone(&self.counts), columns);
        out.send_to(HeavyFilter::COUNTS, rows.expect("built to this schema"));
        self.hits.fill(0);
    }

    /// The rows of `records` that are not hot; `items` are the items of `records`.
    fn filter(
        &mut self,
        records: RecordBatch,
        items: &ArrayRef,
    ) -> Result<RecordBatch, OperatorError> {
        if self.hot.is_empty() {
            return Ok(records);
        }
        // If the item is the only column, the missed items are the remaining rows.
        let is_plain = records.num_columns() == 1
            && items.null_count() == 0
            && self.item.column().is_some()
            && *self.rest.field(0).data_type() == K::TYPE;
        match if is_plain { self.sift(items) } else { None } {
            Some(column) => Ok(column_batch(&self.rest, column)),
            None => {
                let is_kept = self.look_up(items);
                Ok(filter_record_batch(&records, &is_kept)?)
            }
        }
    }

    /// The items that are not hot; `None` if the items are not integers.
    fn sift(&mut self, items: &dyn Array) -> Option<ArrayRef> {
        if !K::CODE_IS_ITEM {
            return None;
        }
        let mut unused = Vec::new();
        let codes = K::lend(items).codes(0..items.len(), self.sample.secret(), &mut unused);
        let mut missed = vec![K::Code::default(); items.len() + MISSED_SLACK];
        let hot = HotKeys { keys: &self.codes, hits: &mut self.hits };
        let end = sift(self.isa, hot, codes, &mut missed);
        missed.truncate(end);
        self.taken_out += (items.len() - end) as u64;
        K::from_codes(missed)
    }

    /// Marks the rows that are not hot, and counts the hot rows.
    fn look_up(&mut self, items: &dyn Array) -> BooleanArray {
        let batch = K::lend(items);
        let is_kept = BooleanBuffer::collect_bool(items.len(), |row| {
            if items.is_null(row) {
                return true;
            }
            let (item, key) = (batch.item(row), batch.key(row, self.sample.secret()));
            let hot = self.hot.iter().position(|hot| hot.is(item, key));
            if let Some(hot) = hot {
                self.hits[hot] += 1;
            }
            hot.is_none()
        });
        self.taken_out += (items.len() - is_kept.count_set_bits()) as u64;
        BooleanArray::new(is_kept, None)
    }
}

/// Pseudo-random places in blocks of rows: a linear congruential generator modulo 2^64 (Knuth, *The
/// Art of Computer Programming*, volume 2, §3.3.4, line 26).
#[derive(Debug)]
struct RandomPlaces(u64);

impl Default for RandomPlaces {
    fn default() -> Self {
        Self(random_seed())
    }
}

impl RandomPlaces {
    /// The next place below `end`, which is below 2^32.
    fn next_below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        // The high bits have the long period.
        usize::try_from(((self.0 >> 32) * end as u64) >> 32).expect("below `end`")
    }
}

impl<K: Column> Operator for Filtering<K> {
    fn is_copied(&mut self) {
        self.bad.are_of_a_copy();
    }

    fn process(
        &mut self,
        _: usize,
        input: Payload,
        out: &mut Output,
    ) -> Result<Flow, OperatorError> {
        let records = input.into_records();
        let mut faults = self.bad.faults();
        let items = to_native(&faults.values(&self.item, &records)?)?;
        self.bad.settle(0, &records, &faults)?;
        let rejected = self.bad.take_rejected();
        rejected.into_iter().for_each(|rows| out.send_to(HeavyFilter::REJECTED, rows));
        let (records, items) = match faults.usable(records.num_rows()) {
            Some(usable) => (filter_record_batch(&records, &usable)?, filter(&items, &usable)?),
            None => (records, items),
        };
        if self.sample(&items) {
            self.choose(out);
        }
        let rest = self.filter(records, &items)?;
        out.send_to(HeavyFilter::REST, rest);
        Ok(Flow::NeedInput)
    }

    fn finish(&mut self, out: &mut Output) -> Result<Flow, OperatorError> {
        self.report(out);
        Ok(Flow::NeedInput)
    }

    fn counters(&self) -> Counters {
        let mut counters = vec![("taken_out", self.taken_out)];
        counters.extend(self.bad.counters());
        counters
    }

    fn named_inputs(&self) -> NamedInputs {
        self.bad.named()
    }
}
