//! Text into tokens.
//!
//! ```text
//! text column ──► tokens of each text ──► items: a row a token
//!                                    └──► sets: tokens numbered by a dictionary, a row a text
//! ```
//!
//! A text can have many more tokens than a batch has rows, so the operator stops within a text when
//! a batch is full and goes on from there when it is called again.

mod dictionary;
mod tokens;

#[cfg(test)]
mod tests;

use std::ops::RangeInclusive;
use std::sync::Arc;

use arrow_array::builder::StringBuilder;
use arrow_array::{Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Schema, SchemaRef};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;
use trommel_engine::batch::Payload;
use trommel_engine::error::{BindError, BindErrorKind};
use trommel_engine::operator::{
    BindContext, Counters, Flow, Fragment, Load, Operator, OperatorError, OperatorSpec, Output,
};
use trommel_engine::registry::Configured;

use crate::columns::{
    SetsBuilder, column_batch, column_schema, find_column, find_text, sets_schema, text_column,
};
use crate::parameters::{BATCH_BYTES, batch_items, check_batch, check_range};
use dictionary::Dictionary;
use tokens::Tokenizer;

/// What a token is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TokenizeBy {
    /// Words of Unicode Standard Annex 29, in lower case.
    Words,
    /// What stands between white space, as it is.
    Whitespace,
    /// Every run of `q` characters of the text, as it is; a shorter text is one token.
    Qgrams,
}

/// What becomes of the tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TokenizeInto {
    /// A row a token: column `item`.
    #[default]
    Items,
    /// A row a text: columns `id` (position of the text in the input) and `set` (its distinct
    /// tokens, numbered in the order in which they first occur in the stream).
    Sets,
}

/// Cuts texts into tokens.
///
/// # Ports
/// In: a text column (Utf8). Out: `item` (Utf8), or `id` (UInt32), `set` (`List<UInt32>`, strictly
/// ascending) and the columns that are carried along. A null has no tokens.
///
/// # State
/// With `into` = `sets`: every distinct token once. At most `dictionary_max` of them, then an
/// error.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Tokenize {
    /// The text column; it may be left out if the input has only one.
    #[serde(default)]
    column: Option<String>,
    /// What a token is.
    by: TokenizeBy,
    /// How many characters a q-gram has; for `qgrams` only.
    #[serde(default)]
    #[schemars(range(min = 1, max = 255))]
    q: Option<usize>,
    /// What becomes of the tokens.
    #[serde(default)]
    into: TokenizeInto,
    /// Columns of the input that go along, such as the text itself; for `sets` only.
    #[serde(default)]
    carry: Vec<String>,
    /// How many distinct tokens there may be; for `sets` only.
    #[serde(default = "default_dictionary_max")]
    #[schemars(range(min = 1, max = 4_294_967_295_u32))]
    dictionary_max: usize,
    /// Rows an output batch.
    #[serde(default = "batch_items")]
    #[schemars(range(min = 1, max = 1_048_576))]
    batch: usize,
}

fn default_dictionary_max() -> usize {
    1 << 24
}

/// Why texts cannot be made into sets.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TokenizeError {
    /// The dictionary has reached its limit.
    #[error("the texts have more than {max} distinct tokens (`dictionary_max`)")]
    DictionaryFull {
        /// How many distinct tokens there may be.
        max: usize,
    },
    /// There are more texts than numbers for them.
    #[error("more than 2^32 texts; the ids of sets have 32 bits")]
    TooManyTexts,
}

impl Tokenize {
    fn new(by: TokenizeBy, q: Option<usize>) -> Self {
        Self {
            column: None,
            by,
            q,
            into: TokenizeInto::Items,
            carry: Vec::new(),
            dictionary_max: default_dictionary_max(),
            batch: batch_items(),
        }
    }

    /// Cuts texts into words (Unicode Standard Annex 29) in lower case.
    #[must_use]
    pub fn words() -> Self {
        Self::new(TokenizeBy::Words, None)
    }

    /// Cuts texts at white space.
    #[must_use]
    pub fn whitespace() -> Self {
        Self::new(TokenizeBy::Whitespace, None)
    }

    /// Cuts texts into overlapping runs of `q` characters, 1 to 255.
    #[must_use]
    pub fn qgrams(q: usize) -> Self {
        Self::new(TokenizeBy::Qgrams, Some(q))
    }

    /// Names the text column; it may be left out if the input has only one.
    #[must_use]
    pub fn column(mut self, column: impl Into<String>) -> Self {
        self.column = Some(column.into());
        self
    }

    /// Makes a set of each text, with at most [`Self::dictionary_max`] distinct tokens in all.
    #[must_use]
    pub fn into_sets(mut self) -> Self {
        self.into = TokenizeInto::Sets;
        self
    }

    /// Lets these columns of the input go along with the sets.
    #[must_use]
    pub fn carry(mut self, columns: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.carry = columns.into_iter().map(Into::into).collect();
        self
    }

    /// Sets how many distinct tokens the sets may have in all: 1 to 2^32 - 1.
    #[must_use]
    pub fn dictionary_max(mut self, tokens: usize) -> Self {
        self.dictionary_max = tokens;
        self
    }

    /// Sets how many rows an output batch has: 1 to 1,048,576.
    #[must_use]
    pub fn batch(mut self, rows: usize) -> Self {
        self.batch = rows;
        self
    }

    /// The columns that go along, and the schema of the sets with them.
    fn carried(&self, input: &SchemaRef) -> Result<(Vec<usize>, SchemaRef), BindError> {
        let refuse = |value: String, allowed: &str| {
            Err(BindErrorKind::Value { value, allowed: allowed.to_owned() }.at("carry"))
        };
        if let (Some(name), TokenizeInto::Items) = (self.carry.first(), self.into) {
            return refuse(format!("`{name}`"), "`carry` goes with `into`: `sets` only");
        }
        let mut columns = Vec::with_capacity(self.carry.len());
        let mut fields = sets_schema().fields().to_vec();
        for name in &self.carry {
            let (column, _) = find_column(input, name, "carry")?;
            if fields.iter().any(|field| field.name() == name) {
                return refuse(format!("`{name}`"), "there is a column of that name already");
            }
            columns.push(column);
            fields.push(Arc::clone(&input.fields()[column]));
        }
        Ok((columns, Arc::new(Schema::new(fields))))
    }

    fn tokenizer(&self) -> Result<Tokenizer, BindError> {
        let wrong = |value: String, allowed: &str| {
            BindErrorKind::Value { value, allowed: allowed.to_owned() }.at("q")
        };
        match (self.by, self.q) {
            (TokenizeBy::Qgrams, None) => Err(wrong(
                "`by`: `qgrams` without `q`".to_owned(),
                "expected a number of characters from 1 to 255",
            )),
            (TokenizeBy::Qgrams, Some(q)) => {
                check_range("q", &q, &(1..=255))?;
                Ok(Tokenizer::Qgrams(q))
            }
            (_, Some(q)) => Err(wrong(q.to_string(), "`q` goes with `by`: `qgrams` only")),
            (TokenizeBy::Words, None) => Ok(Tokenizer::words()),
            (TokenizeBy::Whitespace, None) => Ok(Tokenizer::Whitespace),
        }
    }
}

impl Configured for Tokenize {
    const NAME: &'static str = "tokenize";
    const SUMMARY: &'static str = "cut texts into words, fields or q-grams";
}

impl OperatorSpec for Tokenize {
    fn operator(&self) -> &'static str {
        Self::NAME
    }

    fn input_ports(&self) -> RangeInclusive<usize> {
        1..=1
    }

    fn bind(self: Box<Self>, inputs: &[SchemaRef], _: BindContext) -> Result<Fragment, BindError> {
        check_batch(self.batch)?;
        check_range("dictionary_max", &self.dictionary_max, &(1..=u32::MAX as usize))?;
        let tokenizer = self.tokenizer()?;
        let column = find_text(&inputs[0], self.column.as_deref())?;
        let batch = self.batch;
        let (carry, schema) = self.carried(&inputs[0])?;
        Ok(match self.into {
            TokenizeInto::Items => {
                let schema = column_schema("item", DataType::Utf8);
                let outputs = vec![SchemaRef::clone(&schema)];
                let items = StringBuilder::new();
                let state = ItemTokens { column, tokenizer, schema, batch, pending: None, items };
                Fragment::operator(Load::Heavy, state, outputs)
            }
            TokenizeInto::Sets => {
                let outputs = vec![SchemaRef::clone(&schema)];
                let state = SetTokens {
                    column,
                    carry,
                    schema,
                    tokenizer,
                    batch,
                    pending: None,
                    dictionary: Dictionary::new(self.dictionary_max),
                    sets: SetsBuilder::new(),
                    next_id: 0,
                };
                Fragment::operator(Load::Heavy, state, outputs)
            }
        })
    }
}

/// Texts that are being cut, and how far that has come.
struct Pending {
    texts: StringArray,
    row: usize,
    /// Where the next token of the row is looked for.
    at: usize,
}

/// Makes a row of each token.
struct ItemTokens {
    column: usize,
    tokenizer: Tokenizer,
    schema: SchemaRef,
    batch: usize,
    pending: Option<Pending>,
    items: StringBuilder,
}

impl Operator for ItemTokens {
    fn process(
        &mut self,
        _: usize,
        input: Payload,
        out: &mut Output,
    ) -> Result<Flow, OperatorError> {
        let texts = text_column(&input.into_records(), self.column);
        self.pending = Some(Pending { texts, row: 0, at: 0 });
        self.resume(out)
    }

    fn resume(&mut self, out: &mut Output) -> Result<Flow, OperatorError> {
        let Some(pending) = &mut self.pending else { return Ok(Flow::NeedInput) };
        let (mut room, mut bytes) = (self.batch, 0);
        while pending.row < pending.texts.len() {
            let text = row_text(&pending.texts, pending.row);
            pending.at = self.tokenizer.tokens(text, pending.at, |token| {
                self.items.append_value(token);
                room -= 1;
                bytes += token.len();
                room > 0 && bytes < BATCH_BYTES
            });
            if pending.at >= text.len() {
                pending.row += 1;
                pending.at = 0;
            }
            if room == 0 || bytes >= BATCH_BYTES {
                break;
            }
        }
        let flow =
            if pending.row < pending.texts.len() { Flow::HaveOutput } else { Flow::NeedInput };
        if flow == Flow::NeedInput {
            self.pending = None;
        }
        let next = StringBuilder::with_capacity(self.batch - room, bytes);
        let mut full = std::mem::replace(&mut self.items, next);
        out.send(column_batch(&self.schema, Arc::new(full.finish())));
        Ok(flow)
    }
}

/// The text of a row; nothing for a null.
fn row_text(texts: &StringArray, row: usize) -> &str {
    if texts.is_null(row) { "" } else { texts.value(row) }
}

/// Makes a set of each text.
struct SetTokens {
    column: usize,
    /// Columns that go along.
    carry: Vec<usize>,
    schema: SchemaRef,
    tokenizer: Tokenizer,
    batch: usize,
    /// Texts, and the row of the next one.
    pending: Option<(RecordBatch, usize)>,
    dictionary: Dictionary,
    sets: SetsBuilder,
    next_id: u64,
}

impl SetTokens {
    fn add(&mut self, text: &str) -> Result<(), TokenizeError> {
        let id = u32::try_from(self.next_id).map_err(|_| TokenizeError::TooManyTexts)?;
        self.next_id += 1;
        let mut result = Ok(());
        let (tokens, dictionary) = (self.sets.tokens_mut(), &mut self.dictionary);
        self.tokenizer.tokens(text, 0, |token| {
            match dictionary.number(token) {
                Ok(number) => tokens.push(number),
                Err(full) => result = Err(full),
            }
            result.is_ok()
        });
        self.sets.close(id);
        result
    }
}

impl Operator for SetTokens {
    fn process(
        &mut self,
        _: usize,
        input: Payload,
        out: &mut Output,
    ) -> Result<Flow, OperatorError> {
        self.pending = Some((input.into_records(), 0));
        self.resume(out)
    }

    fn resume(&mut self, out: &mut Output) -> Result<Flow, OperatorError> {
        let Some((records, begin)) = self.pending.take() else { return Ok(Flow::NeedInput) };
        let texts = text_column(&records, self.column);
        let mut row = begin;
        while row < texts.len() && self.sets.len() < self.batch && self.sets.bytes() < BATCH_BYTES {
            self.add(row_text(&texts, row))?;
            row += 1;
        }
        let carried = records.project(&self.carry)?.slice(begin, row - begin);
        let mut columns = self.sets.take().columns().to_vec();
        columns.extend_from_slice(carried.columns());
        out.send(RecordBatch::try_new(SchemaRef::clone(&self.schema), columns)?);
        if row == records.num_rows() {
            return Ok(Flow::NeedInput);
        }
        self.pending = Some((records, row));
        Ok(Flow::HaveOutput)
    }

    fn counters(&self) -> Counters {
        vec![("distinct_tokens", self.dictionary.len() as u64)]
    }
}
