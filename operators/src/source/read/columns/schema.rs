//! Columns of a table: named in the configuration, and chosen.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use arrow_schema::{DataType, Field, Fields, Schema, SchemaRef};
use schemars::{JsonSchema, SchemaGenerator, json_schema};
use serde::de::{Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use trommel_engine::error::{BindError, BindErrorKind};
use trommel_engine::operator::Demand;
use trommel_engine::suggest::suggestion;

use crate::shared::columns::{TYPE_NAMES, type_named};
use crate::shared::parameters::{Mistakes, refuse};
use crate::source::read::error::ReadError;

/// Maximum columns that a message names.
const NAMES_SHOWN: usize = 20;

/// Columns of a table. Each column may have nulls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TableSchema(pub(crate) Fields);

impl TableSchema {
    /// The columns of `schema`. Each column may have nulls.
    pub(crate) fn of(schema: &Schema) -> Self {
        let nullable = |field: &Arc<Field>| Arc::new(field.as_ref().clone().with_nullable(true));
        Self(schema.fields().iter().map(nullable).collect())
    }
}

/// The columns of these `names`, in this order; all columns if there are no names.
///
/// # Errors
/// If a column is missing or named twice.
pub(crate) fn choose(all: &Fields, names: &[String]) -> Result<SchemaRef, BindError> {
    if names.is_empty() {
        return Ok(Arc::new(Schema::new(all.clone())));
    }
    let mut mistakes = Mistakes::default();
    let mut chosen: Vec<Arc<Field>> = Vec::with_capacity(names.len());
    for name in names {
        mistakes.refuse(chosen.iter().any(|field| field.name() == name), || {
            refuse("columns", format!("`{name}` twice"), "name each column once")
        });
        let field = all.find(name).map(|(_, field)| Arc::clone(field));
        chosen.extend(mistakes.check(field.ok_or_else(|| missing(all, name))));
    }
    mistakes.all(|| Some(Arc::new(Schema::new(chosen))))
}

/// The error for a column that a table does not have.
fn missing(all: &Fields, name: &str) -> BindError {
    let found = all.iter().map(|field| field.name().as_str());
    let near = suggestion(name, found.clone())
        .map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
    let found: Vec<_> = found.take(NAMES_SHOWN).map(|name| format!("`{name}`")).collect();
    let allowed = format!("the table has the columns {}{near}", found.join(", "));
    refuse("columns", format!("`{name}`"), allowed)
}

/// The columns that later stages need.
pub(crate) fn demanded(schema: &SchemaRef, demand: &Demand) -> SchemaRef {
    Arc::new(schema.project(&demand.places(schema)).expect("columns of the schema"))
}

/// The error for a file whose columns cannot be inferred.
pub(crate) fn not_inferred(path: &Arc<str>, reason: &str) -> BindError {
    let (path, reason) = (Arc::clone(path), reason.to_owned());
    BindErrorKind::Other(Box::new(ReadError::NoColumns { path, reason })).at("schema")
}

/// Type of a column or of a member.
struct ColumnType(DataType);

struct Types;

impl<'de> Visitor<'de> for Types {
    type Value = ColumnType;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a type, a list of one type, or an object of names and types")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<ColumnType, E> {
        let lower = name.to_lowercase();
        type_named(&lower).map(ColumnType).ok_or_else(|| {
            let near = suggestion(&lower, TYPE_NAMES.iter().copied())
                .map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
            E::custom(format!("`{name}` is no type; types are {}{near}", TYPE_NAMES.join(", ")))
        })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut types: A) -> Result<ColumnType, A::Error> {
        let (item, more) = (types.next_element()?, types.next_element::<ColumnType>()?);
        match (item, more) {
            (Some(ColumnType(item)), None) => Ok(ColumnType(DataType::new_list(item, true))),
            _ => Err(A::Error::custom("a list of values has one type, such as [\"text\"]")),
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<ColumnType, A::Error> {
        Ok(ColumnType(DataType::Struct(fields_of(members)?)))
    }
}

fn fields_of<'de, A: MapAccess<'de>>(mut members: A) -> Result<Fields, A::Error> {
    let mut fields = Vec::new();
    while let Some((name, ColumnType(kind))) = members.next_entry::<String, ColumnType>()? {
        fields.push(Field::new(name, kind, true));
    }
    if fields.is_empty() {
        return Err(A::Error::custom("an object names one member at least, with its type"));
    }
    Ok(fields.into())
}

impl<'de> Deserialize<'de> for ColumnType {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Types)
    }
}

struct Columns;

impl<'de> Visitor<'de> for Columns {
    type Value = TableSchema;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of the names of columns and their types")
    }

    fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<TableSchema, A::Error> {
        fields_of(members).map(TableSchema)
    }
}

impl<'de> Deserialize<'de> for TableSchema {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Columns)
    }
}

impl JsonSchema for TableSchema {
    fn schema_name() -> Cow<'static, str> {
        "TableSchema".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> schemars::Schema {
        json_schema!({
            "type": "object",
            "additionalProperties": {
                "description": "Name of a type, a list of one type for a list of values, or an \
                                object of the names and types of members.",
                "type": ["string", "array", "object"]
            }
        })
    }
}
