//! The step from a document to a checked topology.

use std::collections::{HashMap, HashSet};

use serde_json::{Value, json};

use super::check::{Mistake, check};
use super::document::{self, JsonNode, Place};
use super::error::{ConfigErrors, SourceText};
use super::overrides::Override;
use super::raw::{RawPipeline, RawStage, schema_beside};
use super::supplied::Supplied;
use crate::channel::QueueLimits;
use crate::error::{GraphError, GraphErrorKind, RunError};
use crate::graph::{Graph, OutputPort, StageId, Topology};
use crate::registry::Registry;
use crate::runtime::{RunOptions, Running};
use crate::suggest::suggestion;

/// A pipeline that was read from JSON: checked, bound, ready to start.
#[derive(Debug)]
#[non_exhaustive]
pub struct Pipeline {
    /// Its name; the file's if it has none.
    pub name: String,
    /// Its stages.
    pub topology: Topology,
    /// The options to run it with.
    pub options: RunOptions,
}

impl Pipeline {
    /// Starts the pipeline with the options it was configured with.
    ///
    /// # Errors
    /// As [`Topology::start`].
    pub fn start(self) -> Result<Running, RunError> {
        self.topology.start(self.options)
    }
}

/// Reads a pipeline from JSON text. Errors call the text `file`; `overrides` replace values of
/// it.
///
/// # Examples
/// ```
/// use trommel_engine::config::load;
/// use trommel_engine::registry::Registry;
///
/// let text = "{\n  \"nmae\": \"night\",\n  \"stages\": []\n}";
/// let errors = load(text, "night.json", &Registry::new(), &[]).unwrap_err();
/// let [name, stages] = errors.0.try_into().unwrap();
/// assert_eq!((name.line, name.path.as_str()), (2, "nmae"));
/// assert!(name.message.ends_with("did you mean `name`?"));
/// assert!(stages.to_string().starts_with("night.json:3:13: stages: needs at least 1 element"));
/// ```
///
/// # Errors
/// All mistakes in the text, as far as one does not hide another.
pub fn load(
    text: &str,
    file: &str,
    registry: &Registry,
    overrides: &[Override],
) -> Result<Pipeline, ConfigErrors> {
    load_supplied(text, file, registry, overrides, Supplied::new())
}

/// As [`load`], with operators of the program for some of the stages.
///
/// # Errors
/// As [`load`], and if a stage and the operator that is supplied for it do not fit.
pub fn load_supplied(
    text: &str,
    file: &str,
    registry: &Registry,
    overrides: &[Override],
    supplied: Supplied,
) -> Result<Pipeline, ConfigErrors> {
    let source = SourceText::new(text, file, overrides);
    load_source(&source, registry, supplied).map_err(|mistakes| source.errors(mistakes))
}

fn load_source(
    source: &SourceText,
    registry: &Registry,
    supplied: Supplied,
) -> Result<Pipeline, Vec<Mistake>> {
    let document = read_document(source)?;
    let mut mistakes = check(&document, &schema_beside(registry, &supplied.operators()));
    check_references(&document, &mut mistakes);
    check_supplied(&document, &supplied, &mut mistakes);
    if !mistakes.is_empty() {
        mistakes.extend(mistakes_of_rest(&document, &mistakes, registry, supplied));
        return Err(mistakes);
    }
    let raw = raw_pipeline(document.to_value());
    let name = raw.name.clone().unwrap_or_else(|| source.file.to_owned());
    let limits = QueueLimits { batches: raw.queue.batches, bytes: raw.queue.bytes };
    let topology = graph(raw, &document, registry, supplied)?
        .build()
        .map_err(|errors| errors.0.iter().map(|e| locate(e, &document)).collect::<Vec<_>>())?;
    Ok(Pipeline { name, topology, options: RunOptions::new().queue(limits) })
}

/// The structs of a document that fits the schema.
fn raw_pipeline(document: Value) -> RawPipeline {
    serde_json::from_value(document).expect("the schema of pipelines describes the same structs")
}

/// Mistakes that only binding finds, of the stages without `mistakes` whose inputs have none
/// either.
fn mistakes_of_rest(
    document: &JsonNode,
    mistakes: &[Mistake],
    registry: &Registry,
    supplied: Supplied,
) -> Vec<Mistake> {
    let is_wrong = |index: usize| {
        let path = format!("stages[{index}]");
        mistakes.iter().any(|mistake| mistake.path.starts_with(&path))
    };
    let mut ids: HashSet<&str> = HashSet::new();
    let mut rest = Vec::new();
    for (index, stage) in stages(document).iter().enumerate() {
        let inputs = stage.member("inputs").map_or(&[][..], JsonNode::elements);
        let mut names = inputs.iter().filter_map(JsonNode::text);
        // A stage may stand before its inputs; the mistakes of such a stage are told later.
        let is_right = !is_wrong(index)
            && names.all(|n| ids.contains(split_output(n, |id| ids.contains(id)).0));
        if let Some(id) = id(stage).filter(|_| is_right) {
            ids.insert(id);
            rest.push(stage.to_value());
        }
    }
    if rest.is_empty() {
        return Vec::new();
    }
    match graph(raw_pipeline(json!({ "stages": rest })), document, registry, supplied) {
        Err(mistakes) => mistakes,
        Ok(graph) => {
            let errors = graph.build().err().map_or_else(Vec::new, |errors| errors.0);
            // The reader of an output may be one of the stages that were left out.
            let is_told =
                |error: &&GraphError| !matches!(error.kind, GraphErrorKind::UnusedOutput { .. });
            errors.iter().filter(is_told).map(|error| locate(error, document)).collect()
        }
    }
}

fn read_document(source: &SourceText) -> Result<JsonNode, Vec<Mistake>> {
    let mut document = document::parse(source.text).map_err(|error| {
        let path = "not valid JSON".to_owned();
        vec![Mistake { place: error.place, path, message: error.message }]
    })?;
    let mut mistakes = Vec::new();
    for (index, change) in source.overrides.iter().enumerate() {
        if let Err(message) = change.apply(index, &mut document) {
            let (place, path) = (Place::Override(index), "no such path".to_owned());
            mistakes.push(Mistake { place, path, message });
        }
    }
    if mistakes.is_empty() { Ok(document) } else { Err(mistakes) }
}

/// The stages as written in the document, valid or not.
fn stages(document: &JsonNode) -> &[JsonNode] {
    document.member("stages").map_or(&[], JsonNode::elements)
}

fn id(stage: &JsonNode) -> Option<&str> {
    stage.member("id").and_then(JsonNode::text)
}

/// Checks that ids differ and that inputs name stages.
fn check_references(document: &JsonNode, mistakes: &mut Vec<Mistake>) {
    let stages = stages(document);
    let ids: Vec<&str> = stages.iter().filter_map(id).collect();
    let mut first: HashMap<&str, usize> = HashMap::new();
    for (index, stage) in stages.iter().enumerate() {
        let Some(id) = id(stage) else { continue };
        if let Some(first) = first.get(id) {
            let message = format!("the id {id:?} is already used by stages[{first}]");
            mistakes.push(mistake(document, &["stages", &index.to_string(), "id"], message));
        }
        first.entry(id).or_insert(index);
    }
    let absent = |name: &str| {
        let hint = suggestion(name, ids.iter().copied())
            .map_or_else(String::new, |hint| format!("; did you mean `{hint}`?"));
        format!("there is no stage {name:?}; stages: {}{hint}", ids.join(", "))
    };
    if let Some(name) = document.member("rejected").and_then(JsonNode::text)
        && !ids.contains(&name)
    {
        mistakes.push(mistake(document, &["rejected"], absent(name)));
    }
    for (index, stage) in stages.iter().enumerate() {
        let inputs = stage.member("inputs").map_or(&[][..], JsonNode::elements);
        for (position, input) in inputs.iter().enumerate() {
            let Some(name) = input.text() else { continue };
            if ids.contains(&split_output(name, |id| ids.contains(&id)).0) {
                continue;
            }
            let steps = ["stages", &index.to_string(), "inputs", &position.to_string()];
            mistakes.push(mistake(document, &steps, absent(name)));
        }
    }
}

/// Checks that each supplied operator is that of its stage.
fn check_supplied(document: &JsonNode, supplied: &Supplied, mistakes: &mut Vec<Mistake>) {
    let stages = stages(document);
    for (index, stage) in stages.iter().enumerate() {
        if let Some(message) = supplied.fault(stage) {
            let steps = ["stages", &index.to_string(), "operator"];
            mistakes.push(mistake(document, &steps, message));
        }
    }
    let ids: Vec<&str> = stages.iter().filter_map(id).collect();
    for message in supplied.homeless(&ids) {
        mistakes.push(mistake(document, &["stages"], message));
    }
}

/// A mistake at the value that `steps` lead to, or at the last existing value on the way.
fn mistake(document: &JsonNode, steps: &[&str], message: String) -> Mistake {
    let nodes: Vec<&JsonNode> = document.descend(steps).collect();
    let mut path = String::new();
    for step in &steps[..nodes.len() - 1] {
        match step.parse::<usize>() {
            Ok(index) => path.push_str(&format!("[{index}]")),
            Err(_) if path.is_empty() => path.push_str(step),
            Err(_) => path.push_str(&format!(".{step}")),
        }
    }
    Mistake { place: nodes[nodes.len() - 1].place.clone(), path, message }
}

/// Describes the graph; loads every stage, so that all mistakes in parameters are found.
fn graph(
    raw: RawPipeline,
    document: &JsonNode,
    registry: &Registry,
    mut supplied: Supplied,
) -> Result<Graph, Vec<Mistake>> {
    let mut graph = Graph::new();
    graph.placement(raw.placement).pin(raw.pin);
    if let Some(bytes) = raw.memory_max {
        graph.memory_max(bytes);
    }
    let mut mistakes = Vec::new();
    let mut added: HashMap<String, Added> = HashMap::new();
    let mut inputs = Vec::new();
    let mut rejecting = Vec::new();
    let kept = raw.rejected.as_deref().map(|to| fed_by(to, &raw.stages)).unwrap_or_default();
    for stage in raw.stages {
        let index = stage_index(document, &stage.id);
        let loaded = match supplied.take(&stage.id) {
            Some(spec) => Ok(spec),
            None => {
                let entry = registry.entry(&stage.operator);
                entry.expect("the schema lists the operators").load(stage.with.into())
            }
        };
        match loaded {
            Ok(mut spec) => {
                let rejects = raw.rejected.is_some() && !kept.contains(&stage.id) && spec.reject();
                let ports = spec.output_ports();
                let id = graph.add_boxed(stage.id.clone(), spec);
                graph.cores(id, stage.cores);
                let port = ports.iter().position(|port| *port == "rejected").filter(|_| rejects);
                rejecting.extend(port.map(|port| id.port(port)));
                added.insert(stage.id, Added { id, ports });
                inputs.push((index, id, stage.inputs));
            }
            Err(error) => {
                let index = index.to_string();
                let mut steps = vec!["stages", &index, "with"];
                steps.extend(error.path.iter().map(String::as_str));
                mistakes.push(mistake(document, &steps, error.to_string()));
            }
        }
    }
    if !mistakes.is_empty() {
        return Err(mistakes);
    }
    for (index, id, names) in inputs {
        for (position, name) in names.iter().enumerate() {
            let (stage, port) = split_output(name, |id| added.contains_key(id));
            match added[stage].output(stage, port) {
                Ok(output) => drop(graph.connect(output, id)),
                Err(message) => {
                    let steps = ["stages", &index.to_string(), "inputs", &position.to_string()];
                    mistakes.push(mistake(document, &steps, message));
                }
            }
        }
    }
    if let Some(to) = raw.rejected {
        let to = added[&to].id;
        for output in rejecting {
            graph.connect(output, to);
        }
    }
    if mistakes.is_empty() { Ok(graph) } else { Err(mistakes) }
}

/// The ids of the stage `first` and of all stages that its rows reach.
fn fed_by(first: &str, stages: &[RawStage]) -> HashSet<String> {
    let ids: HashSet<&str> = stages.iter().map(|stage| stage.id.as_str()).collect();
    let mut readers: HashMap<&str, Vec<&str>> = HashMap::new();
    for stage in stages {
        for input in &stage.inputs {
            let (from, _) = split_output(input, |id| ids.contains(id));
            readers.entry(from).or_default().push(&stage.id);
        }
    }
    let (mut fed, mut next) = (HashSet::new(), vec![first]);
    while let Some(stage) = next.pop() {
        if fed.insert(stage.to_owned()) {
            next.extend(readers.get(stage).into_iter().flatten());
        }
    }
    fed
}

/// Splits an input into stage and output port: `stage` or `stage.port`.
fn split_output(input: &str, is_stage: impl Fn(&str) -> bool) -> (&str, Option<&str>) {
    match input.rsplit_once('.') {
        Some((stage, port)) if !is_stage(input) => (stage, Some(port)),
        _ => (input, None),
    }
}

/// A stage that is in the graph, with the names of its outputs if it has several.
struct Added {
    id: StageId,
    ports: &'static [&'static str],
}

impl Added {
    /// The output that an input names.
    fn output(&self, stage: &str, port: Option<&str>) -> Result<OutputPort, String> {
        let choices = || {
            let choices = self.ports.iter().map(|port| match *port {
                "" => format!("{stage:?}"),
                port => format!("\"{stage}.{port}\""),
            });
            choices.collect::<Vec<_>>().join(", ")
        };
        match port {
            None if self.ports.is_empty() || self.ports[0].is_empty() => Ok(self.id.into()),
            None => Err(format!("stage {stage:?} has several outputs; name one: {}", choices())),
            Some(port) if self.ports.is_empty() => {
                Err(format!("stage {stage:?} has one output, and no {port:?}; write {stage:?}"))
            }
            Some(port) => match self.ports.iter().position(|name| *name == port) {
                Some(port) => Ok(self.id.port(port)),
                None => {
                    let hint = suggestion(port, self.ports.iter().copied())
                        .map_or_else(String::new, |hint| {
                            format!("; did you mean `{stage}.{hint}`?")
                        });
                    let choices = choices();
                    Err(format!("stage {stage:?} has no output {port:?}; outputs: {choices}{hint}"))
                }
            },
        }
    }
}

/// The index of the first stage with this id.
fn stage_index(document: &JsonNode, wanted: &str) -> usize {
    let index = stages(document).iter().position(|stage| id(stage) == Some(wanted));
    index.expect("graphs and their errors name stages of the document")
}

/// A mistake of the graph at its place in the document.
fn locate(error: &GraphError, document: &JsonNode) -> Mistake {
    let index = stage_index(document, &error.stage).to_string();
    let parameter;
    let steps: &[&str] = match &error.kind {
        GraphErrorKind::InputCount { .. }
        | GraphErrorKind::NoSuchOutput { .. }
        | GraphErrorKind::SchemaMismatch { .. }
        | GraphErrorKind::Cycle { .. } => &["stages", &index, "inputs"],
        GraphErrorKind::NoSuchCore { .. } | GraphErrorKind::TooManyCores { .. } => {
            &["stages", &index, "cores"]
        }
        GraphErrorKind::Bind(bind) => {
            parameter = bind.parameter.unwrap_or_default();
            &["stages", &index, "with", parameter]
        }
        GraphErrorKind::Claimed(conflict) => &["stages", &index, "with", conflict.claim.parameter],
        GraphErrorKind::Empty
        | GraphErrorKind::InvalidId { .. }
        | GraphErrorKind::DuplicateId
        | GraphErrorKind::UnusedOutput { .. } => &["stages", &index, "id"],
    };
    let message = match &error.kind {
        GraphErrorKind::Bind(bind) => match bind.parameter {
            Some(parameter) => format!("`{parameter}`: {bind}"),
            None => bind.to_string(),
        },
        kind => kind.to_string(),
    };
    mistake(document, steps, message)
}
