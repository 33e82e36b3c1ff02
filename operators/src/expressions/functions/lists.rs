//! Functions of lists, and of texts that become lists.

use std::sync::Arc;

use arrow_array::builder::{ListBuilder, StringBuilder};
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef, BooleanArray, Int64Array, ListArray, StringArray, UInt32Array};
use arrow_buffer::OffsetBuffer;
use arrow_cast::cast;
use arrow_ord::ord::make_comparator;
use arrow_schema::{DataType, SortOptions};
use arrow_select::take::take;
use arrow_string::length::length;
use trommel_kernels::Isa;

use super::super::error::{Reason, said};
use super::{Argument, Bound, Refusal, constant_integer, integer_type, text, text_type};
use crate::expressions::compile::types::{common, is_text};
use crate::expressions::evaluate::compare::{Comparison, canonical_floats};
use crate::expressions::evaluate::value::{Texts, Value};
use crate::shared::tokens::{TextPosition, Token, TokenSink, Tokenizer, Words};

/// Maximum characters of a q-gram.
const Q_MAX: i64 = 255;

/// The type of the values of a list.
fn item_of<'a>(arguments: &'a [Argument<'_>], number: usize) -> Result<&'a DataType, Refusal> {
    match arguments[number].data_type {
        DataType::List(item) => Ok(item.data_type()),
        found => Err(Refusal::new(number, format!("expected a list, and this is {found}"))),
    }
}

pub(super) fn len(arguments: &[Argument<'_>]) -> Result<Bound, Refusal> {
    let kind = match arguments[0].data_type {
        DataType::List(_) => arguments[0].data_type.clone(),
        _ => text_type(arguments, 0).map_err(|_| {
            let found = arguments[0].data_type;
            Refusal::new(0, format!("expected a text or a list, and this is {found}"))
        })?,
    };
    let work = |values: &[Value], _: usize| {
        let array = values[0].array();
        if let Some(texts) = array.as_string_opt::<i32>() {
            let count = |text: &str| i64::try_from(text.chars().count()).unwrap_or(i64::MAX);
            return Ok(Arc::new(texts.iter().map(|t| t.map(count)).collect::<Int64Array>()) as _);
        }
        let lengths = length(array).map_err(|error| said(&error))?;
        cast(&lengths, &DataType::Int64).map_err(|error| said(&error))
    };
    Ok(Bound::new(vec![kind], DataType::Int64, 2, work))
}

pub(super) fn contains(arguments: &[Argument<'_>]) -> Result<Bound, Refusal> {
    if is_text(arguments[0].data_type) {
        return text::contains(arguments);
    }
    let item = item_of(arguments, 0)?;
    let value = arguments[1].data_type;
    let Some(met) = common(item, value).filter(|met| !met.is_nested()) else {
        let reason = format!("this is {value}, and the list has {item}");
        return Err(Refusal::new(1, reason));
    };
    let met = if met == DataType::Null { DataType::Boolean } else { met };
    let work = |values: &[Value], rows: usize| {
        let lists = values[0].clone().into_array(rows);
        let lists = lists.as_list::<i32>();
        let wanted = values[1].clone().into_array(rows);
        // `rows_of` has, for each value of a list, the row whose wanted value is compared.
        let row = |row: usize| u32::try_from(row).expect("a batch has fewer rows than 2^32");
        let offsets = lists.value_offsets();
        let rows_of: Vec<u32> = (0..rows)
            .flat_map(|at| {
                let len = (offsets[at + 1] - offsets[at]).unsigned_abs() as usize;
                std::iter::repeat_n(row(at), len)
            })
            .collect();
        let begin = offsets[0].unsigned_abs() as usize;
        let inside = lists.values().slice(begin, rows_of.len());
        let beside = take(&wanted, &UInt32Array::from(rows_of), None).map_err(|e| said(&e))?;
        let equal = Comparison::Equal
            .apply(&Value::Rows(inside), &Value::Rows(beside))
            .map_err(|error| said(&error))?;
        let found = (0..rows).map(|at| {
            let mut places = offsets[at] - offsets[0]..offsets[at + 1] - offsets[0];
            // An empty list contains no value, not even an unknown value.
            if lists.is_null(at) || (wanted.is_null(at) && !places.is_empty()) {
                return None;
            }
            Some(places.any(|place| {
                let place = place.unsigned_abs() as usize;
                equal.is_valid(place) && equal.value(place)
            }))
        });
        Ok(Arc::new(found.collect::<BooleanArray>()) as ArrayRef)
    };
    let arguments = vec![DataType::new_list(met.clone(), true), met];
    Ok(Bound::new(arguments, DataType::Boolean, 10, work))
}

/// The values of a list without duplicates and nulls, in the order of first occurrence.
pub(super) fn distinct(arguments: &[Argument<'_>]) -> Result<Bound, Refusal> {
    let item = item_of(arguments, 0)?.clone();
    if item.is_nested() {
        return Err(Refusal::new(0, format!("values of type {item} are not compared")));
    }
    let kind = DataType::new_list(item, true);
    let DataType::List(field) = kind.clone() else { unreachable!("made so") };
    let work = move |values: &[Value], _: usize| {
        let lists = values[0].array().as_list::<i32>();
        let inside = canonical_floats(lists.values());
        let compare = make_comparator(&inside, &inside, SortOptions::default());
        let compare = compare.map_err(|error| said(&error))?;
        let (mut kept, mut lens) = (Vec::new(), Vec::with_capacity(lists.len()));
        let mut places: Vec<usize> = Vec::new();
        for row in 0..lists.len() {
            let begin = kept.len();
            if lists.is_valid(row) {
                let ends = &lists.value_offsets()[row..row + 2];
                places.clear();
                let all = ends[0].unsigned_abs() as usize..ends[1].unsigned_abs() as usize;
                places.extend(all.filter(|&place| inside.is_valid(place)));
                // Equal values stand together, and the earliest value of the list comes first.
                places.sort_by(|&a, &b| compare(a, b).then(a.cmp(&b)));
                places.dedup_by(|a, b| compare(*a, *b).is_eq());
                places.sort_unstable();
                let place = |&place: &usize| u32::try_from(place).expect("offsets have 31 bits");
                kept.extend(places.iter().map(place));
            }
            lens.push(kept.len() - begin);
        }
        let values = take(lists.values(), &UInt32Array::from(kept), None);
        let values = values.map_err(|error| said(&error))?;
        let offsets = OffsetBuffer::from_lengths(lens);
        let nulls = lists.nulls().cloned();
        Ok(Arc::new(ListArray::new(Arc::clone(&field), offsets, values, nulls)) as ArrayRef)
    };
    Ok(Bound::new(vec![kind.clone()], kind, 20, work))
}

/// The value at a place of a list, or the character at a place of a text. The place counts from 1,
/// or from the end if negative; the result is null if the place does not exist.
pub(super) fn extract(arguments: &[Argument<'_>]) -> Result<Bound, Refusal> {
    let number = integer_type(arguments, 1)?;
    if is_text(arguments[0].data_type) {
        let work = |values: &[Value], rows: usize| {
            let texts = Texts::new(&values[0]);
            let numbers = values[1].array().as_primitive::<Int64Type>();
            let found = (0..rows).map(|row| {
                let at = values[1].place(row);
                let text = texts.get(row).filter(|_| numbers.is_valid(at))?;
                let count = text.chars().count();
                let place = place_of(numbers.value(at), count);
                let char = place.and_then(|place| text.chars().nth(place));
                Some(char.map_or_else(String::new, String::from))
            });
            Ok(Arc::new(found.collect::<StringArray>()) as ArrayRef)
        };
        return Ok(Bound::new(vec![DataType::Utf8, number], DataType::Utf8, 8, work));
    }
    let item = item_of(arguments, 0)?.clone();
    let work = |values: &[Value], rows: usize| {
        let lists = values[0].array().as_list::<i32>();
        let numbers = values[1].array().as_primitive::<Int64Type>();
        let places = (0..rows).map(|row| {
            let (list, at) = (values[0].place(row), values[1].place(row));
            if lists.is_null(list) || numbers.is_null(at) {
                return None;
            }
            let [begin, end] = [list, list + 1].map(|at| lists.value_offsets()[at].unsigned_abs());
            let place = place_of(numbers.value(at), (end - begin) as usize)?;
            u32::try_from(place).ok().map(|place| begin + place)
        });
        let places: UInt32Array = places.collect();
        take(lists.values(), &places, None).map_err(|error| said(&error))
    };
    let list = arguments[0].data_type.clone();
    Ok(Bound::new(vec![list, number], item, 4, work))
}

/// Place, from 0, of the value `number` among `count` values.
fn place_of(number: i64, count: usize) -> Option<usize> {
    if number > 0 {
        usize::try_from(number - 1).ok().filter(|place| *place < count)
    } else {
        let back = usize::try_from(number.unsigned_abs()).ok()?;
        if back == 0 { None } else { count.checked_sub(back) }
    }
}

/// The words of a text in lower case, as `tokenize` cuts them.
pub(super) fn words(arguments: &[Argument<'_>]) -> Result<Bound, Refusal> {
    let isa = Isa::selected().map_err(|error| Refusal::new(0, error.to_string()))?;
    tokens(arguments, vec![text_type(arguments, 0)?], move || Tokenizer::words(isa))
}

/// The runs of `q` characters of a text, as `tokenize` cuts them.
pub(super) fn qgrams(arguments: &[Argument<'_>]) -> Result<Bound, Refusal> {
    let q = constant_integer(arguments, 1)?.filter(|q| (1..=Q_MAX).contains(q));
    let q = q.and_then(|q| usize::try_from(q).ok());
    let q = q.ok_or_else(|| Refusal::new(1, format!("expected 1 to {Q_MAX} characters")))?;
    let types = vec![text_type(arguments, 0)?, DataType::Int64];
    tokens(arguments, types, move || Tokenizer::Qgrams(q))
}

fn tokens(
    _: &[Argument<'_>],
    types: Vec<DataType>,
    tokenizer: impl Fn() -> Tokenizer + Send + Sync + 'static,
) -> Result<Bound, Refusal> {
    let list = DataType::new_list(DataType::Utf8, true);
    let work = move |values: &[Value], _: usize| {
        let texts = values[0].array().as_string::<i32>();
        let mut lists = Lists(ListBuilder::new(StringBuilder::new()));
        tokenizer().tokens_of_rows(texts, TextPosition::default(), &mut lists);
        let lists = lists.0.finish();
        let (field, offsets, values, _) = lists.into_parts();
        let lists = ListArray::new(field, offsets, values, texts.nulls().cloned());
        Ok::<_, Reason>(Arc::new(lists) as ArrayRef)
    };
    Ok(Bound::new(types, list, 60, work))
}

/// Lists of the tokens of rows.
struct Lists(ListBuilder<StringBuilder>);

impl TokenSink for Lists {
    const NEEDS_ROWS: bool = true;

    fn token(&mut self, token: Token<'_>) -> bool {
        self.0.values().append_value(token.as_str());
        true
    }

    fn end_row(&mut self) -> bool {
        self.0.append(true);
        true
    }

    fn take_all(&mut self, words: Words<'_>) -> bool {
        words.for_each(
            self,
            |lists, token| lists.0.values().append_value(token.as_str()),
            |lists| lists.0.append(true),
        );
        true
    }
}
