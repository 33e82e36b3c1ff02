//! A JSON text as a tree in which every value knows its place in the file.
//!
//! serde_json forgets positions, silently keeps the last of two equal keys and turns 2^64 into a
//! float. The tree of jsonc-parser keeps all three, so that crate reads the text, in strict mode.

use std::iter;
use std::ops::Range;

use jsonc_parser::ast::{self, ObjectPropName};
use jsonc_parser::common::Ranged;
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};
use serde_json::{Map, Number, Value};

/// The place of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum JsonPlace {
    /// Byte range in the file.
    File(Range<usize>),
    /// The override of this index.
    Override(usize),
}

/// A key of an object.
#[derive(Debug, Clone)]
pub(crate) struct JsonKey {
    pub(crate) name: String,
    pub(crate) place: JsonPlace,
}

#[derive(Debug, Clone)]
pub(crate) struct JsonNode {
    pub(crate) place: JsonPlace,
    pub(crate) kind: JsonKind,
}

#[derive(Debug, Clone)]
pub(crate) enum JsonKind {
    Null,
    Bool(bool),
    /// A number as written, so that no number is rounded before the checks.
    Number(String),
    Text(String),
    Array(Vec<JsonNode>),
    /// Members in the order of the file, equal keys included.
    Object(Vec<(JsonKey, JsonNode)>),
}

/// The reason why a text is not JSON, and the place of the fault.
pub(crate) struct SyntaxError {
    pub(crate) place: JsonPlace,
    pub(crate) message: String,
}

const STRICT: ParseOptions = ParseOptions {
    allow_comments: false,
    allow_loose_object_property_names: false,
    allow_trailing_commas: false,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

/// Reads a strict JSON text.
pub(crate) fn parse(text: &str) -> Result<JsonNode, SyntaxError> {
    let parsed = parse_to_ast(text, &CollectOptions::default(), &STRICT).map_err(|error| {
        let range = error.range();
        SyntaxError {
            place: JsonPlace::File(range.start..range.end),
            message: error.kind().to_string(),
        }
    })?;
    match parsed.value {
        Some(value) => Ok(node(&value)),
        None => Err(SyntaxError {
            place: JsonPlace::File(0..0),
            message: "the file is empty; expected an object".to_owned(),
        }),
    }
}

fn node(value: &ast::Value) -> JsonNode {
    let kind = match value {
        ast::Value::NullKeyword(_) => JsonKind::Null,
        ast::Value::BooleanLit(literal) => JsonKind::Bool(literal.value),
        ast::Value::NumberLit(literal) => JsonKind::Number(literal.value.to_owned()),
        ast::Value::StringLit(literal) => JsonKind::Text(literal.value.clone().into_owned()),
        ast::Value::Array(array) => JsonKind::Array(array.elements.iter().map(node).collect()),
        ast::Value::Object(object) => JsonKind::Object(
            object.properties.iter().map(|p| (key(&p.name), node(&p.value))).collect(),
        ),
    };
    JsonNode { place: place(value.range()), kind }
}

fn key(name: &ObjectPropName) -> JsonKey {
    JsonKey { name: name.as_str().to_owned(), place: place(name.range()) }
}

fn place(range: jsonc_parser::common::Range) -> JsonPlace {
    JsonPlace::File(range.start..range.end)
}

impl JsonNode {
    /// A value of override `index`, which is not in the file.
    pub(crate) fn from_override(index: usize, value: &Value) -> Self {
        let inner = |value| Self::from_override(index, value);
        let kind = match value {
            Value::Null => JsonKind::Null,
            Value::Bool(value) => JsonKind::Bool(*value),
            Value::Number(value) => JsonKind::Number(value.to_string()),
            Value::String(value) => JsonKind::Text(value.clone()),
            Value::Array(values) => JsonKind::Array(values.iter().map(inner).collect()),
            Value::Object(members) => JsonKind::Object(
                members
                    .iter()
                    .map(|(name, value)| {
                        let place = JsonPlace::Override(index);
                        (JsonKey { name: name.clone(), place }, inner(value))
                    })
                    .collect(),
            ),
        };
        Self { place: JsonPlace::Override(index), kind }
    }

    /// The member of this name; `None` if this is no object or has no such member.
    pub(crate) fn member(&self, name: &str) -> Option<&JsonNode> {
        self.members().find(|(key, _)| key.name == name).map(|(_, value)| value)
    }

    /// The members of an object.
    pub(crate) fn members(&self) -> impl Iterator<Item = &(JsonKey, JsonNode)> {
        match &self.kind {
            JsonKind::Object(members) => members.iter(),
            _ => [].iter(),
        }
    }

    /// The elements of an array.
    pub(crate) fn elements(&self) -> &[JsonNode] {
        match &self.kind {
            JsonKind::Array(elements) => elements,
            _ => &[],
        }
    }

    /// The text of a string.
    pub(crate) fn text(&self) -> Option<&str> {
        match &self.kind {
            JsonKind::Text(text) => Some(text),
            _ => None,
        }
    }

    /// This value and the values inside it, down to `path` (object members and array indices).
    pub(crate) fn descend<'a>(&'a self, path: &'a [&str]) -> impl Iterator<Item = &'a JsonNode> {
        let mut rest = path.iter();
        iter::successors(Some(self), move |node| {
            let step = rest.next()?;
            match &node.kind {
                JsonKind::Array(elements) => elements.get(step.parse::<usize>().ok()?),
                _ => node.member(step),
            }
        })
    }

    /// The value without places. The last one of equal keys stays, and numbers are rounded to their
    /// types, so the caller checks the document before.
    pub(crate) fn to_value(&self) -> Value {
        match &self.kind {
            JsonKind::Null => Value::Null,
            JsonKind::Bool(value) => Value::Bool(*value),
            JsonKind::Number(text) => number(text).map_or(Value::Null, Value::Number),
            JsonKind::Text(text) => Value::String(text.clone()),
            JsonKind::Array(elements) => {
                Value::Array(elements.iter().map(JsonNode::to_value).collect())
            }
            JsonKind::Object(members) => Value::Object(
                members
                    .iter()
                    .map(|(key, value)| (key.name.clone(), value.to_value()))
                    .collect::<Map<_, _>>(),
            ),
        }
    }
}

fn number(text: &str) -> Option<Number> {
    text.parse::<u64>()
        .map(Number::from)
        .or_else(|_| text.parse::<i64>().map(Number::from))
        .ok()
        .or_else(|| Number::from_f64(text.parse().ok()?))
}
