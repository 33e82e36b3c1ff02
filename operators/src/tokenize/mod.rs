//! Operator that cuts texts into tokens.
//!
//! ```text
//! texts ──► parts of a batch ──► pieces: their tokens ──┬► items: one row per token
//!                                                       ├► sets: tokens numbered by a
//!                                                       │  dictionary, one row per text
//!                                                       └► text_sets: tokens as texts, one row
//!                                                          per text
//! ```
//!
//! A [`Cut`] makes pieces, of any part at any time. A [`RowMaker`] makes
//! rows of the pieces in their order. In a stage with one thread, one operator does both (`fused`).
//! With more threads, several kernels cut parts side by side (`parallel`).
//!
//! A text can have more tokens than a batch has rows, so a piece can end within a text. The next
//! piece begins there.
//!
//! | file | contents |
//! |---|---|
//! | `input` | the texts of an input |
//! | `cut` | parts, and the two steps from a part to rows |
//! | `rows` | these steps for each form of the output |
//! | `fused`, `parallel` | operators of these steps |
//! | `numbers` | numbers of tokens, and the dictionary that keeps them |
//!
//! The definitions of a token are in [`crate::tokens`].

mod cut;
mod fused;
mod input;
mod numbers;
mod parallel;
mod rows;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use arrow_schema::{DataType, Schema, SchemaRef};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;
use trommel_engine::error::BindError;
use trommel_engine::memory::MemoryFull;
use trommel_engine::operator::{BindContext, Demand, Fragment, Load, OperatorSpec};
use trommel_engine::registry::Configured;

use self::input::TextInput;
use crate::expressions::ColumnInput;
use crate::shared::columns::carry::{carried_columns, carried_demand};
use crate::shared::columns::{column_schema, sets_schema, text_sets_schema, with_dictionary};
use crate::shared::parameters::{
    BATCH_BYTES, BATCH_ITEMS, Mistakes, Names, check_range, parameters, refuse, selected_isa,
};
use crate::shared::rejected::{BadRows, OnError};
use crate::shared::tokens::Fields;
use crate::shared::tokens::Tokenizer;
use cut::{Cut, RowMaker, SendBatches, TextParts};
use fused::Fused;
use numbers::dictionary::{Dictionary, DictionaryLimits};
use rows::items::CutItems;
use rows::sets::{CutSets, NumberSets};
use rows::text_sets::CutTextSets;

/// Definition of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TokenizeBy {
    /// Words by Unicode Standard Annex 29, in lower case.
    Words,
    /// Text between white space, unchanged.
    Whitespace,
    /// Every run of `q` consecutive characters, unchanged; a shorter text is one token.
    Qgrams,
    /// The field of this number, from 1, of a text that has it, unchanged: as `cut -d, -f7` with
    /// a `delimiter`, and as `awk '{print $7}'` without one.
    Field(#[schemars(range(min = 1))] u32),
}

/// Form of the output.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TokenizeInto {
    /// One row per token; column `item`.
    #[default]
    Items,
    /// One row per text; columns `id` (position of the text in the input, from 0) and `set` (its
    /// distinct tokens, numbered in order of their first occurrence in the stream).
    Sets,
    /// One row per text; columns `id` and `set` (its distinct tokens as texts, in an Arrow
    /// dictionary for each batch).
    TextSets,
}

/// Action when the dictionary is full.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum DictionaryFull {
    /// Forget the least recently used tokens.
    #[default]
    Forget,
    /// End the run with an error, so that no comparison of sets is approximate.
    Fail,
}

/// Cuts texts into words or q-grams, or takes a field of each.
///
/// # Ports
/// In: a text column, or an expression. Out: `item` (Utf8), or `id` (UInt32), `set`
/// (`List<UInt32>`, strictly ascending, or `List<Dictionary<UInt32, Utf8>>`) and the columns in
/// `carry`. A null has no tokens. With `on_error` `reject`, rows for which the expression has no
/// value go to a second output `rejected`.
///
/// # State
/// With `into` = `sets`: a dictionary of tokens. The column `set` carries its name as metadata, so
/// that sets of two dictionaries are not joined. It keeps at least the `dictionary_max` most
/// recently used ones and at most twice that number, with at most twice `dictionary_bytes_max`
/// bytes of text. Tokens of more than 1,024 bytes are stored as their beginning and a hash. It
/// keeps fewer tokens when the memory of the pipeline (`memory_max`) is used up.
///
/// A forgotten token that returns gets a new number. Texts before and after then look less
/// similar than they are, never more. A stream with at most `dictionary_max` distinct tokens
/// forgets nothing; the report counts forgotten tokens in `tokens_forgotten`.
///
/// # Cores
/// On one thread, one part. On several, a kernel for each of up to eight threads cuts texts, and
/// rows are made in the order of the texts: they do not depend on the number of threads.
///
/// # Examples
/// ```
/// use std::sync::Arc;
/// use arrow_array::{RecordBatch, StringArray, cast::AsArray};
/// use arrow_schema::{DataType, Field, Schema};
/// use trommel_engine::graph::Graph;
/// use trommel_engine::runtime::RunOptions;
/// use trommel_operators::{Collect, Memory, Tokenize};
///
/// let schema = Arc::new(Schema::new(vec![Field::new("line", DataType::Utf8, false)]));
/// let lines = Arc::new(StringArray::from(vec!["Don't panic,", "3.14!"]));
/// let batch = RecordBatch::try_new(schema.clone(), vec![lines])?;
///
/// let mut graph = Graph::new();
/// let lines = graph.add("lines", Memory::new(schema, [batch]));
/// let words = graph.add_after(lines, "words", Tokenize::words());
/// let (sink, collected) = Collect::new();
/// graph.add_after(words, "rows", sink);
/// graph.build()?.run(RunOptions::new())?;
/// let batch = &collected.batches()[0];
/// let words: Vec<_> = batch.column(0).as_string::<i32>().iter().flatten().collect();
/// assert_eq!(words, ["don't", "panic", "3.14"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[parameters(own_new)]
pub struct Tokenize {
    /// Text column, or an expression such as `lower(title)`; required if the input has several text
    /// columns.
    column: Option<String>,
    /// Definition of a token.
    by: TokenizeBy,
    /// Character between two fields, such as `,` or `\t`; white space when left out. For `field`
    /// only.
    #[schemars(length(min = 1, max = 1))]
    #[setter(char)]
    delimiter: Option<String>,
    /// Fields may stand in double quotes or, without a `delimiter`, in brackets too, and have
    /// delimiters there: `[1/Jan/2026 10:00] "GET / HTTP/1.1"` has two fields, without their
    /// quotes. For `field` only.
    #[default]
    quotes: bool,
    /// Characters of a q-gram; for `qgrams` only.
    #[range(1..=255)]
    #[setter(none)]
    q: Option<usize>,
    /// Action for a row for which the expression has no value. When left out, `fail`.
    on_error: Option<OnError>,
    /// Form of the output: a row per token, or a set per text.
    #[default]
    #[setter(none)]
    into: TokenizeInto,
    /// Input columns to copy to the output, such as the text itself, or `*` for all; for sets only.
    #[default]
    #[setter(each)]
    carry: Names,
    /// Distinct tokens that the dictionary always keeps; for `sets` only.
    #[default(16_777_216)]
    #[range(1..=2_147_483_647)]
    dictionary_max: usize,
    /// Bytes of token text that the dictionary always keeps; for `sets` only.
    #[default(268_435_456)]
    #[range(1_024..=1_099_511_627_776)]
    dictionary_bytes_max: usize,
    /// Action when the dictionary is full; for `sets` only.
    #[default]
    dictionary_full: DictionaryFull,
    /// Rows per output batch.
    #[default(BATCH_ITEMS)]
    #[range(1..=1_048_576)]
    batch: usize,
}

/// Bytes of the texts of a part: with their tokens, these texts stay in the second-level cache.
/// Parts of sets of texts are larger, since each batch of such sets has a dictionary of its own.
const PART_BYTES: usize = 1 << 16;

/// Error of making sets of texts.
#[derive(Debug, Clone, Error)]
#[non_exhaustive]
pub enum TokenizeError {
    /// The dictionary has reached its limit.
    #[error(
        "the texts have more than {tokens_max} distinct tokens (`dictionary_max`), \
         or more than {bytes_max} bytes of them (`dictionary_bytes_max`)"
    )]
    DictionaryFull {
        /// Limit of distinct tokens.
        tokens_max: usize,
        /// Limit of their text, in bytes.
        bytes_max: usize,
    },
    /// The memory of the pipeline is used up.
    #[error("the dictionary of tokens cannot grow: {0}")]
    Memory(#[from] MemoryFull),
    /// The memory of the pipeline has no room for the set of a text.
    #[error("no memory for the set of a long text: {0}; cut the text before")]
    SetMemory(MemoryFull),
    /// The set of a text is too large for a column of texts.
    #[error(
        "the set of a text has more than {bytes_max} bytes of tokens; \
         use `into`: `sets`, or cut the text before"
    )]
    SetTooLarge {
        /// Limit of their text, in bytes.
        bytes_max: usize,
    },
    /// There are more than 2^32 texts.
    #[error("more than 2^32 texts; the ids of sets have 32 bits")]
    TooManyTexts,
}

impl Tokenize {
    /// Cuts texts into words (Unicode Standard Annex 29) in lower case.
    #[must_use]
    pub fn words() -> Self {
        Self::defaults(TokenizeBy::Words)
    }

    /// Cuts texts at white space.
    #[must_use]
    pub fn whitespace() -> Self {
        Self::defaults(TokenizeBy::Whitespace)
    }

    /// Cuts texts into overlapping runs of `q` characters: 1 to 255.
    #[must_use]
    pub fn qgrams(q: usize) -> Self {
        Self { q: Some(q), ..Self::defaults(TokenizeBy::Qgrams) }
    }

    /// Takes the field of this number, from 1, of each text.
    ///
    /// # Examples
    /// ```
    /// use trommel_operators::Tokenize;
    ///
    /// // The requests of an access log.
    /// let requests = Tokenize::field(5).quotes();
    /// let names = Tokenize::field(2).delimiter(';');
    /// ```
    #[must_use]
    pub fn field(number: u32) -> Self {
        Self::defaults(TokenizeBy::Field(number))
    }

    /// Outputs one set per text instead of one row per token.
    #[must_use]
    pub fn into_sets(mut self) -> Self {
        self.into = TokenizeInto::Sets;
        self
    }

    /// Outputs one set of texts per text instead of one row per token.
    #[must_use]
    pub fn into_text_sets(mut self) -> Self {
        self.into = TokenizeInto::TextSets;
        self
    }

    /// Checks all parameters.
    fn checked(&self, input: &SchemaRef) -> Result<CheckedTokenize, BindError> {
        let mut mistakes = Mistakes::default();
        mistakes.check(self.check_ranges());
        let tokenizer = mistakes.check(self.tokenizer());
        let texts = mistakes.check(TextInput::bind(input, self.column.as_deref()));
        let carried = mistakes.check(self.carried(input));
        mistakes.all(|| {
            let (carry, schema) = carried?;
            Some(CheckedTokenize { tokenizer: tokenizer?, texts: texts?, carry, schema })
        })
    }

    /// Indices of the columns to copy, and the schema of the sets with them.
    fn carried(&self, input: &SchemaRef) -> Result<(Vec<usize>, SchemaRef), BindError> {
        if let (Some(name), TokenizeInto::Items) = (self.carry.as_slice().first(), self.into) {
            let allowed = "`carry` is for `into`: `sets` and `text_sets` only";
            return Err(refuse("carry", format!("`{name}`"), allowed));
        }
        let sets = match self.into {
            TokenizeInto::TextSets => text_sets_schema(),
            // Each operator has a dictionary of its own, whose numbers mean nothing to another.
            TokenizeInto::Items | TokenizeInto::Sets => with_dictionary(&sets_schema()),
        };
        let columns = carried_columns(&self.carry, input, &["id", "set"])?;
        let carried = columns.iter().map(|&column| &input.fields()[column]);
        let fields: Vec<_> = sets.fields().iter().chain(carried).map(Arc::clone).collect();
        Ok((columns, Arc::new(Schema::new(fields))))
    }

    fn limits(&self) -> DictionaryLimits {
        DictionaryLimits {
            tokens_max: self.dictionary_max,
            bytes_max: self.dictionary_bytes_max,
            forgets: self.dictionary_full == DictionaryFull::Forget,
        }
    }

    fn tokenizer(&self) -> Result<Tokenizer, BindError> {
        let mut mistakes = Mistakes::default();
        let is_field = matches!(self.by, TokenizeBy::Field(_));
        let of_fields = [("delimiter", self.delimiter.is_some()), ("quotes", self.quotes)];
        for (parameter, is_given) in of_fields {
            mistakes.refuse(is_given && !is_field, || {
                refuse(parameter, "a value", "it is for `by`: {\"field\": N} only")
            });
        }
        if let Some(q) = self.q {
            mistakes.refuse(self.by != TokenizeBy::Qgrams, || {
                refuse("q", q.to_string(), "`q` is for `by`: `qgrams` only")
            });
        }
        let tokenizer = match self.by {
            TokenizeBy::Field(number) => mistakes.check(self.fields(number)).map(Tokenizer::Field),
            TokenizeBy::Qgrams => {
                let missing = || {
                    let allowed = "expected a number of characters from 1 to 255";
                    refuse("q", "`by`: `qgrams` without `q`", allowed)
                };
                mistakes.check(self.q.ok_or_else(missing)).map(Tokenizer::Qgrams)
            }
            TokenizeBy::Words => {
                let isa = selected_isa();
                mistakes.check(isa).map(Tokenizer::words)
            }
            TokenizeBy::Whitespace => Some(Tokenizer::Whitespace),
        };
        mistakes.all(|| tokenizer)
    }

    /// The form of fields, of which the one with this number is a token.
    fn fields(&self, number: u32) -> Result<Fields, BindError> {
        let mut mistakes = Mistakes::default();
        mistakes.check(check_range("by", &number, &(1..=u32::MAX)));
        let mut delimiter = self.delimiter.as_deref().unwrap_or_default().chars();
        let first = delimiter.next();
        let is_one = first.is_some() && delimiter.next().is_none();
        mistakes.refuse(self.delimiter.is_some() && !is_one, || {
            let value = format!("{:?}", self.delimiter.as_deref().unwrap_or_default());
            refuse("delimiter", value, "expected one character")
        });
        mistakes.all(|| Some(Fields { number, delimiter: first, quotes: self.quotes }))
    }
}

/// The parts of a stage, from parameters that fit each other and the input.
struct CheckedTokenize {
    tokenizer: Tokenizer,
    texts: TextInput,
    /// Indices of the columns to copy, and the schema of the sets with them.
    carry: Vec<usize>,
    schema: SchemaRef,
}

impl Configured for Tokenize {
    const NAME: &'static str = "tokenize";
    const SUMMARY: &'static str = "cut texts into words, q-grams or fields";
}

impl OperatorSpec for Tokenize {
    fn operator(&self) -> &'static str {
        Self::NAME
    }

    fn output_ports(&self) -> &'static [&'static str] {
        OnError::output_ports(self.on_error)
    }

    fn reject(&mut self) -> bool {
        OnError::reject(&mut self.on_error)
    }

    fn demand(&self, _: usize, _: &Demand) -> Demand {
        let read = match &self.column {
            Some(text) => ColumnInput::demand(text, carried_demand(&self.carry, Demand::none())),
            // Without a name, the only column of texts is looked for among all columns.
            None => Demand::all(),
        };
        OnError::demand(self.on_error, read)
    }

    fn bind(
        self: Box<Self>,
        inputs: &[SchemaRef],
        context: BindContext,
    ) -> Result<Fragment, BindError> {
        let batch = self.batch;
        let CheckedTokenize { tokenizer, texts, carry, schema } = self.checked(&inputs[0])?;
        let bad = BadRows::new(self.on_error, 1);
        let fragment = match self.into {
            TokenizeInto::Items => {
                let schema = column_schema("item", DataType::Utf8);
                let outputs = vec![Arc::clone(&schema)];
                let make = move || {
                    let cut = CutItems::new(tokenizer.new_like(), Arc::clone(&schema), batch);
                    let parts = TextParts::new(texts.clone(), bad.clone(), PART_BYTES);
                    Ok(Fused::new(parts, cut, SendBatches))
                };
                Fragment::anywhere(Load::Heavy, make, outputs)?
            }
            TokenizeInto::Sets => {
                let dictionary = Dictionary::new(self.limits(), context.memory.clone());
                let hash = dictionary.hash();
                let rows =
                    NumberSets::new(dictionary, carry, Arc::clone(&schema)).within(&context.memory);
                let cut = move || CutSets::new(tokenizer.new_like(), batch, hash);
                let parts = TextParts::new(texts, bad, PART_BYTES).numbered();
                operator(context.threads, parts, cut, rows, &schema)
            }
            TokenizeInto::TextSets => {
                let (of_sets, memory) = (Arc::clone(&schema), context.memory.clone());
                let cut = move || {
                    let (tokenizer, schema) = (tokenizer.new_like(), Arc::clone(&of_sets));
                    CutTextSets::new(tokenizer, batch, carry.clone(), schema).within(&memory)
                };
                let parts = TextParts::new(texts, bad, BATCH_BYTES).numbered();
                operator(context.threads, parts, cut, SendBatches, &schema)
            }
        };
        Ok(fragment.with_early_outputs(OnError::rejected(self.on_error)))
    }
}

/// An operator of `parts`, the cutters of `cut`, and `rows`, for a stage with `threads` threads.
fn operator<C: Cut>(
    threads: usize,
    parts: TextParts,
    mut cut: impl FnMut() -> C + Send + 'static,
    rows: impl RowMaker<Piece = C::Piece>,
    schema: &SchemaRef,
) -> Fragment {
    let outputs = vec![SchemaRef::clone(schema)];
    match threads {
        ..=1 => Fragment::operator(Load::Heavy, Fused::new(parts, cut(), rows), outputs),
        _ => parallel::operator(parts, cut, rows, outputs),
    }
}
