//! Checks a document against the JSON Schema of pipelines, and reports all mistakes.
//!
//! The schema is generated from the parameter structs of the operators, so the checks, the
//! published schema and the documentation cannot differ. The checker understands only the keywords
//! that such structs produce; a test makes sure that the schema of the registered operators has no
//! others.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::document::{JsonKey, JsonKind, JsonNode, JsonPlace};
use crate::suggest::suggestion;

/// A mistake, before its file, line and column are known.
#[derive(Debug)]
pub(crate) struct Mistake {
    pub(crate) place: JsonPlace,
    /// JSON path, such as `stages[1].with.n`.
    pub(crate) path: String,
    pub(crate) message: String,
}

/// Annotations and keywords that [`Checker`] understands.
#[cfg(test)]
pub(crate) const KEYWORDS: &[&str] = &[
    "$schema",
    "$defs",
    "$ref",
    "title",
    "description",
    "default",
    "format",
    "type",
    "properties",
    "required",
    "additionalProperties",
    "items",
    "minItems",
    "minLength",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "enum",
    "const",
    "oneOf",
    "anyOf",
    "uniqueItems",
];

/// Collects the mistakes of a document.
pub(crate) struct Checker<'a> {
    definitions: &'a Map<String, Value>,
    mistakes: Vec<Mistake>,
}

/// The mistakes of all values in `document` that do not fit `schema`.
pub(crate) fn check(document: &JsonNode, schema: &Value) -> Vec<Mistake> {
    let empty = Map::new();
    let definitions = schema["$defs"].as_object().unwrap_or(&empty);
    let mut checker = Checker { definitions, mistakes: Vec::new() };
    checker.value(document, schema, "");
    checker.mistakes
}

impl<'a> Checker<'a> {
    fn report(&mut self, place: &JsonPlace, path: &str, message: String) {
        let path = if path.is_empty() { "the document".to_owned() } else { path.to_owned() };
        self.mistakes.push(Mistake { place: place.clone(), path, message });
    }

    fn resolve(&self, schema: &'a Value) -> &'a Value {
        let name = schema["$ref"].as_str().and_then(|r| r.strip_prefix("#/$defs/"));
        name.and_then(|name| self.definitions.get(name)).unwrap_or(schema)
    }

    fn value(&mut self, node: &JsonNode, schema: &'a Value, path: &str) {
        let schema = self.resolve(schema);
        if let Some(branches) = schema["anyOf"].as_array() {
            return self.any_of(node, branches, path);
        }
        if let Some(choices) = self.choices(schema) {
            return self.choice(node, &choices, path);
        }
        if let Some(branches) = schema["oneOf"].as_array() {
            let is_name = |branch: &&'a Value| self.choices(self.resolve(branch)).is_some();
            let (names, others): (Vec<_>, Vec<_>) = branches.iter().partition(is_name);
            return match (&names[..], &others[..]) {
                ([_, ..], &[other]) => self.name_or_other(node, &names, other, path),
                _ => self.variant(node, branches, path),
            };
        }
        if !self.has_type(node, &schema["type"], path) {
            return;
        }
        match &node.kind {
            JsonKind::Object(members) => self.object(node, members, schema, path),
            JsonKind::Array(elements) => self.array(node, elements, schema, path),
            JsonKind::Number(text) => self.number(node, text, schema, path),
            JsonKind::Text(text) => self.text(node, text, schema, path),
            JsonKind::Bool(_) | JsonKind::Null => {}
        }
    }

    /// Checks an optional value against the branch that is not `null`, unless the value is `null`.
    fn any_of(&mut self, node: &JsonNode, branches: &'a [Value], path: &str) {
        let is_null = |branch: &&Value| branch["type"] == "null";
        if matches!(node.kind, JsonKind::Null) && branches.iter().any(|b| is_null(&b)) {
            return;
        }
        if let Some(branch) = branches.iter().find(|b| !is_null(b)) {
            self.value(node, branch, path);
        }
    }

    /// The values that `schema` lists; `None` if it lists no values.
    fn choices(&self, schema: &'a Value) -> Option<Vec<&'a str>> {
        if let Some(constant) = schema["const"].as_str() {
            return Some(vec![constant]);
        }
        if let Some(values) = schema["enum"].as_array() {
            return Some(values.iter().filter_map(Value::as_str).collect());
        }
        let branches = schema["oneOf"].as_array()?;
        let lists: Option<Vec<_>> =
            branches.iter().map(|b| self.choices(self.resolve(b))).collect();
        Some(lists?.concat())
    }

    fn choice(&mut self, node: &JsonNode, choices: &[&str], path: &str) {
        let text = node.text();
        if text.is_some_and(|text| choices.contains(&text)) {
            return;
        }
        let hint = text.and_then(|text| suggestion(text, choices.iter().copied()));
        let message = format!(
            "{} is not allowed here; allowed: {}{}",
            shown(node),
            list(choices),
            said(hint)
        );
        self.report(&node.place, path, message);
    }

    /// Checks a value that is one of several names, or else an object or a list.
    fn name_or_other(
        &mut self,
        node: &JsonNode,
        names: &[&'a Value],
        other: &'a Value,
        path: &str,
    ) {
        let resolved = self.resolve(other);
        if resolved["type"] == type_name(&node.kind) {
            return self.value(node, other, path);
        }
        let names = names.iter().filter_map(|name| self.choices(self.resolve(name)));
        let names = names.collect::<Vec<_>>().concat();
        let text = node.text();
        if text.is_some_and(|text| names.contains(&text)) {
            return;
        }
        let keys = resolved["properties"].as_object();
        let keys: Vec<_> = keys.into_iter().flatten().map(|(key, _)| format!("`{key}`")).collect();
        let other = match resolved["type"] == "array" {
            true => "a list of names".to_owned(),
            false => format!("an object with {}", keys.join(", ")),
        };
        let hint = text.and_then(|text| suggestion(text, names.iter().copied()));
        let message = format!(
            "{} is not allowed here; allowed: {}, or {other}{}",
            shown(node),
            list(&names),
            said(hint)
        );
        self.report(&node.place, path, message);
    }

    /// Checks an object with a tag, such as `operator`, that selects one of several schemas.
    fn variant(&mut self, node: &JsonNode, branches: &'a [Value], path: &str) {
        if !self.has_type(node, &Value::from("object"), path) {
            return;
        }
        let Some(tag) = tag_of(branches) else { return };
        let tag_value = |branch: &'a Value| branch["properties"][tag]["const"].as_str();
        let Some(member) = node.member(tag) else {
            let message = format!("`{tag}` is missing");
            return self.report(&node.place, path, message);
        };
        let branch = branches.iter().find(|b| tag_value(b) == member.text());
        match branch.filter(|_| member.text().is_some()) {
            Some(branch) => self.value(node, branch, path),
            None => {
                let choices: Vec<&str> = branches.iter().filter_map(tag_value).collect();
                self.choice(member, &choices, &join(path, tag));
            }
        }
    }

    /// Checks `type`, which is a name or a list of names. Reports a mismatch and returns false.
    fn has_type(&mut self, node: &JsonNode, types: &Value, path: &str) -> bool {
        let names: Vec<&str> = match types {
            Value::String(name) => vec![name],
            Value::Array(names) => names.iter().filter_map(Value::as_str).collect(),
            _ => return true,
        };
        let fits = names.iter().any(|&name| match (&node.kind, name) {
            (JsonKind::Number(text), "integer") => is_integer(text),
            _ => type_name(&node.kind) == name,
        });
        if !fits {
            let expected: Vec<_> = names.iter().map(|name| article(name)).collect();
            let message = format!("{} is not {}", shown(node), expected.join(" or "));
            self.report(&node.place, path, message);
        }
        fits
    }

    fn object(
        &mut self,
        node: &JsonNode,
        members: &[(JsonKey, JsonNode)],
        schema: &'a Value,
        path: &str,
    ) {
        let empty = Map::new();
        let properties = schema["properties"].as_object();
        let known: Vec<&str> = properties.unwrap_or(&empty).keys().map(String::as_str).collect();
        let mut names = HashSet::with_capacity(members.len());
        for (key, value) in members {
            let inner = join(path, &key.name);
            if !names.insert(&key.name) {
                self.report(&key.place, &inner, format!("duplicate key `{}`", key.name));
            }
            match properties.and_then(|p| p.get(&key.name)) {
                Some(schema) => self.value(value, schema, &inner),
                None if schema["additionalProperties"] == false => {
                    let hint = suggestion(&key.name, known.iter().copied());
                    let allowed = known.iter().map(|k| format!("`{k}`")).collect::<Vec<_>>();
                    let message = format!(
                        "there is no key `{}` here; allowed: {}{}",
                        key.name,
                        allowed.join(", "),
                        said(hint)
                    );
                    self.report(&key.place, &inner, message);
                }
                None if schema["additionalProperties"].is_object() => {
                    self.value(value, &schema["additionalProperties"], &inner);
                }
                None => {}
            }
        }
        let required =
            schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
        for name in required.filter(|name| node.member(name).is_none()) {
            self.report(&node.place, path, format!("`{name}` is missing"));
        }
    }

    fn array(&mut self, node: &JsonNode, elements: &[JsonNode], schema: &'a Value, path: &str) {
        let least = schema["minItems"].as_u64().unwrap_or(0);
        if (elements.len() as u64) < least {
            let message = format!("needs at least {least} element{}", plural(least));
            self.report(&node.place, path, message);
        }
        for (index, element) in elements.iter().enumerate() {
            self.value(element, &schema["items"], &format!("{path}[{index}]"));
        }
    }

    fn text(&mut self, node: &JsonNode, text: &str, schema: &'a Value, path: &str) {
        let least = schema["minLength"].as_u64().unwrap_or(0);
        if (text.chars().count() as u64) < least {
            let message = format!("needs at least {least} character{}", plural(least));
            self.report(&node.place, path, message);
        }
    }

    fn number(&mut self, node: &JsonNode, text: &str, schema: &'a Value, path: &str) {
        let range = NumberRange::of(schema);
        if !range.contains(text) {
            let message = format!("{text} is out of range; allowed: {}", range.describe());
            self.report(&node.place, path, message);
        } else if text.parse().is_ok_and(f64::is_infinite) {
            let message = format!("{text} is out of the range of float64");
            self.report(&node.place, path, message);
        }
    }
}

/// The name of the member whose constant value distinguishes the branches.
fn tag_of(branches: &[Value]) -> Option<&str> {
    let properties = branches.first()?["properties"].as_object()?;
    properties.iter().find(|(_, schema)| schema["const"].is_string()).map(|(name, _)| name.as_str())
}

/// The range of numbers that a schema allows.
struct NumberRange {
    low: Option<String>,
    is_low_exclusive: bool,
    high: Option<String>,
    is_high_exclusive: bool,
}

impl NumberRange {
    fn of(schema: &Value) -> Self {
        let limit = |name: &str| schema[name].as_number().map(ToString::to_string);
        let (low, high) = (limit("minimum"), limit("maximum"));
        let format_high = match schema["format"].as_str() {
            Some("uint8") => Some(u64::from(u8::MAX)),
            Some("uint16") => Some(u64::from(u16::MAX)),
            Some("uint32") => Some(u64::from(u32::MAX)),
            Some("uint" | "uint64") => Some(u64::MAX),
            _ => None,
        };
        Self {
            is_low_exclusive: low.is_none() && schema["exclusiveMinimum"].is_number(),
            low: low.or_else(|| limit("exclusiveMinimum")),
            is_high_exclusive: high.is_none() && schema["exclusiveMaximum"].is_number(),
            high: high
                .or_else(|| limit("exclusiveMaximum"))
                .or_else(|| format_high.map(|high| high.to_string())),
        }
    }

    fn contains(&self, text: &str) -> bool {
        let above = |low: &String| match compare(text, low) {
            Some(std::cmp::Ordering::Equal) => !self.is_low_exclusive,
            order => order == Some(std::cmp::Ordering::Greater),
        };
        let below = |high: &String| match compare(text, high) {
            Some(std::cmp::Ordering::Equal) => !self.is_high_exclusive,
            order => order == Some(std::cmp::Ordering::Less),
        };
        self.low.as_ref().is_none_or(above) && self.high.as_ref().is_none_or(below)
    }

    fn describe(&self) -> String {
        let low_word = if self.is_low_exclusive { "more than" } else { "at least" };
        let high_word = if self.is_high_exclusive { "less than" } else { "at most" };
        match (&self.low, &self.high) {
            (Some(low), Some(high)) if !self.is_low_exclusive && !self.is_high_exclusive => {
                format!("{low} to {high}")
            }
            (Some(low), Some(high)) => format!("{low_word} {low}, {high_word} {high}"),
            (Some(low), None) => format!("{low_word} {low}"),
            (None, Some(high)) => format!("{high_word} {high}"),
            (None, None) => "any number".to_owned(),
        }
    }
}

/// Compares two numbers as written: exactly if both are integers, and otherwise as floats.
fn compare(left: &str, right: &str) -> Option<std::cmp::Ordering> {
    match (left.parse::<i128>(), right.parse::<i128>()) {
        (Ok(left), Ok(right)) => Some(left.cmp(&right)),
        _ => left.parse::<f64>().ok()?.partial_cmp(&right.parse::<f64>().ok()?),
    }
}

fn is_integer(text: &str) -> bool {
    text.strip_prefix('-').unwrap_or(text).bytes().all(|b| b.is_ascii_digit())
}

fn type_name(kind: &JsonKind) -> &'static str {
    match kind {
        JsonKind::Null => "null",
        JsonKind::Bool(_) => "boolean",
        JsonKind::Number(_) => "number",
        JsonKind::Text(_) => "string",
        JsonKind::Array(_) => "array",
        JsonKind::Object(_) => "object",
    }
}

fn article(name: &str) -> String {
    match name {
        "null" => "null".to_owned(),
        "integer" | "object" | "array" => format!("an {name}"),
        _ => format!("a {name}"),
    }
}

/// The value as in the file, or the type of a long value.
fn shown(node: &JsonNode) -> String {
    match &node.kind {
        JsonKind::Null => "null".to_owned(),
        JsonKind::Bool(value) => value.to_string(),
        JsonKind::Number(text) => text.clone(),
        JsonKind::Text(text) if text.chars().count() <= 60 => format!("{text:?}"),
        JsonKind::Text(_) => "this text".to_owned(),
        JsonKind::Array(_) => "this array".to_owned(),
        JsonKind::Object(_) => "this object".to_owned(),
    }
}

fn list(choices: &[&str]) -> String {
    choices.iter().map(|choice| format!("{choice:?}")).collect::<Vec<_>>().join(", ")
}

fn said(hint: Option<&str>) -> String {
    hint.map_or_else(String::new, |hint| format!("; did you mean `{hint}`?"))
}

fn plural(count: u64) -> &'static str {
    if count == 1 { "" } else { "s" }
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}
