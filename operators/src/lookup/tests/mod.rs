//! The operator against an oracle: rows of the test in a `BTreeMap`.

mod errors;
mod limits;
mod oracle;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow_schema::SchemaRef;
use trommel_engine::batch::{Batch, Origin, Payload};
use trommel_engine::operator::{Counters, Ending, Flow, Operator, OperatorError, Output};

use super::{Duplicates, Lookup, LookupMode};
use crate::testing::bind_operator_of;

const MODES: [LookupMode; 4] =
    [LookupMode::Left, LookupMode::Inner, LookupMode::Anti, LookupMode::Semi];
const DUPLICATES: [Duplicates; 4] =
    [Duplicates::Fail, Duplicates::First, Duplicates::Last, Duplicates::All];

/// A call of the operator by the runtime.
#[derive(Clone, Debug)]
enum Event {
    Stream(RecordBatch),
    Table(RecordBatch),
    TableEnds(Ending),
    /// The runtime has no input for the operator.
    Pause,
}

/// The batches that the operator sends to its first output, and to `rejected`, and its counters.
#[derive(Debug, Default)]
struct Sent {
    rows: Vec<RecordBatch>,
    rejected: Vec<RecordBatch>,
    counters: Counters,
}

impl Sent {
    fn counter(&self, name: &str) -> Option<u64> {
        self.counters.iter().find(|(other, _)| *other == name).map(|(_, count)| *count)
    }
}

/// Calls the operator as the runtime does.
fn run(
    spec: Lookup,
    schemas: &[SchemaRef; 2],
    events: impl IntoIterator<Item = Event>,
) -> Result<Sent, OperatorError> {
    let mut operator = bind_operator_of(spec, schemas);
    let (mut out, mut sent) = (Output::new(), Sent::default());
    let origin = Origin { sequence: 0, entered: Instant::now() };
    for event in events {
        let flow = match event {
            Event::Stream(records) => {
                operator.process(0, Payload::Batch(Batch { records, origin }), &mut out)?
            }
            Event::Table(records) => {
                operator.process(1, Payload::Batch(Batch { records, origin }), &mut out)?
            }
            Event::TableEnds(ending) => {
                operator.port_ended(1, ending);
                Flow::NeedInput
            }
            Event::Pause => match operator.wake_at() {
                Some(time) => operator.wake(time, &mut out)?,
                None => Flow::NeedInput,
            },
        };
        take_all(&mut *operator, flow, &mut out, &mut sent)?;
    }
    operator.port_ended(0, Ending::Whole);
    let flow = operator.finish(&mut out)?;
    take_all(&mut *operator, flow, &mut out, &mut sent)?;
    sent.counters = operator.counters();
    Ok(sent)
}

/// Takes what the operator sends until it needs input.
fn take_all(
    operator: &mut dyn Operator,
    mut flow: Flow,
    out: &mut Output,
    sent: &mut Sent,
) -> Result<(), OperatorError> {
    loop {
        for (port, payload) in out.drain_sent() {
            let batches = if port == 0 { &mut sent.rows } else { &mut sent.rejected };
            batches.push(payload.into_records());
        }
        if flow == Flow::NeedInput {
            return Ok(());
        }
        assert_eq!(flow, Flow::HaveOutput);
        flow = operator.resume(out)?;
    }
}

fn batch_of(columns: Vec<(String, ArrayRef)>) -> RecordBatch {
    let columns = columns.into_iter().map(|(name, column)| (name, column, true));
    RecordBatch::try_from_iter_with_nullable(columns).unwrap()
}

/// A batch of the stream: the columns of the key as `k0`, `k1` and so on, and `n`.
fn stream_batch(keys: Vec<ArrayRef>, numbers: Vec<i64>) -> RecordBatch {
    let keys = keys.into_iter().enumerate().map(|(place, key)| (format!("k{place}"), key));
    let numbers: ArrayRef = Arc::new(Int64Array::from(numbers));
    batch_of(keys.chain([("n".to_owned(), numbers)]).collect())
}

/// A batch of the table: the columns of the key as `t0`, `t1` and so on, `at`, and `text`.
fn table_batch(keys: Vec<ArrayRef>, numbers: Vec<i64>) -> RecordBatch {
    let keys = keys.into_iter().enumerate().map(|(place, key)| (format!("t{place}"), key));
    let texts: StringArray = numbers.iter().map(|&number| text_of(number)).collect();
    let columns: [(String, ArrayRef); 2] = [
        ("at".to_owned(), Arc::new(Int64Array::from(numbers))),
        ("text".to_owned(), Arc::new(texts)),
    ];
    batch_of(keys.chain(columns).collect())
}

/// The text of a row of the table.
fn text_of(number: i64) -> Option<String> {
    (number % 5 > 0).then(|| format!("row {number}"))
}

/// The numbers of rows of the stream and of the table that leave together, found by a map.
fn by_hand(
    stream: &[Option<i64>],
    table: &[Option<i64>],
    mode: LookupMode,
    duplicates: Duplicates,
) -> Vec<(i64, Option<i64>)> {
    let mut rows = BTreeMap::<i64, Vec<i64>>::new();
    for (number, key) in (0..).zip(table) {
        if let Some(key) = key {
            rows.entry(*key).or_default().push(number);
        }
    }
    let mut pairs = Vec::new();
    for (number, key) in (0..).zip(stream) {
        let found = key.and_then(|key| rows.get(&key));
        match (mode, found) {
            (LookupMode::Left, None) | (LookupMode::Anti, None) | (LookupMode::Semi, Some(_)) => {
                pairs.push((number, None));
            }
            (LookupMode::Left | LookupMode::Inner, Some(found)) => match duplicates {
                Duplicates::Fail => {
                    assert_eq!(found.len(), 1);
                    pairs.push((number, Some(found[0])));
                }
                Duplicates::First => pairs.push((number, found.first().copied())),
                Duplicates::Last => pairs.push((number, found.last().copied())),
                Duplicates::All => pairs.extend(found.iter().map(|row| (number, Some(*row)))),
            },
            _ => {}
        }
    }
    pairs
}

/// The numbers of rows that left together.
fn pairs_of(batches: &[RecordBatch]) -> Vec<(i64, Option<i64>)> {
    let pairs = batches.iter().flat_map(|batch| {
        let column = |name: &str| batch.column_by_name(name);
        let own = column("n").unwrap().as_primitive::<Int64Type>().values().to_vec();
        let Some(rows) = column("at") else {
            return own.into_iter().map(|number| (number, None)).collect::<Vec<_>>();
        };
        let rows: Vec<Option<i64>> = rows.as_primitive::<Int64Type>().iter().collect();
        let texts = column("text").unwrap().as_string::<i32>().iter();
        for (row, text) in rows.iter().zip(texts) {
            assert_eq!(text.map(str::to_owned), row.and_then(text_of));
        }
        own.into_iter().zip(rows).collect()
    });
    pairs.collect()
}

/// A column of integers.
fn integers(keys: &[Option<i64>]) -> ArrayRef {
    Arc::new(keys.iter().copied().collect::<Int64Array>())
}

/// A lookup of the key `k0` in the column `t0`.
fn lookup() -> Lookup {
    Lookup::new("k0").table_key("t0")
}

/// The columns of a stream and of a table of integers.
fn schemas() -> [SchemaRef; 2] {
    let none = || vec![integers(&[])];
    [stream_batch(none(), Vec::new()).schema(), table_batch(none(), Vec::new()).schema()]
}

fn numbers_from(begin: usize, len: usize) -> Vec<i64> {
    (i64::try_from(begin).unwrap()..).take(len).collect()
}

/// The events of a stream.
fn stream_of(keys: &[Option<i64>], cut: usize) -> Vec<Event> {
    let batches = keys.chunks(cut).enumerate().map(|(place, keys)| {
        let numbers = numbers_from(place * cut, keys.len());
        Event::Stream(stream_batch(vec![integers(keys)], numbers))
    });
    batches.collect()
}

/// The events of a table, with its end.
fn table_of(keys: &[Option<i64>], cut: usize) -> Vec<Event> {
    let batches = keys.chunks(cut).enumerate().map(|(place, keys)| {
        let numbers = numbers_from(place * cut, keys.len());
        Event::Table(table_batch(vec![integers(keys)], numbers))
    });
    batches.chain([Event::TableEnds(Ending::Whole)]).collect()
}

fn some(keys: impl IntoIterator<Item = i64>) -> Vec<Option<i64>> {
    keys.into_iter().map(Some).collect()
}
