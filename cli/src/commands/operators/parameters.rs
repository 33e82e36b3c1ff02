//! Parameters for people, from their JSON Schema.
//!
//! ```text
//! counters   whole number from 1 to 67108864, default 1000
//!            How many items are monitored.
//! ```

use serde_json::Value;
use std::borrow::Cow;

/// Indent of descriptions where the names of the parameters take half of the width.
const INDENT_NARROW: usize = 6;

/// One block for each parameter, in lines of at most `width`; required ones first, then by name.
pub(super) fn describe(with: &Value, schema: &Value, width: usize) -> String {
    let with = resolve(with, schema);
    let empty = serde_json::Map::new();
    let properties = with["properties"].as_object().unwrap_or(&empty);
    if properties.is_empty() {
        return "\nIt has no parameters.\n".to_owned();
    }
    let is_required = |name: &str| {
        with["required"].as_array().is_some_and(|names| names.iter().any(|n| n == name))
    };
    let beside = 4 + properties.keys().map(String::len).max().unwrap_or(0);
    let is_narrow = 2 * beside > width;
    let indent = if is_narrow { INDENT_NARROW } else { beside };
    let mut names: Vec<&String> = properties.keys().collect();
    names.sort_by_key(|name| (!is_required(name), *name));
    let mut text = String::new();
    for name in names {
        let parameter = Parameter::new(&properties[name], schema);
        let need = if is_required(name) { ", required".to_owned() } else { parameter.default() };
        let kind = wrapped(&format!("{}{need}", parameter.kind()), indent, width);
        if is_narrow {
            text.push_str(&format!("\n  {name}\n{kind}"));
        } else {
            text.push_str(&format!("\n  {name:0$}{1}", indent - 2, kind.trim_start()));
        }
        text.push_str(&wrapped(parameter.description(), indent, width));
        parameter.add_choices(&mut text, indent, width);
    }
    text
}

/// The schema that a reference stands for.
fn resolve<'a>(value: &'a Value, schema: &'a Value) -> &'a Value {
    let reference = value["$ref"].as_str().and_then(|reference| reference.strip_prefix('#'));
    reference.and_then(|pointer| schema.pointer(pointer)).unwrap_or(value)
}

struct Parameter<'a> {
    /// The schema of the field.
    stated: &'a Value,
    /// The schema of its values, other than null.
    allowed: &'a Value,
    /// The schema with the words that are allowed: of a list, that of its items.
    words: &'a Value,
}

impl<'a> Parameter<'a> {
    fn new(stated: &'a Value, schema: &'a Value) -> Self {
        let branches = stated["anyOf"].as_array();
        let branch = branches.and_then(|all| all.iter().find(|branch| branch["type"] != "null"));
        let allowed = resolve(branch.unwrap_or(stated), schema);
        let words = if type_of(allowed) == "array" { &allowed["items"] } else { allowed };
        Self { stated, allowed, words: resolve(words, schema) }
    }

    fn description(&self) -> &'a str {
        let own = self.stated["description"].as_str();
        own.or_else(|| self.allowed["description"].as_str()).unwrap_or_default()
    }

    /// The words that are allowed, and an object beside them.
    fn choices(&self) -> impl Iterator<Item = (Cow<'a, str>, &'a str)> {
        let choices = self.words["oneOf"].as_array().map_or(&[][..], Vec::as_slice);
        let has_words = choices.iter().any(|choice| choice["const"].is_string());
        choices.iter().filter(move |_| has_words).filter_map(|choice| {
            let word = match choice["const"].as_str() {
                Some(word) => word.into(),
                None => {
                    let (key, _) = choice["properties"].as_object()?.iter().next()?;
                    format!("{{\"{key}\": …}}").into()
                }
            };
            Some((word, choice["description"].as_str().unwrap_or_default()))
        })
    }

    fn kind(&self) -> String {
        if self.choices().next().is_some() {
            let is_list = type_of(self.allowed) == "array";
            return if is_list { "list of the words below" } else { "one of the words below" }
                .into();
        }
        let types = self.allowed["type"].as_array().into_iter().flatten();
        let branches = self.allowed["oneOf"].as_array().into_iter().flatten();
        let mut kinds = types.chain(branches.map(|branch| &branch["type"]));
        if kinds.any(|kind| kind == "array") {
            return "text or list of texts".to_owned();
        }
        match type_of(self.allowed) {
            "array" => {
                let items = type_of(&self.allowed["items"]);
                format!("list of {}s", if items == "string" { "text" } else { items })
            }
            "string" => "text".to_owned(),
            "boolean" => "true or false".to_owned(),
            "integer" => format!("whole number{}", self.range()),
            other => format!("{other}{}", self.range()),
        }
    }

    fn range(&self) -> String {
        let limit = |name: &str| match &self.allowed[name] {
            Value::Number(number) if !number.is_f64() => Some(number.to_string()),
            number => number.as_f64().map(|number| number.to_string()),
        };
        match (limit("minimum"), limit("maximum")) {
            (Some(low), Some(high)) => format!(" from {low} to {high}"),
            (Some(low), None) => format!(" from {low}"),
            (None, Some(high)) => format!(" up to {high}"),
            (None, None) => String::new(),
        }
    }

    fn default(&self) -> String {
        match &self.stated["default"] {
            Value::Null => ", optional".to_owned(),
            Value::String(word) if self.choices().next().is_some() => format!(", default {word}"),
            default => format!(", default {default}"),
        }
    }

    fn add_choices(&self, text: &mut String, indent: usize, width: usize) {
        let longest = self.choices().map(|(word, _)| word.chars().count()).max().unwrap_or(0);
        for (word, description) in self.choices() {
            text.push_str(&format!("{:indent$}  {word:longest$}", ""));
            let block = wrapped(description, indent + longest + 4, width);
            let block = block.trim_start();
            text.push_str(&if block.is_empty() { "\n".to_owned() } else { format!("  {block}") });
        }
    }
}

/// The name of the type, other than null.
fn type_of(schema: &Value) -> &str {
    let names = schema["type"].as_array().and_then(|names| names.iter().find(|n| *n != "null"));
    names.unwrap_or(&schema["type"]).as_str().unwrap_or("value")
}

/// The words of `description` in lines of at most `width`, each after `indent` blanks.
pub(super) fn wrapped(description: &str, indent: usize, width: usize) -> String {
    let mut text = String::new();
    let mut column = 0;
    for word in description.split_whitespace() {
        let len = word.chars().count();
        if column > 0 && column + 1 + len <= width {
            text.push(' ');
            column += 1;
        } else {
            if column > 0 {
                text.push('\n');
            }
            text.push_str(&" ".repeat(indent));
            column = indent;
        }
        text.push_str(word);
        column += len;
    }
    if column > 0 {
        text.push('\n');
    }
    text
}
