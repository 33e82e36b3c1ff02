//! Columns that operators share, `line`, `item`, `id` and `set`: how they are found and built.
//!
//! | file | contents |
//! |---|---|
//! | `ids` | the ids of rows |
//! | `carry` | columns that are carried along |
//! | `pairs` | rows of pairs |
//! | `names` | names of types |
//! | `texts` | a builder of columns of texts |
//! | `times` | points in time by a format |

pub(crate) mod carry;
pub(crate) mod ids;
mod names;
pub(crate) mod pairs;
mod texts;
mod times;

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::UInt32Type;
use arrow_array::{
    ArrayRef, DictionaryArray, FixedSizeListArray, Float32Array, ListArray, RecordBatch,
    StringArray, UInt32Array,
};
use arrow_buffer::{OffsetBuffer, ScalarBuffer};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use thiserror::Error;
use trommel_engine::error::{BindError, BindErrorKind};
use trommel_kernels::Isa;
use trommel_kernels::sets::sort_lists;

pub(crate) use self::names::{TYPE_NAMES, timestamp, type_name, type_named};
pub(crate) use self::texts::TextsBuilder;
pub(crate) use self::times::TimeFormat;
use crate::shared::names::secret::random_seed;

/// Metadata key of a column of sets. The value names the dictionary that has numbered the tokens:
/// equal numbers of two dictionaries are not equal tokens.
pub const DICTIONARY: &str = "trommel.dictionary";

/// A batch does not have the columns that its producer declared.
#[derive(Debug, Error)]
#[error("a batch has the columns {found}; the {operator} was declared with {declared}")]
pub struct SchemaMismatch {
    /// Operator of the batch.
    pub operator: &'static str,
    /// Columns of the batch.
    pub found: String,
    /// Declared columns.
    pub declared: String,
}

/// Checks the columns of a batch that the program made.
///
/// # Errors
/// If the columns differ from the `declared` columns.
pub(crate) fn check_schema(
    operator: &'static str,
    records: &RecordBatch,
    declared: &SchemaRef,
) -> Result<(), SchemaMismatch> {
    let found = records.schema_ref();
    if Arc::ptr_eq(found, declared) || found == declared {
        return Ok(());
    }
    Err(SchemaMismatch { operator, found: describe(found), declared: describe(declared) })
}

/// The columns of a schema with their types, for messages.
pub(crate) fn describe(schema: &Schema) -> String {
    let columns: Vec<_> = schema
        .fields()
        .iter()
        .map(|f| {
            let null = if f.is_nullable() { " or null" } else { "" };
            format!("`{}` ({}{null})", f.name(), f.data_type())
        })
        .collect();
    if columns.is_empty() { "none".to_owned() } else { columns.join(", ") }
}

/// A schema of one column `name` without nulls.
pub(crate) fn column_schema(name: &str, data_type: DataType) -> SchemaRef {
    Arc::new(Schema::new(vec![Field::new(name, data_type, false)]))
}

/// A batch of one column.
pub(crate) fn column_batch(schema: &SchemaRef, column: ArrayRef) -> RecordBatch {
    RecordBatch::try_new(Arc::clone(schema), vec![column]).expect("one column of the schema's type")
}

/// Schema of a stream of sets: `id` (input position) and `set` (strictly ascending tokens).
pub(crate) fn sets_schema() -> SchemaRef {
    let set = DataType::List(token_field());
    Arc::new(Schema::new(vec![
        Field::new("id", DataType::UInt32, false),
        Field::new("set", set, false),
    ]))
}

/// The schema of sets with the name of a new dictionary.
pub(crate) fn with_dictionary(schema: &Schema) -> SchemaRef {
    let name = format!("{:016x}", random_seed());
    let named = |field: &Arc<Field>| {
        let metadata = HashMap::from([(DICTIONARY.to_owned(), name.clone())]);
        if field.name() == "set" {
            Arc::new(field.as_ref().clone().with_metadata(metadata))
        } else {
            Arc::clone(field)
        }
    };
    Arc::new(Schema::new(schema.fields().iter().map(named).collect::<Vec<_>>()))
}

/// Refuses the columns at `places` of inputs if different dictionaries have numbered their tokens.
pub(crate) fn check_dictionaries<'a>(
    inputs: impl Iterator<Item = (&'a SchemaRef, usize)>,
) -> Result<(), BindError> {
    let mut names: Vec<&String> =
        inputs.filter_map(|(input, place)| input.field(place).metadata().get(DICTIONARY)).collect();
    names.dedup();
    if names.len() < 2 {
        return Ok(());
    }
    let allowed = "equal numbers of two dictionaries are not equal tokens: read all texts by one \
                   `tokenize`";
    Err(BindErrorKind::Value {
        value: "tokens that two stages `tokenize` have numbered".to_owned(),
        allowed: allowed.to_owned(),
    }
    .at("set"))
}

/// Schema of a stream of sets of texts: `id`, and `set` (distinct texts, as a dictionary).
pub(crate) fn text_sets_schema() -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new("id", DataType::UInt32, false),
        Field::new("set", DataType::List(text_token_field()), false),
    ]))
}

fn text_token_field() -> Arc<Field> {
    let texts = DataType::Dictionary(Box::new(DataType::UInt32), Box::new(DataType::Utf8));
    Arc::new(Field::new_list_field(texts, false))
}

/// The rows of `sets`, with `texts` in place of the tokens, which are the numbers of the texts.
///
/// # Panics
/// If a token is not the number of a text.
pub(crate) fn sets_of_texts(sets: &RecordBatch, texts: StringArray) -> RecordBatch {
    let list = sets.column(1).as_list::<i32>();
    let keys = list.values().as_primitive::<UInt32Type>().clone();
    let tokens = DictionaryArray::new(keys, Arc::new(texts));
    let set = ListArray::new(text_token_field(), list.offsets().clone(), Arc::new(tokens), None);
    let columns: Vec<ArrayRef> = vec![Arc::clone(sets.column(0)), Arc::new(set)];
    RecordBatch::try_new(text_sets_schema(), columns).expect("built to this schema")
}

/// Maximum dimensions of a vector.
pub(crate) const DIMS_MAX: u32 = 4_096;

/// Schema of a stream of vectors: `id` (input position) and `vector` (of `dims` coordinates).
pub(crate) fn vectors_schema(dims: u32) -> SchemaRef {
    Arc::new(Schema::new(vec![Field::new("id", DataType::UInt32, false), vector_field(dims)]))
}

/// The column `vector`, of `dims` coordinates.
pub(crate) fn vector_field(dims: u32) -> Field {
    let vector = DataType::FixedSizeList(coordinate_field(), list_size(dims));
    Field::new("vector", vector, false)
}

fn coordinate_field() -> Arc<Field> {
    Arc::new(Field::new_list_field(DataType::Float32, false))
}

fn list_size(dims: u32) -> i32 {
    i32::try_from(dims).expect("dimensions are at most 4,096")
}

/// Vectors of `dims` coordinates each, one after the other, as a column.
pub(crate) fn vector_array(dims: u32, coordinates: ScalarBuffer<f32>) -> ArrayRef {
    let values = Arc::new(Float32Array::new(coordinates, None));
    Arc::new(FixedSizeListArray::new(coordinate_field(), list_size(dims), values, None))
}

fn token_field() -> Arc<Field> {
    Arc::new(Field::new_list_field(DataType::UInt32, false))
}

/// Index and type of the column `name`. Errors name `parameter`.
pub(crate) fn find_column(
    schema: &SchemaRef,
    name: &str,
    parameter: &'static str,
) -> Result<(usize, DataType), BindError> {
    let (index, field) = schema.column_with_name(name).ok_or_else(|| {
        let schema = Arc::clone(schema);
        BindErrorKind::MissingColumn { column: name.to_owned(), schema }.at(parameter)
    })?;
    Ok((index, field.data_type().clone()))
}

/// Builds batches of sets, each a strictly ascending list of tokens. The sets of a batch are sorted
/// together, which is faster than sorting each set alone.
#[derive(Debug)]
pub(crate) struct SetsBuilder {
    schema: SchemaRef,
    ids: Vec<u32>,
    /// Start of each set among the tokens, and the end of the last set.
    offsets: Vec<u32>,
    tokens: Vec<u32>,
}

impl SetsBuilder {
    pub(crate) fn new() -> Self {
        Self { schema: sets_schema(), ids: Vec::new(), offsets: vec![0], tokens: Vec::new() }
    }

    pub(crate) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    pub(crate) fn len(&self) -> usize {
        self.ids.len()
    }

    /// Bytes of the tokens, with duplicates.
    pub(crate) fn bytes(&self) -> usize {
        self.tokens.len() * size_of::<u32>()
    }

    /// The vector to which the caller appends the tokens of the next set, in any order and with
    /// duplicates. [`Self::close`] ends the set.
    pub(crate) fn tokens_mut(&mut self) -> &mut Vec<u32> {
        &mut self.tokens
    }

    /// Ends the set `id`, which has all tokens that were added since the last set.
    pub(crate) fn close(&mut self, id: u32) {
        self.ids.push(id);
        let end =
            u32::try_from(self.tokens.len()).expect("a batch of sets is far below 2^31 tokens");
        self.offsets.push(end);
    }

    /// Adds sets, numbered from `first_id` on. `write` appends their tokens and the end of each
    /// set. If `write` returns false, the appended tokens are dropped, and the call returns false.
    pub(crate) fn extend(
        &mut self,
        first_id: u32,
        write: impl FnOnce(&mut Vec<u32>, &mut Vec<u32>) -> bool,
    ) -> bool {
        let (sets, tokens) = (self.len(), self.tokens.len());
        let is_whole = write(&mut self.tokens, &mut self.offsets);
        if is_whole {
            let ids = (first_id..=u32::MAX).take(self.offsets.len() - 1 - sets);
            self.ids.extend(ids);
        } else {
            self.tokens.truncate(tokens);
            self.offsets.truncate(sets + 1);
        }
        is_whole
    }

    /// Ends a set at each of `ends` among the [tokens](Self::tokens_mut). The sets are numbered
    /// from `first_id` on; all numbers have to fit into 32 bits.
    pub(crate) fn close_at(&mut self, first_id: u32, ends: impl ExactSizeIterator<Item = u32>) {
        self.ids.extend((first_id..=u32::MAX).take(ends.len()));
        self.offsets.extend(ends);
    }

    /// Drops the tokens added since the last set.
    pub(crate) fn abandon(&mut self) {
        let start = self.open_start();
        self.tokens.truncate(start);
    }

    fn open_start(&self) -> usize {
        *self.offsets.last().expect("starts with 0") as usize
    }

    /// Returns the sets so far. Only the tokens since the last set stay.
    pub(crate) fn take(&mut self) -> RecordBatch {
        self.split_off().into_batch()
    }

    /// Moves the sets so far to a new builder. Only the tokens since the last set stay.
    pub(crate) fn split_off(&mut self) -> Self {
        let open = self.tokens.split_off(self.open_start());
        let schema = Arc::clone(&self.schema);
        // The split keeps the capacities for the next sets.
        let ids = self.ids.split_off(0);
        let offsets = self.offsets.split_off(0);
        let tokens = self.tokens.split_off(0);
        self.offsets.push(0);
        self.tokens.extend(open);
        Self { schema, ids, offsets, tokens }
    }

    /// The batch of the sets; drops the tokens since the last set.
    pub(crate) fn into_batch(mut self) -> RecordBatch {
        self.abandon();
        let Self { schema, ids, mut offsets, mut tokens } = self;
        if !are_ascending(offsets.iter().map(|&end| end as usize), &tokens) {
            // The joins report an unknown level; the sets are the same at all levels.
            sort_lists(Isa::selected().unwrap_or(Isa::Scalar), &offsets, &mut tokens);
            deduplicate(&mut offsets, &mut tokens);
        }
        let end = |end: u32| i32::try_from(end).expect("a batch of sets is far below 2^31 tokens");
        let offsets = OffsetBuffer::new(offsets.into_iter().map(end).collect());
        let set = ListArray::new(token_field(), offsets, Arc::new(UInt32Array::from(tokens)), None);
        let columns: Vec<ArrayRef> = vec![Arc::new(UInt32Array::from(ids)), Arc::new(set)];
        RecordBatch::try_new(schema, columns).expect("built to this schema")
    }
}

/// Whether the tokens of each set ascend strictly, so that tokens descend only between sets. `ends`
/// has the beginning of the first set and the end of each set.
pub(crate) fn are_ascending(ends: impl Iterator<Item = usize>, tokens: &[u32]) -> bool {
    // The loop does not end early, so that the compiler uses vector instructions.
    let descends = |pair: &[u32]| u32::from(pair[0] >= pair[1]);
    let all: u32 = tokens.windows(2).map(descends).sum();
    let (mut last, mut between) = (0, 0);
    for end in ends {
        // After an empty set, the same end comes a second time.
        if end > last && end < tokens.len() {
            between += descends(&tokens[end - 1..=end]);
        }
        last = end;
    }
    all == between
}

/// Drops the duplicates of sorted sets.
fn deduplicate(offsets: &mut [u32], tokens: &mut Vec<u32>) {
    let (mut begin, mut kept) = (0, 0);
    for offset in &mut offsets[1..] {
        let set = begin..*offset as usize;
        begin = set.end;
        if tokens[set.clone()].is_sorted_by(|a, b| a < b) {
            // Most sets have no duplicates. Until the first duplicate, tokens need not move.
            if kept < set.start {
                tokens.copy_within(set.clone(), kept);
            }
            kept += set.len();
        } else {
            for token in set.clone() {
                if token == set.start || tokens[token] != tokens[kept - 1] {
                    tokens[kept] = tokens[token];
                    kept += 1;
                }
            }
        }
        *offset = u32::try_from(kept).expect("not above the old end");
    }
    tokens.truncate(kept);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn tokens_of_two_dictionaries_do_not_meet() {
        let [one, other] = [0, 1].map(|_| with_dictionary(&sets_schema()));
        let plain = sets_schema();
        let check =
            |inputs: &[&SchemaRef]| check_dictionaries(inputs.iter().map(|input| (*input, 1)));
        for inputs in [&[&one][..], &[&one, &one], &[&one, &plain], &[&plain, &plain]] {
            assert!(check(inputs).is_ok());
        }
        let error = check(&[&one, &other]).unwrap_err();
        assert_eq!(error.parameter, Some("set"));
        assert!(error.to_string().contains("read all texts by one `tokenize`"), "{error}");
    }

    proptest! {
        #[test]
        fn sets_are_sorted_and_have_no_duplicates(
            sets in proptest::collection::vec(proptest::collection::vec(0_u32..20, 0..5), 0..20),
            are_sorted: bool,
        ) {
            let mut builder = SetsBuilder::new();
            let mut expected = Vec::new();
            for (id, mut set) in (0..).zip(sets) {
                let mut sorted = set.clone();
                sorted.sort_unstable();
                sorted.dedup();
                if are_sorted {
                    set.clone_from(&sorted);
                }
                expected.push(sorted);
                builder.tokens_mut().extend(set);
                builder.close(id);
            }
            let batch = builder.take();
            let found = batch.column(1).as_list::<i32>().iter().flatten();
            let found = found.map(|set| set.as_primitive::<UInt32Type>().values().to_vec());
            prop_assert_eq!(found.collect::<Vec<_>>(), expected);
        }
    }
}
