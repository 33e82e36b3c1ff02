//! From the parameters to the keys of both inputs and the columns of the table.

use std::collections::HashSet;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_cast::cast;
use arrow_schema::{ArrowError, DataType, Field, FieldRef, Schema, SchemaRef};
use trommel_engine::error::BindError;

use super::{Duplicates, Lookup, LookupMode, is_all};
use crate::expressions::{Chosen, ColumnInput, Expression, choose};
use crate::shared::groups::{Encoder, KeyHash, canonical, plain};
use crate::shared::names::secret::Secret;
use crate::shared::parameters::{Mistakes, blame, refuse};
use crate::shared::rejected::Faults;

/// Parameters of the keys of the stream, and of the table.
const KEYS: [&str; 2] = ["key", "table_key"];

/// The work of the operator.
pub(super) struct Plan {
    /// The columns of the keys of the stream, and of the table.
    keys: [Vec<ColumnInput>; 2],
    /// The types of the columns of keys.
    types: Vec<DataType>,
    pub(super) encoder: Encoder,
    pub(super) hash: KeyHash,
    pub(super) mode: LookupMode,
    pub(super) duplicates: Duplicates,
    /// The columns of the table that rows leave with.
    pub(super) added: Vec<Expression>,
    /// Columns of the output.
    pub(super) schema: SchemaRef,
}

impl Plan {
    /// The work of an operator with these parameters.
    pub(super) fn new(
        spec: &Lookup,
        stream: &SchemaRef,
        table: &SchemaRef,
    ) -> Result<Self, BindError> {
        let mut mistakes = Mistakes::default();
        let keys = mistakes.check(keys(spec, [stream, table]));
        let encoder = keys
            .as_ref()
            .map(|(_, types)| Encoder::new(types).map_err(|error| blame(KEYS[0], error)));
        let encoder = mistakes.check(encoder.transpose()).flatten();
        let of_table = keys.as_ref().map_or(&[][..], |(keys, _)| &keys[1]);
        let added = mistakes.check(added(spec, stream, table, of_table));
        let ((keys, types), encoder, added) = mistakes.all(|| Some((keys?, encoder?, added?)))?;
        let fields = added.iter().map(|chosen| {
            let field = chosen.expression.field(&chosen.name, table);
            let is_nullable = field.is_nullable() || spec.mode == LookupMode::Left;
            Arc::new(Field::with_nullable(field, is_nullable))
        });
        let fields: Vec<FieldRef> = stream.fields().iter().cloned().chain(fields).collect();
        Ok(Self {
            keys,
            types,
            encoder,
            hash: KeyHash::new(Secret::random()),
            mode: spec.mode,
            duplicates: spec.duplicates,
            added: added.into_iter().map(|chosen| chosen.expression).collect(),
            schema: Arc::new(Schema::new(fields)),
        })
    }

    /// The columns of the keys of a batch of an input, with nulls in rows that have a fault.
    pub(super) fn keys_of(
        &self,
        input: usize,
        records: &RecordBatch,
        faults: &mut Faults,
    ) -> Result<Vec<ArrayRef>, ArrowError> {
        self.keys[input].iter().map(|key| faults.values(key, records)).collect()
    }

    /// The columns of keys in the types of keys, in which equal values are equal bytes. An integer
    /// of the stream that the type does not have becomes null, and has no partner.
    pub(super) fn with_types(&self, columns: &[ArrayRef]) -> Result<Vec<ArrayRef>, ArrowError> {
        let of_type = |column: &ArrayRef, kind: &DataType| match column.data_type() == kind {
            true => Ok(Arc::clone(column)),
            false => cast(column, kind),
        };
        let columns = columns.iter().zip(&self.types).map(|(column, kind)| {
            let column = of_type(column, &plain(column.data_type()))?;
            Ok(canonical(&of_type(&column, kind)?))
        });
        columns.collect()
    }
}

/// The keys of both inputs, and the types of their columns.
fn keys(
    spec: &Lookup,
    inputs: [&SchemaRef; 2],
) -> Result<([Vec<ColumnInput>; 2], Vec<DataType>), BindError> {
    let texts = spec.keys();
    let mut mistakes = Mistakes::default();
    let mut columns = [Vec::new(), Vec::new()];
    let mut types = [Vec::new(), Vec::new()];
    for side in 0..2 {
        // The key of the table that was left out is wrong where the table has no such columns.
        for text in texts[side] {
            let bound = ColumnInput::bind(inputs[side], text, KEYS[side]);
            if let Some((column, kind)) = mistakes.check(bound) {
                columns[side].push(column);
                types[side].push(plain(&kind));
            }
        }
    }
    mistakes.refuse(texts[0].is_empty(), || {
        refuse(KEYS[0], "an empty list", "name one column at least")
    });
    let [stream, table] = texts.map(<[String]>::len);
    mistakes.refuse(stream != table, || {
        let value = format!("a key of {table} columns for a key of {stream}");
        refuse(KEYS[1], value, "both keys need the same number of columns")
    });
    mistakes.none()?;
    let mut mistakes = Mistakes::default();
    let mut common = Vec::with_capacity(stream);
    for (place, (own, other)) in types[0].iter().zip(&types[1]).enumerate() {
        let kind = common_type(own, other);
        mistakes.refuse(kind.is_none(), || {
            let (text, table_text) = (&texts[0][place], &texts[1][place]);
            let value = format!("`{table_text}` of {other} for `{text}` of {own}");
            let allowed = "both keys need the same types, or integers; `cast(x as bigint)` or \
                           another `cast` gives one of both the type of the other";
            refuse(KEYS[1], value, allowed)
        });
        common.extend(kind);
    }
    mistakes.all(|| Some((columns, common)))
}

/// The type in which values of these types of the stream and of the table are compared. The type
/// has all values of the table; a value of the stream that it does not have has no partner.
fn common_type(stream: &DataType, table: &DataType) -> Option<DataType> {
    let is_binary = |kind: &DataType| {
        matches!(kind, DataType::Binary | DataType::LargeBinary | DataType::BinaryView)
    };
    match (stream, table) {
        _ if stream == table => Some(table.clone()),
        _ if stream.is_integer() && table.is_integer() => Some(table.clone()),
        // Texts of a batch of one of the other types may have more bytes than `Utf8` has room for.
        _ if stream.is_string() && table.is_string() => Some(DataType::LargeUtf8),
        _ if is_binary(stream) && is_binary(table) => Some(DataType::LargeBinary),
        _ => None,
    }
}

/// The columns of the table that rows leave with.
fn added(
    spec: &Lookup,
    stream: &Schema,
    table: &Schema,
    keys: &[ColumnInput],
) -> Result<Vec<Chosen>, BindError> {
    let mut mistakes = Mistakes::default();
    let adds_columns = spec.mode.adds_columns();
    mistakes.refuse(spec.columns.is_some() && !adds_columns, || {
        let mode = if spec.mode == LookupMode::Anti { "anti" } else { "semi" };
        let value = format!("columns with `mode`: \"{mode}\"");
        refuse("columns", value, "`mode` \"left\" and \"inner\" add columns of the table")
    });
    let texts = spec.column_texts();
    mistakes.refuse(texts.is_empty() && adds_columns, || {
        let allowed = "name one column at least; `mode` \"semi\" adds none";
        refuse("columns", "an empty list", allowed)
    });
    let mut all = Vec::new();
    for text in texts {
        let chosen = choose(text, table).map_err(|error| blame("columns", error));
        for chosen in mistakes.check(chosen).into_iter().flatten() {
            let is_key = || {
                let column = chosen.expression.column();
                keys.iter().any(|key| key.column().is_some() && key.column() == column)
            };
            if is_all(text) && is_key() {
                continue;
            }
            mistakes.refuse(chosen.is_unnested, || {
                let allowed = "a `select` before this stage makes rows of the values of a list";
                refuse("columns", format!("`{text}`"), allowed)
            });
            all.push((chosen, is_all(text)));
        }
    }
    let mut names = HashSet::new();
    for (Chosen { name, .. }, is_of_all) in &all {
        mistakes.refuse(stream.column_with_name(name).is_some(), || {
            let value = format!("a column `{name}`, which the stream has");
            let renamed = format!("`{name} as table_{name}` gives the column another name");
            let left_out = format!("; `* except ({name})` leaves it out of `*`");
            refuse("columns", value, renamed + if *is_of_all { &left_out } else { "" })
        });
        mistakes.refuse(!names.insert(name), || {
            let value = format!("a second column `{name}`");
            refuse("columns", value, "`as` gives one of both another name")
        });
    }
    mistakes.all(|| Some(all.into_iter().map(|(chosen, _)| chosen).collect()))
}
