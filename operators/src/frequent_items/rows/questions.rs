//! Questions to a summary: of queries while it runs, and of the configuration when it emits.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{UInt32Type, UInt64Type};
use arrow_array::{Array, ArrayRef, BinaryArray, RecordBatch, StringArray};
use arrow_cast::cast;
use arrow_schema::{DataType, SchemaRef};
use serde::Deserialize;
use serde_json::Value;
use trommel_engine::query::{QueryError, Request, Response};

use super::ranked::{Unranked, estimate_row, ranked_rows};
use crate::shared::items::{Column, native_type, pack, to_native};
use crate::shared::share::Share;
use crate::summary::{Counted, HEAP_MAX, largest, top, top_borrowed};

/// The queries of the operator.
pub(crate) const QUERIES: &[&str] = &["top", "at_least", "estimate"];
/// The queries of an operator whose state is one summary.
pub(crate) const STATE_QUERIES: &[&str] = &["top", "at_least", "estimate", SNAPSHOT];

const SNAPSHOT: &str = "snapshot";

/// Minimum bytes of a counter in a state, in addition to the item.
const COUNT_BYTES: usize = 8;
/// Bytes of a row of an answer, in addition to the item.
const ROW_BYTES: usize = 20;

/// Whether the query asks for the state.
pub(crate) fn is_snapshot(request: &Request) -> bool {
    request.name() == SNAPSHOT
}

/// Checks a query for errors, in a part that sends the query on.
pub(crate) fn check<K: Column>(request: &Request, item: &DataType) -> Result<(), QueryError> {
    if !is_snapshot(request) {
        Question::<K>::read(request, STATE_QUERIES, item)?;
    }
    Ok(())
}

/// The answer with a state: one row of one column of bytes. If the items alone have too many bytes,
/// the query is refused before the state is made.
pub(crate) fn snapshot_row<'a, K: Column>(
    request: &Request,
    monitored: impl Iterator<Item = Counted<&'a K>>,
    state: impl FnOnce() -> Vec<u8>,
) -> Result<RecordBatch, QueryError> {
    check_counters(request, monitored)?;
    let state = state();
    check_bytes(request, [state.len()])?;
    let column: ArrayRef = Arc::new(BinaryArray::from_vec(vec![&state]));
    Ok(RecordBatch::try_from_iter([(SNAPSHOT, column)]).expect("one column of one row"))
}

/// Refuses an answer that is made of a copy of these counters, if their items alone have too many
/// bytes.
pub(crate) fn check_counters<'a, K: Column>(
    request: &Request,
    monitored: impl Iterator<Item = Counted<&'a K>>,
) -> Result<(), QueryError> {
    check_bytes(request, monitored.map(|counted| counted.item.column_bytes() + COUNT_BYTES))
}

/// Refuses an answer with parts of these sizes, if the answer is too large.
fn check_bytes(
    request: &Request,
    parts: impl IntoIterator<Item = usize>,
) -> Result<(), QueryError> {
    let sum = |sum: u64, bytes| sum.saturating_add(bytes as u64);
    request.check_bytes(parts.into_iter().fold(0, sum))
}

/// A query, read from its request.
pub(crate) enum Question<K> {
    /// The `n` most frequent items.
    Top(usize),
    /// The items with at least this share of the stream.
    AtLeast(Share),
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
    share: Share,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EstimateParameters {
    item: Value,
}

/// An item of this type as it is counted.
fn to_native_json(value: &Value, kind: &DataType) -> Option<Value> {
    if let DataType::Struct(fields) = kind {
        let values = value.as_array().filter(|values| values.len() == fields.len())?;
        let cells = values.iter().zip(fields).map(|(value, field)| cell(value, field.data_type()));
        return Some(pack(&cells.collect::<Option<Vec<_>>>()?).value(0).into());
    }
    if native_type(kind)? == *kind {
        return Some(value.clone());
    }
    let native = cell(value, kind)?;
    Some(match native.data_type() {
        DataType::UInt32 => native.as_primitive::<UInt32Type>().value(0).into(),
        DataType::UInt64 => native.as_primitive::<UInt64Type>().value(0).into(),
        _ => native.as_string::<i32>().value(0).into(),
    })
}

/// A value of this type as it is counted, in a column of one row.
fn cell(value: &Value, kind: &DataType) -> Option<ArrayRef> {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Number(_) | Value::Bool(_) => value.to_string(),
        _ => return None,
    };
    let text: ArrayRef = Arc::new(StringArray::from(vec![text]));
    let item = cast(&text, kind).ok().filter(|item| item.is_valid(0))?;
    to_native(&item).ok()
}

impl<K: Column> Question<K> {
    /// Reads the question of a request. `queries` lists the valid queries, for the error of an
    /// invalid query.
    pub(crate) fn read(
        request: &Request,
        queries: &'static [&'static str],
        item: &DataType,
    ) -> Result<Self, QueryError> {
        match request.name() {
            "top" => Ok(Self::Top(request.parameters::<TopParameters>()?.n)),
            "at_least" => Ok(Self::AtLeast(request.parameters::<AtLeastParameters>()?.share)),
            "estimate" => {
                let value = request.parameters::<EstimateParameters>()?.item;
                let native = to_native_json(&value, item);
                let found = native.and_then(|native| K::from_json(&native));
                found.map(Self::Estimate).ok_or_else(|| QueryError::Parameters {
                    request: request.name().to_owned(),
                    source: serde::de::Error::custom(format!("{value} is not of type {item}")),
                })
            }
            _ => Err(QueryError::unsupported(request, queries)),
        }
    }

    /// Answers from all monitored items; ranked rows have `schema`. `unmonitored` is the maximum
    /// count that an item without a counter can have.
    ///
    /// # Cost
    /// O(m) for m monitored items, and a copy of the rows of the answer. The thread that asked
    /// ranks more than a thousand rows.
    pub(crate) fn answer<'a>(
        &self,
        request: &Request,
        schema: &SchemaRef,
        mut monitored: impl Iterator<Item = Counted<&'a K>>,
        observed: u64,
        unmonitored: impl FnOnce() -> u64,
    ) -> Result<Response, QueryError> {
        let chosen = match *self {
            Self::Top(n) if n <= HEAP_MAX => {
                let ranked = top_borrowed(monitored, n);
                check_rows(request, &ranked)?;
                return Ok(Response::Answer(ranked_rows(schema, 1, ranked.into_iter())));
            }
            Self::Top(n) => largest(monitored, n),
            Self::AtLeast(share) => at_least(monitored, share, observed).collect(),
            Self::Estimate(ref item) => {
                let counted = monitored.find(|counted| counted.item.stands_for(item));
                let row = estimate_row(
                    schema,
                    &counted.map_or_else(
                        || {
                            let most = unmonitored();
                            Counted { item: item.clone(), count: most, error: most }
                        },
                        |counted| counted.cloned(),
                    ),
                );
                return Ok(Response::Answer(row));
            }
        };
        check_rows(request, &chosen)?;
        let (unranked, schema) = (Unranked::new(&chosen), SchemaRef::clone(schema));
        Ok(Response::Compute(Box::new(move || Ok(unranked.rank(&schema)))))
    }
}

/// Refuses rows that have too many bytes together.
fn check_rows<K: Column>(request: &Request, rows: &[Counted<&K>]) -> Result<(), QueryError> {
    check_bytes(request, rows.iter().map(|counted| counted.item.column_bytes() + ROW_BYTES))
}

/// The items that an operator emits: at most `n`, and only items with at least this share of the
/// stream.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Report {
    pub(crate) n: usize,
    pub(crate) share: Share,
}

impl Report {
    pub(crate) fn select<'a, K: Column>(
        &self,
        monitored: impl Iterator<Item = Counted<&'a K>>,
        observed: u64,
    ) -> Vec<Counted<K>> {
        top(at_least(monitored, self.share, observed), self.n)
    }
}

/// The items whose count is at least `share` of `observed` (the definition of Roy, Teubner, Alonso
/// 2012, §2: f >= phi N).
fn at_least<'a, K: Column>(
    monitored: impl Iterator<Item = Counted<&'a K>>,
    share: Share,
    observed: u64,
) -> impl Iterator<Item = Counted<&'a K>> {
    let least = share.least_count(observed);
    monitored.filter(move |counted| counted.count >= least)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_that_is_too_large_is_refused_before_it_is_made() {
        let request = Request::new("top");
        let limit = 1 << 30;
        check_bytes(&request, [limit - 1, 1]).unwrap();
        let error = check_bytes(&request, [limit, 1]).unwrap_err().to_string();
        let said =
            "the answer to `top` has 1073741825 bytes or more; at most 1073741824 are allowed";
        assert_eq!(error, said);
        check_bytes(&request, [usize::MAX, usize::MAX]).unwrap_err();
        // The largest answer fits the offsets of a column of text or bytes.
        assert!(i32::try_from(limit).is_ok());
        check_bytes(&request.clone().bytes_max(u64::MAX), [limit, 1]).unwrap_err();
        check_bytes(&request.clone().bytes_max(7), [7, 1]).unwrap_err();
        check_bytes(&request.clone().bytes_max(7), [7]).unwrap();
        let items = [1_u32, 2];
        let counted = items.iter().map(|item| Counted { item, count: 1, error: 0 });
        let rows = snapshot_row(&request, counted, || vec![1, 2, 3]).unwrap();
        assert_eq!(rows.num_rows(), 1);
        let text = crate::shared::items::Text::from("x".repeat(1 << 20).as_str());
        let many = std::iter::repeat_n(Counted { item: &text, count: 1, error: 0 }, 1025);
        let made = || -> Vec<u8> { unreachable!("its items are too large") };
        snapshot_row(&request, many.clone(), made).unwrap_err();
        let schema =
            crate::frequent_items::rows::ranked::ranked_schema(&crate::shared::items::Text::TYPE);
        let top = Question::Top(usize::MAX);
        let error = top.answer(&request, &schema, many, 1025, || 0).unwrap_err();
        assert!(matches!(error, QueryError::TooLarge { .. }), "{error}");
    }

    #[test]
    fn an_item_of_several_columns_is_asked_for_as_an_array() {
        let fields = [("host", DataType::Utf8), ("status", DataType::Int16)]
            .map(|(name, kind)| arrow_schema::Field::new(name, kind, false));
        let kind = DataType::Struct(fields.to_vec().into());
        let read = |item: Value| {
            let request = Request::new("estimate").with("item", item);
            Question::<crate::shared::items::Text>::read(&request, QUERIES, &kind)
        };
        let Ok(Question::Estimate(item)) = read(serde_json::json!(["a", -1])) else {
            panic!("it is an item")
        };
        let counted = Counted { item: &item, count: 3, error: 1 };
        let schema = crate::frequent_items::rows::ranked::ranked_schema(&kind);
        let row = estimate_row(&schema, &counted.cloned());
        let names: Vec<_> = row.schema().fields().iter().map(|f| f.name().clone()).collect();
        assert_eq!(names, ["host", "status", "count", "error"]);
        assert_eq!(row.column(0).as_string::<i32>().value(0), "a");
        let status = row.column(1).as_primitive::<arrow_array::types::Int16Type>();
        assert_eq!(status.value(0), -1);
        for wrong in
            [serde_json::json!("a"), serde_json::json!(["a"]), serde_json::json!(["a", "b"])]
        {
            assert!(read(wrong).is_err());
        }
    }

    /// Checks an answer, of counts of at least `least`, against a sort of all items.
    fn check_ranks<K: Column>(counted: &[Counted<K>], question: &Question<K>, least: u64) {
        let observed = 1000;
        let mut expected: Vec<_> = counted.iter().map(Counted::as_ref).collect();
        expected.sort_by(|a, b| (b.count, a.item).cmp(&(a.count, b.item)));
        match *question {
            Question::Top(n) => expected.truncate(n),
            Question::AtLeast(_) => expected.retain(|counted| counted.count >= least),
            Question::Estimate(_) => unreachable!("it has no ranks"),
        }
        let schema = crate::frequent_items::rows::ranked::ranked_schema(&K::TYPE);
        let monitored = counted.iter().map(Counted::as_ref);
        let response =
            question.answer(&Request::new("top"), &schema, monitored, observed, || 0).unwrap();
        let is_long = matches!(response, Response::Compute(_));
        assert_eq!(is_long, !matches!(question, Question::Top(0..=HEAP_MAX)));
        let expected = ranked_rows(&schema, 1, expected.into_iter());
        assert_eq!(response.compute().unwrap(), expected);
    }

    #[test]
    fn long_answers_are_ranked_as_short_ones_by_the_thread_that_asked() {
        let max = HEAP_MAX;
        for items in [0, 1, max - 1, max, max + 1, 3 * max] {
            // There are few distinct counts, so that items decide the order; the items have no
            // order.
            let numbered = |i: u32| {
                let (count, error) = (u64::from(i % 7 + 1), u64::from(i % 3));
                Counted { item: i.wrapping_mul(0x9E37_79B1), count, error }
            };
            let numbers: Vec<_> = (0..).take(items).map(numbered).collect();
            let texts: Vec<_> = numbers
                .iter()
                .map(|counted| {
                    let item = crate::shared::items::Text::from(counted.item.to_string().as_str());
                    Counted { item, count: counted.count, error: counted.error }
                })
                .collect();
            for n in [0, 1, max - 1, max, max + 1, 2 * max, 3 * max, usize::MAX] {
                check_ranks(&numbers, &Question::Top(n), 0);
                check_ranks(&texts, &Question::Top(n), 0);
            }
            for least in [0, 3, 7, 8] {
                let share = Share::new(least, 1000).unwrap();
                check_ranks(&numbers, &Question::AtLeast(share), least);
                check_ranks(&texts, &Question::AtLeast(share), least);
            }
        }
    }
}
