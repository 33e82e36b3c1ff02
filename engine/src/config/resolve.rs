//! The step from a document to a checked topology.

use std::collections::{HashMap, HashSet};

use serde_json::{Value, json};

use super::check::{Mistake, check};
use super::document::{self, JsonNode, JsonPlace};
use super::error::{ConfigErrors, SourceText};
use super::overrides::Override;
use super::raw::{RawPipeline, RawStage, schema_beside};
use super::supplied::Supplied;
use crate::channel::QueueLimits;
use crate::error::{GraphError, GraphErrorKind, GraphErrors, RunError};
use crate::graph::{Graph, StageId, Topology};
use crate::operator::OperatorSpec;
use crate::registry::Registry;
use crate::runtime::{RunOptions, Running};
use crate::suggest::suggestion;

/// A pipeline that was read from JSON, checked and bound, and is ready to start.
#[derive(Debug)]
#[non_exhaustive]
pub struct Pipeline {
    /// The name of the pipeline, or of the file if the pipeline has no name.
    pub name: String,
    /// The stages of the pipeline.
    pub topology: Topology,
    /// The options of the run.
    pub options: RunOptions,
}

impl Pipeline {
    /// Starts the pipeline with its options.
    ///
    /// # Errors
    /// As [`Topology::start`].
    pub fn start(self) -> Result<Running, RunError> {
        self.topology.start(self.options)
    }
}

/// Reads a pipeline from JSON text. Errors call the text `file`; `overrides` replace values of the
/// text.
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
/// All mistakes in the text that no other mistake hides.
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
/// As [`load`], and if a supplied operator does not fit its stage.
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
    let raw = match mistakes.is_empty() {
        true => document.to_value(),
        false => json!({ "stages": stages_without(&document, &mistakes) }),
    };
    let raw = raw_pipeline(raw);
    let name = raw.name.clone().unwrap_or_else(|| source.file.to_owned());
    let limits = QueueLimits { batches: raw.queue.batches, bytes: raw.queue.bytes };
    let graph = graph(raw, &document, registry, supplied, &mut mistakes);
    let built = graph.build();
    if let Err(GraphErrors(errors)) = &built {
        // A stage that was left out may be the reader of an output, or the only stage, so these two
        // mistakes are told only of a whole graph.
        let is_whole = mistakes.is_empty();
        let is_told = |error: &&GraphError| match error.kind {
            GraphErrorKind::UnusedOutput { .. } | GraphErrorKind::Empty => is_whole,
            _ => true,
        };
        mistakes.extend(errors.iter().filter(is_told).map(|error| locate(error, &document)));
    }
    match built {
        Ok(topology) if mistakes.is_empty() => {
            Ok(Pipeline { name, topology, options: RunOptions::new().queue(limits) })
        }
        _ => Err(mistakes),
    }
}

/// The structs of a document that fits the schema.
fn raw_pipeline(document: Value) -> RawPipeline {
    serde_json::from_value(document).expect("the schema of pipelines describes the same structs")
}

/// The stages without `mistakes` whose inputs have no mistakes either. Mistakes that only the
/// binding finds are told of these stages.
fn stages_without(document: &JsonNode, mistakes: &[Mistake]) -> Vec<Value> {
    let all = stages(document);
    let ids: HashSet<&str> = all.iter().filter_map(id).collect();
    let stage_of = |name| split_output(name, |id| ids.contains(id)).0;
    let named = |stage| -> (&str, Vec<&str>) {
        let inputs = JsonNode::member(stage, "inputs").map_or(&[][..], JsonNode::elements);
        let inputs = inputs.iter().filter_map(JsonNode::text).map(stage_of);
        (id(stage).unwrap_or_default(), inputs.collect())
    };
    let named: Vec<_> = all.iter().map(named).collect();
    let mut is_wrong = vec![false; all.len()];
    for mistake in mistakes {
        let index = mistake.path.strip_prefix("stages[").and_then(|path| path.split(']').next());
        if let Some(index) = index.and_then(|index| index.parse::<usize>().ok()) {
            is_wrong[index] = true;
        }
    }
    mark_readers(&named, &mut is_wrong);
    let right = all.iter().zip(is_wrong).filter(|(_, is_wrong)| !is_wrong);
    right.map(|(stage, _)| stage.to_value()).collect()
}

/// Marks the stages that read a wrong or missing stage, directly or through other stages. `stages`
/// has the id of each stage and the ids of its inputs.
fn mark_readers(stages: &[(&str, Vec<&str>)], is_wrong: &mut [bool]) {
    let mut places: HashMap<&str, usize> = HashMap::new();
    for (index, (id, _)) in stages.iter().enumerate() {
        places.entry(id).or_insert(index);
    }
    let mut readers = vec![Vec::new(); stages.len()];
    for (index, (_, inputs)) in stages.iter().enumerate() {
        for input in inputs {
            match places.get(input) {
                Some(&place) => readers[place].push(index),
                None => is_wrong[index] = true,
            }
        }
    }
    let mut waiting: Vec<usize> = (0..stages.len()).filter(|&index| is_wrong[index]).collect();
    while let Some(index) = waiting.pop() {
        for &reader in &readers[index] {
            if !std::mem::replace(&mut is_wrong[reader], true) {
                waiting.push(reader);
            }
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
            let (place, path) = (JsonPlace::Override(index), "no such path".to_owned());
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

/// A mistake at the value to which `steps` lead, or at the last existing value on the way.
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

/// Describes the graph of the stages that can be loaded and whose inputs can be loaded, too. The
/// mistakes of the other stages are added to `mistakes`.
fn graph(
    mut raw: RawPipeline,
    document: &JsonNode,
    registry: &Registry,
    supplied: Supplied,
    mistakes: &mut Vec<Mistake>,
) -> Graph {
    let mut graph = Graph::new();
    graph.placement(raw.placement).pin(raw.pin);
    if let Some(bytes) = raw.memory_max {
        graph.memory_max(bytes);
    }
    let (specs, rejecting) = load_specs(&mut raw, document, registry, supplied, mistakes);
    let inputs = inputs(&raw.stages, &specs, document, mistakes);
    let mut added: HashMap<&str, StageId> = HashMap::new();
    let (mut connections, mut rejected) = (Vec::new(), Vec::new());
    for ((stage, spec), inputs) in raw.stages.iter().zip(specs).zip(inputs) {
        if let (Ok(spec), Some(inputs)) = (spec, inputs) {
            let port = spec.output_ports().iter().position(|port| *port == "rejected");
            if rejecting.contains(&stage.id) {
                rejected.push((stage.id.as_str(), port));
            }
            let id = graph.add_boxed(stage.id.clone(), spec);
            graph.cores(id, stage.cores.clone());
            if let Some(workers) = stage.workers {
                graph.workers(id, workers);
            }
            added.insert(&stage.id, id);
            connections.push((id, inputs));
        }
    }
    if let Some(reader) = raw.rejected.as_deref().and_then(|to| added.get(to)) {
        connections.push((*reader, rejected));
    }
    for (reader, inputs) in connections {
        for (stage, port) in inputs {
            let stage = added[stage];
            graph.connect(port.map_or_else(|| stage.into(), |port| stage.port(port)), reader);
        }
    }
    graph
}

/// The operator of a stage, or the fact that its parameters have a mistake, which has been told.
type LoadedSpec = Result<Box<dyn OperatorSpec>, ()>;

/// Loads the operators of all stages. Returns also the ids of the stages that send rejected rows to
/// the stage of the key `rejected`. That stage and the stages after it do not, since a graph has no
/// cycle.
fn load_specs(
    raw: &mut RawPipeline,
    document: &JsonNode,
    registry: &Registry,
    mut supplied: Supplied,
    mistakes: &mut Vec<Mistake>,
) -> (Vec<LoadedSpec>, HashSet<String>) {
    let kept = raw.rejected.as_deref().map(|to| fed_by(to, &raw.stages)).unwrap_or_default();
    let mut rejecting = HashSet::new();
    let mut specs = Vec::with_capacity(raw.stages.len());
    for stage in &mut raw.stages {
        let mut loaded = match supplied.take(&stage.id) {
            Some(spec) => Ok(spec),
            None => {
                let entry = registry.entry(&stage.operator);
                let with = std::mem::take(&mut stage.with);
                entry.expect("the schema lists the operators").load(with.into())
            }
        };
        if let (Some(_), Ok(spec)) = (&raw.rejected, &mut loaded)
            && !kept.contains(&stage.id)
            && spec.reject()
        {
            rejecting.insert(stage.id.clone());
        }
        specs.push(loaded.map_err(|error| {
            let index = stage_index(document, &stage.id).to_string();
            let mut steps = vec!["stages", &index, "with"];
            steps.extend(error.path.iter().map(String::as_str));
            mistakes.push(mistake(document, &steps, error.to_string()));
        }));
    }
    (specs, rejecting)
}

/// An output that a stage reads: the id of the other stage, and the index of its output port if
/// that stage has several.
type OutputRef<'a> = (&'a str, Option<usize>);

/// The inputs of each stage; `None` for a stage that is wrong or that reads a wrong stage.
fn inputs<'a>(
    stages: &'a [RawStage],
    specs: &[LoadedSpec],
    document: &JsonNode,
    mistakes: &mut Vec<Mistake>,
) -> Vec<Option<Vec<OutputRef<'a>>>> {
    let ids: HashSet<&str> = stages.iter().map(|stage| stage.id.as_str()).collect();
    let loaded = stages.iter().zip(specs).filter_map(|(s, spec)| Some((s, spec.as_ref().ok()?)));
    let ports: HashMap<&str, &[&str]> =
        loaded.map(|(stage, spec)| (stage.id.as_str(), spec.output_ports())).collect();
    let mut is_wrong: Vec<bool> = specs.iter().map(Result::is_err).collect();
    let mut all = Vec::with_capacity(stages.len());
    for (index, stage) in stages.iter().enumerate() {
        let mut inputs = Vec::with_capacity(stage.inputs.len());
        for (position, name) in stage.inputs.iter().enumerate() {
            let (input, port) = split_output(name, |id| ids.contains(id));
            match ports.get(input).map_or(Ok(None), |ports| port_of(ports, input, port)) {
                Ok(port) => inputs.push((input, port)),
                Err(message) => {
                    let (place, position) =
                        (stage_index(document, &stage.id), position.to_string());
                    let steps = ["stages", &place.to_string(), "inputs", &position];
                    mistakes.push(mistake(document, &steps, message));
                    is_wrong[index] = true;
                }
            }
        }
        all.push(inputs);
    }
    let named = stages
        .iter()
        .zip(&all)
        .map(|(stage, inputs)| (stage.id.as_str(), inputs.iter().map(|(id, _)| *id).collect()));
    mark_readers(&named.collect::<Vec<_>>(), &mut is_wrong);
    all.into_iter().zip(is_wrong).map(|(inputs, is_wrong)| (!is_wrong).then_some(inputs)).collect()
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

/// The index of the output that an input names, of a stage with these `ports`; `None` if the stage
/// has one output.
fn port_of(ports: &[&str], stage: &str, port: Option<&str>) -> Result<Option<usize>, String> {
    let choices = || {
        let choices = ports.iter().map(|port| match *port {
            "" => format!("{stage:?}"),
            port => format!("\"{stage}.{port}\""),
        });
        choices.collect::<Vec<_>>().join(", ")
    };
    match port {
        None if ports.is_empty() => Ok(None),
        None if ports[0].is_empty() => Ok(Some(0)),
        None => Err(format!("stage {stage:?} has several outputs; name one: {}", choices())),
        Some(port) if ports.is_empty() => {
            Err(format!("stage {stage:?} has one output, and no {port:?}; write {stage:?}"))
        }
        Some(port) => match ports.iter().position(|name| *name == port) {
            Some(port) => Ok(Some(port)),
            None => {
                let hint = suggestion(port, ports.iter().copied())
                    .map_or_else(String::new, |hint| format!("; did you mean `{stage}.{hint}`?"));
                let choices = choices();
                Err(format!("stage {stage:?} has no output {port:?}; outputs: {choices}{hint}"))
            }
        },
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
