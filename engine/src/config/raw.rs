//! The structs that mirror the JSON, and the schema made from them.

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::placement::Placement;
use crate::registry::{RegisteredOperator, Registry};

/// The whole file.
#[derive(Debug, Deserialize)]
pub(super) struct RawPipeline {
    pub(super) name: Option<String>,
    #[serde(default)]
    pub(super) placement: Placement,
    #[serde(default)]
    pub(super) pin: bool,
    pub(super) memory_max: Option<usize>,
    #[serde(default)]
    pub(super) queue: RawQueue,
    pub(super) rejected: Option<String>,
    pub(super) stages: Vec<RawStage>,
}

/// Bounds of every queue between two threads.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RawQueue {
    /// Maximum number of waiting batches.
    #[schemars(range(min = 1, max = 65_536))]
    pub(super) batches: usize,
    /// Maximum bytes of waiting batches; a larger batch passes alone. Lowered where all queues
    /// together would take more than a quarter of the memory that `memory_max` leaves.
    #[schemars(range(min = 1))]
    pub(super) bytes: u64,
}

impl Default for RawQueue {
    fn default() -> Self {
        let limits = crate::channel::QueueLimits::default();
        Self { batches: limits.batches, bytes: limits.bytes }
    }
}

/// One stage.
#[derive(Debug, Deserialize)]
pub(super) struct RawStage {
    pub(super) id: String,
    pub(super) operator: String,
    #[serde(default)]
    pub(super) inputs: Vec<String>,
    #[serde(default)]
    pub(super) cores: Vec<usize>,
    pub(super) workers: Option<usize>,
    #[serde(default)]
    pub(super) with: Map<String, Value>,
}

/// The JSON Schema (draft 2020-12) of pipelines made of the registered operators.
///
/// # Examples
/// ```
/// use trommel_engine::config::schema;
/// use trommel_engine::registry::Registry;
///
/// let schema = schema(&Registry::new());
/// assert_eq!(schema["properties"]["stages"]["minItems"], 1);
/// ```
#[must_use]
pub fn schema(registry: &Registry) -> Value {
    schema_beside(registry, &[])
}

/// The schema, in which the operators `supplied` have no parameters.
pub(super) fn schema_beside(registry: &Registry, supplied: &[&str]) -> Value {
    let mut generator = SchemaSettings::draft2020_12().into_generator();
    let registered = registry.entries().filter(|entry| !supplied.contains(&entry.name()));
    let mut stages: Vec<Value> =
        registered.map(|entry| stage_schema(entry, &mut generator)).collect();
    stages.extend(supplied.iter().map(|operator| supplied_schema(operator)));
    let placement = generator.subschema_for::<Placement>();
    let queue = generator.subschema_for::<RawQueue>();
    let mut schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Trommel pipeline",
        "description": "Stages that read, transform and write streams of record batches.",
        "type": "object",
        "properties": {
            "$schema": { "type": "string", "description": "Path of this schema, for editors." },
            "name": { "type": "string", "minLength": 1, "description": "Names the pipeline in reports." },
            "placement": placement,
            "pin": { "type": "boolean", "default": false, "description": "Pins every thread to a core of its own, not only the threads of named cores." },
            "memory_max": { "type": "integer", "format": "uint64", "minimum": 1_048_576, "description": "Bytes for the state of all stages that grows with the stream, such as dictionaries and the text of monitored items; when left out, half of the memory that the process may use." },
            "queue": queue,
            "rejected": { "type": "string", "minLength": 1, "description": "Id of the stage that gets the rows that other stages cannot use, with their places and the reasons. A stage whose `on_error` is set keeps to it." },
            "stages": { "type": "array", "minItems": 1, "items": { "oneOf": stages } }
        },
        "required": ["stages"],
        "additionalProperties": false,
        "$defs": generator.take_definitions(true)
    });
    describe_for_json(&mut schema);
    schema
}

/// Leaves out what only rustdoc shows: examples in Rust, and the targets of links.
fn describe_for_json(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            for (name, member) in members {
                match member {
                    Value::String(text) if name == "description" => *text = without_rustdoc(text),
                    member => describe_for_json(member),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(describe_for_json),
        _ => {}
    }
}

/// A documentation comment without its examples, code and targets of links.
fn without_rustdoc(text: &str) -> String {
    let (mut is_code, mut is_example) = (false, false);
    let mut kept = Vec::new();
    for line in text.lines() {
        let is_fence = line.starts_with("```");
        is_code ^= is_fence;
        if !is_code && line.starts_with("# ") {
            is_example = line == "# Examples";
        }
        if !(is_code || is_fence || is_example) {
            kept.push(line);
        }
    }
    unlinked(kept.join("\n").trim_end())
}

/// ``[`Read`](crate::Read)`` and ``[`Read`]`` become `` `Read` ``.
fn unlinked(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, link)) = rest.split_once("[`") {
        plain += before;
        plain.push('`');
        let Some((name, after)) = link.split_once("`]") else {
            plain.insert(plain.len() - 1, '[');
            rest = link;
            continue;
        };
        plain += name;
        plain.push('`');
        let target = after.strip_prefix('(').and_then(|target| target.split_once(')'));
        rest = target.map_or(after, |(_, after)| after);
    }
    plain + rest
}

fn stage_schema(entry: &RegisteredOperator, generator: &mut SchemaGenerator) -> Value {
    let with = entry.schema(generator);
    let definition = with.get("$ref").and_then(Value::as_str).map(str::to_owned);
    let needs_parameters = definition
        .and_then(|reference| {
            let name = reference.strip_prefix("#/$defs/")?.to_owned();
            generator.definitions().get(&name)?.get("required").cloned()
        })
        .is_some();
    let mut stage = supplied_schema(entry.name());
    stage["description"] = entry.summary().into();
    stage["properties"]["with"] = with.into();
    if needs_parameters {
        stage["required"] = json!(["id", "operator", "with"]);
    }
    stage
}

/// A stage without parameters.
fn supplied_schema(operator: &str) -> Value {
    json!({
        "type": "object",
        "properties": {
            "id": { "type": "string", "minLength": 1, "description": "Names the stage in inputs, queries, reports and errors." },
            "operator": { "const": operator },
            "inputs": {
                "type": "array", "items": { "type": "string" },
                "description": "Ids of the stages that it reads; `stage.port` for an output of a stage with several."
            },
            "cores": {
                "type": "array", "items": { "type": "integer", "format": "uint", "minimum": 0 },
                "description": "Cores for its parts: a thread of its own on each."
            },
            "workers": {
                "type": "integer", "format": "uint", "minimum": 1, "maximum": 1024,
                "description": "Number of workers that do its work side by side, if the work can be divided; when left out, one for each core where this pays. 1 keeps it in one place."
            }
        },
        "required": ["id", "operator"],
        "additionalProperties": false
    })
}

#[cfg(test)]
mod tests {
    use super::without_rustdoc;

    #[test]
    fn descriptions_for_json_have_no_rust() {
        let text = "Reads [`Lines`](crate::Lines) and [`Sets`].\n\n# Examples\n```\n# let a = 1;\n\
                    use b;\n```\n\n# State\nNone, see [0, 1] and [`open.";
        let plain = "Reads `Lines` and `Sets`.\n\n# State\nNone, see [0, 1] and [`open.";
        assert_eq!(without_rustdoc(text), plain);
    }
}
