//! The step from a described graph to a checked one.

use std::collections::HashSet;
use std::iter::repeat_n;

use arrow_schema::SchemaRef;

use super::{Graph, Link, OutputPort, PlacedPart, ReplyPath, Stage, StageInfo, Topology};
use crate::error::{GraphError, GraphErrorKind, GraphErrors, describe_columns};
use crate::memory::MemoryBudget;
use crate::operator::claim::Ledger;
use crate::operator::{BindContext, Body, Demand, Fragment, Part, Shape};
use crate::placement::{Cores, PartRequest, Placement, available_cores, parallelism, place};

impl Graph {
    /// Checks the graph and binds its operators to their inputs.
    ///
    /// # Examples
    /// ```
    /// # mod pipeline { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/numbers.rs")); }
    /// # use pipeline::*;
    /// # use trommel_engine::graph::Graph;
    /// let mut graph = Graph::new();
    /// graph.add("sum", Sum(0));
    /// graph.add("sum", Sum(0));
    /// let errors = graph.build().unwrap_err();
    /// let shown: Vec<_> = errors.0.iter().map(ToString::to_string).collect();
    /// let input = "stage `sum`: `sum` takes at least one input, found 0";
    /// assert_eq!(shown, ["stage `sum`: another stage has this id already", input, input]);
    /// ```
    ///
    /// # Errors
    /// All mistakes that could be found, each with its stage. A stage whose inputs are wrong is not
    /// bound.
    pub fn build(self) -> Result<Topology, GraphErrors> {
        build(self)
    }
}

fn build(graph: Graph) -> Result<Topology, GraphErrors> {
    let mut errors = Vec::new();
    check_ids(&graph.stages, &mut errors);
    check_input_counts(&graph.stages, &mut errors);
    check_cores(&graph.stages, &mut errors);
    let order = topological_order(&graph.stages, &mut errors);
    let memory = graph.memory_max.map_or_else(MemoryBudget::of_process, MemoryBudget::new);
    let threads = match graph.placement {
        Placement::Auto => parallelism(),
        Placement::Fused => 1,
    };
    let mut binding = Binding::new(graph.stages.len(), memory, threads);
    binding.demands = demands(&graph.stages, &order);
    let mut stages: Vec<Option<Stage>> = graph.stages.into_iter().map(Some).collect();
    let mut requests = Vec::new();
    for index in order {
        let stage = stages[index].take().expect("the order names each stage once");
        binding.bind(index, stage, &mut requests, &mut errors);
    }
    binding.check_unused_outputs(&mut errors);
    if !errors.is_empty() {
        return Err(GraphErrors(errors));
    }
    let cores = Cores { ids: available_cores(), parallelism: parallelism(), pin: graph.pin };
    let plan = place(&requests, cores, graph.placement);
    let Binding { stages, parts, links, replies, memory, claims, .. } = binding;
    Ok(Topology { stages, parts, links, replies, plan, memory, claims })
}

fn error(stage: &str, kind: GraphErrorKind) -> GraphError {
    GraphError { stage: stage.to_owned(), kind }
}

fn check_ids(stages: &[Stage], errors: &mut Vec<GraphError>) {
    if stages.is_empty() {
        errors.push(error("", GraphErrorKind::Empty));
    }
    let mut seen = HashSet::new();
    for stage in stages {
        if stage.id.is_empty() || stage.id.contains(char::is_control) {
            errors.push(error(&stage.id, GraphErrorKind::InvalidId { id: stage.id.clone() }));
        }
        if !seen.insert(&stage.id) {
            errors.push(error(&stage.id, GraphErrorKind::DuplicateId));
        }
    }
}

fn check_input_counts(stages: &[Stage], errors: &mut Vec<GraphError>) {
    for stage in stages {
        let ports = stage.spec.input_ports();
        let (least, most) = (*ports.start(), *ports.end());
        let found = stage.inputs.len();
        let expected = match (least, most) {
            _ if ports.contains(&found) || (most == 1 && found > 1) => continue,
            (_, 0) => "no inputs".to_owned(),
            (1, 1 | usize::MAX) => "at least one input".to_owned(),
            _ if least == most => format!("{least} inputs"),
            _ => format!("{least} to {most} inputs"),
        };
        let operator = stage.spec.operator();
        errors.push(error(&stage.id, GraphErrorKind::InputCount { operator, expected, found }));
    }
}

fn check_cores(stages: &[Stage], errors: &mut Vec<GraphError>) {
    let available = available_cores();
    for stage in stages {
        for &core in stage.cores.iter().filter(|c| !available.contains(c)) {
            let available = available.to_vec();
            errors.push(error(&stage.id, GraphErrorKind::NoSuchCore { core, available }));
        }
    }
}

/// An order in which every stage comes after its inputs, otherwise in the order of addition. A
/// stage of a cycle comes before one of its inputs, and so it is not bound.
fn topological_order(stages: &[Stage], errors: &mut Vec<GraphError>) -> Vec<usize> {
    let mut order = Vec::with_capacity(stages.len());
    let mut state = vec![Visit::New; stages.len()];
    for index in 0..stages.len() {
        errors.extend(visit(stages, index, &mut state, &mut order));
    }
    order
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Visit {
    New,
    OnPath,
    Done,
}

/// Visits a stage and its inputs depth-first. The stack is on the heap, so that a long chain of
/// stages cannot exhaust the stack of the thread. Returns the first cycle: to name each of many
/// cycles would take time by the square of the number of stages.
fn visit(
    stages: &[Stage],
    root: usize,
    state: &mut [Visit],
    order: &mut Vec<usize>,
) -> Option<GraphError> {
    let (mut path, mut cycle): (Vec<(usize, usize)>, Option<GraphError>) = (Vec::new(), None);
    if state[root] == Visit::New {
        state[root] = Visit::OnPath;
        path.push((root, 0));
    }
    while let Some((index, next_input)) = path.last_mut() {
        let index = *index;
        let Some(input) = stages[index].inputs.get(*next_input).map(|port| port.stage.0) else {
            state[index] = Visit::Done;
            order.push(index);
            path.pop();
            continue;
        };
        *next_input += 1;
        match state[input] {
            Visit::OnPath if cycle.is_some() => {}
            Visit::Done => {}
            Visit::New => {
                state[input] = Visit::OnPath;
                path.push((input, 0));
            }
            Visit::OnPath => {
                let start = path.iter().position(|&(i, _)| i == input).unwrap_or(0);
                let mut ids: Vec<String> =
                    path[start..].iter().rev().map(|&(i, _)| stages[i].id.clone()).collect();
                ids.insert(0, stages[input].id.clone());
                cycle = Some(error(&stages[input].id, GraphErrorKind::Cycle { path: ids }));
            }
        }
    }
    cycle
}

/// The part of the first output of each stage that later stages look at. `order` has each stage
/// after its inputs.
fn demands(stages: &[Stage], order: &[usize]) -> Vec<Demand> {
    let mut demands: Vec<Option<Demand>> = vec![None; stages.len()];
    for &index in order.iter().rev() {
        let Stage { spec, inputs, .. } = &stages[index];
        let output = demands[index].get_or_insert_with(Demand::all).clone();
        let has_one_port = *spec.input_ports().end() == 1;
        for (position, input) in inputs.iter().enumerate().filter(|(_, input)| input.port == 0) {
            let demand = match has_one_port {
                // All columns: streams that meet in a port must have the same columns.
                true if inputs.len() > 1 => Demand::all(),
                true => spec.demand(0, &output),
                false => spec.demand(position, &output),
            };
            // A stage with several readers makes all that one of the readers looks at.
            let of_input = &mut demands[input.stage.0];
            *of_input = Some(match of_input.take() {
                Some(others) => others.or(demand),
                None => demand,
            });
        }
    }
    demands.into_iter().map(|demand| demand.unwrap_or_else(Demand::all)).collect()
}

/// The topology, while stages are bound one after the other.
struct Binding {
    /// For each stage of the graph, the index of the stage among the bound ones; `None` if the
    /// stage could not be bound.
    bound: Vec<Option<usize>>,
    stages: Vec<StageInfo>,
    parts: Vec<PlacedPart>,
    links: Vec<Link>,
    replies: Vec<ReplyPath>,
    memory: MemoryBudget,
    /// Indices of the stages whose rows come again in a later run.
    rereads: HashSet<usize>,
    claims: Ledger,
    /// For each stage of the graph, the part of its rows that later stages look at.
    demands: Vec<Demand>,
    /// Number of threads for the parts of a stage that names no core.
    threads: usize,
    has_failures: bool,
}

impl Binding {
    fn new(stages: usize, memory: MemoryBudget, threads: usize) -> Self {
        Self {
            bound: vec![None; stages],
            stages: Vec::new(),
            parts: Vec::new(),
            links: Vec::new(),
            replies: Vec::new(),
            memory,
            rereads: HashSet::new(),
            claims: Ledger::default(),
            demands: Vec::new(),
            threads,
            has_failures: false,
        }
    }

    fn bind(
        &mut self,
        index: usize,
        stage: Stage,
        requests: &mut Vec<PartRequest>,
        errors: &mut Vec<GraphError>,
    ) {
        match self.try_bind(index, stage, requests) {
            Ok(bound) => self.bound[index] = bound,
            Err(GraphError { stage, kind: GraphErrorKind::Bind(bind) }) => {
                errors.extend(bind.flatten().into_iter().map(|bind| error(&stage, bind.into())));
            }
            Err(error) => errors.push(error),
        }
        self.has_failures |= self.bound[index].is_none();
    }

    /// Binds a stage; `None` if one of its inputs could not be bound, which has already been
    /// reported for the input.
    fn try_bind(
        &mut self,
        index: usize,
        stage: Stage,
        requests: &mut Vec<PartRequest>,
    ) -> Result<Option<usize>, GraphError> {
        let Stage { id, spec, inputs, cores } = stage;
        let at_stage = |kind: GraphErrorKind| error(&id, kind);
        let (operator, output_ports) = (spec.operator(), spec.output_ports());
        let (reads_stdin, ports) = (spec.reads_stdin(), *spec.input_ports().end());
        let Some(schemas) = self.port_schemas(&inputs, ports).map_err(at_stage)? else {
            return Ok(None);
        };
        let context = self.context(index, &inputs, &cores);
        let rereads = context.rereads;
        let fragment = spec.bind(&schemas, context).map_err(|bind| at_stage(bind.into()))?;
        check_fragment(operator, output_ports, &fragment);
        if rereads || fragment.rereads {
            self.rereads.insert(index);
        }
        requests.extend(self.part_requests(operator, &fragment, &cores).map_err(at_stage)?);
        for claim in &fragment.claims {
            self.claims.claim(Some(&id), claim).map_err(|conflict| at_stage(conflict.into()))?;
        }
        let inputs = self.link_inputs(&inputs, ports);
        let Fragment { parts, shape, outputs, early_outputs, claims, .. } = fragment;
        let (added, fed) = (self.parts.len(), sources_before(&parts, shape));
        let chunk_ports = all_chunk_ports(shape, parts.len(), fed);
        let exits = exits(&outputs, early_outputs, added + fed, &chunk_ports[fed..]);
        let parts = self.add_parts((&id, operator), parts, &chunk_ports, &outputs);
        self.join_parts(&parts, shape, fed);
        self.stages.push(StageInfo {
            id,
            operator,
            inputs,
            outputs,
            output_ports,
            reads_stdin,
            parts,
            exits,
            claims,
        });
        Ok(Some(self.stages.len() - 1))
    }

    /// The schema of each input port; `None` if an input could not be bound, or if the number of
    /// inputs is wrong, which has been reported.
    fn port_schemas(
        &self,
        inputs: &[OutputPort],
        ports: usize,
    ) -> Result<Option<Vec<SchemaRef>>, GraphErrorKind> {
        let Some(schemas) = self.input_schemas(inputs)? else { return Ok(None) };
        let schemas = if ports == 1 { one_schema(&schemas)? } else { schemas };
        let is_right = schemas.len() <= ports && (!schemas.is_empty() || ports == 0);
        Ok(is_right.then_some(schemas))
    }

    /// The surroundings of the stage with this index.
    fn context(&self, index: usize, inputs: &[OutputPort], cores: &[usize]) -> BindContext {
        let threads = if cores.is_empty() { self.threads } else { cores.len() };
        BindContext::new(cores.len())
            .threads(threads)
            .memory(self.memory.clone())
            .outputs(self.claims.outputs())
            .demand(self.demands[index].clone())
            .rereads(inputs.iter().any(|input| self.rereads.contains(&input.stage.0)))
    }

    /// The data of the parts of the next stage for their placement.
    fn part_requests(
        &self,
        operator: &'static str,
        fragment: &Fragment,
        cores: &[usize],
    ) -> Result<Vec<PartRequest>, GraphErrorKind> {
        let (given, parts) = (cores.len(), fragment.parts.len());
        if given > parts {
            return Err(GraphErrorKind::TooManyCores { operator, given, parts });
        }
        let request = |(position, part): (usize, &Part)| {
            let core = core_of(fragment.shape, parts, position, cores);
            PartRequest { stage: self.stages.len(), load: part.load, core }
        };
        Ok(fragment.parts.iter().enumerate().map(request).collect())
    }

    /// The schema of each input; `None` if an input could not be bound.
    fn input_schemas(
        &self,
        inputs: &[OutputPort],
    ) -> Result<Option<Vec<SchemaRef>>, GraphErrorKind> {
        let mut schemas = Vec::new();
        for input in inputs {
            let Some(stage) = self.bound[input.stage.0].map(|i| &self.stages[i]) else {
                return Ok(None);
            };
            let Some(schema) = stage.outputs.get(input.port) else {
                return Err(GraphErrorKind::NoSuchOutput {
                    input: stage.id.clone(),
                    port: input.port,
                    ports: stage.outputs.len(),
                });
            };
            schemas.push(SchemaRef::clone(schema));
        }
        Ok(Some(schemas))
    }

    /// Links the inputs to the part that is added next; returns the names of the inputs as in a
    /// configuration.
    fn link_inputs(&mut self, inputs: &[OutputPort], ports: usize) -> Vec<String> {
        let to = self.parts.len();
        let mut read = Vec::new();
        for (position, input) in inputs.iter().enumerate() {
            let source = self.bound[input.stage.0].expect("inputs are bound before their readers");
            let stage = &self.stages[source];
            let (from, from_port) = stage.exits[input.port];
            let to_port = if ports == 1 { 0 } else { position };
            self.links.push(Link { from, from_port, to, to_port });
            read.push(stage.output_name(input.port));
        }
        read
    }

    /// Adds the parts of a stage; returns the indices of the parts.
    fn add_parts(
        &mut self,
        (id, operator): (&str, &'static str),
        parts: Vec<Part>,
        chunk_ports: &[usize],
        outputs: &[SchemaRef],
    ) -> Vec<usize> {
        let first = self.parts.len();
        let count = parts.len();
        for (index, (part, &chunk_ports)) in parts.into_iter().zip(chunk_ports).enumerate() {
            let label = if count == 1 { id.to_owned() } else { format!("{id}/{}", part.name) };
            let sends_rows = index == 0 || index + 1 == count;
            let declared = if sends_rows { outputs.to_vec() } else { Vec::new() };
            let stage = id.to_owned();
            self.parts.push(PlacedPart { stage, label, operator, part, declared, chunk_ports });
        }
        (first..self.parts.len()).collect()
    }

    /// Connects the parts of a stage. The first `fed` parts are a source before the others.
    fn join_parts(&mut self, parts: &[usize], shape: Shape, fed: usize) {
        let link = |from, from_port, to| Link { from, from_port, to, to_port: 0 };
        for pair in parts[..=fed].windows(2) {
            self.links.push(link(pair[0], 0, pair[1]));
        }
        match (shape, &parts[fed..]) {
            (Shape::Workers, &[first, ref workers @ .., last]) if !workers.is_empty() => {
                for (port, &worker) in workers.iter().enumerate() {
                    self.links.push(link(first, port, worker));
                    self.links.push(link(worker, 0, last));
                }
                self.replies.push(ReplyPath { from: last, to: first, has_queries: false });
            }
            (Shape::Chain | Shape::Workers, parts) => {
                // Each part has a link to the next part; an operator of one part has no links.
                for (&part, &next) in parts.iter().zip(&parts[1..]) {
                    self.links.push(link(part, 0, next));
                    self.replies.push(ReplyPath { from: next, to: part, has_queries: true });
                }
            }
        }
    }

    fn check_unused_outputs(&self, errors: &mut Vec<GraphError>) {
        // A stage that could not be bound reads nothing, so the check would blame the inputs for
        // its mistake.
        if self.has_failures {
            return;
        }
        for stage in &self.stages {
            for (port, &exit) in stage.exits.iter().enumerate() {
                if !self.links.iter().any(|link| (link.from, link.from_port) == exit) {
                    let port = stage.output_ports.get(port).copied();
                    let port = port.filter(|name| !name.is_empty());
                    errors.push(error(&stage.id, GraphErrorKind::UnusedOutput { port }));
                }
            }
        }
    }
}

/// Panics if the operator was bound against the contract of [`Fragment`].
fn check_fragment(operator: &str, output_ports: &[&str], fragment: &Fragment) {
    assert!(!fragment.parts.is_empty(), "operator `{operator}` was bound to no parts");
    assert!(
        output_ports.is_empty() || output_ports.len() == fragment.outputs.len(),
        "operator `{operator}` names other outputs than it has"
    );
}

/// Number of ports for chunks of each of `parts` parts, of which the first `fed` are a source
/// before the others.
fn all_chunk_ports(shape: Shape, parts: usize, fed: usize) -> Vec<usize> {
    let own = parts - fed;
    repeat_n(1, fed).chain((0..own).map(|part| chunk_ports(shape, own, part))).collect()
}

/// Number of sources, 0 or 1, before the other parts of an operator with workers.
fn sources_before(parts: &[Part], shape: Shape) -> usize {
    let is_fed = shape == Shape::Workers && matches!(parts[0].body, Body::Source(_));
    usize::from(is_fed)
}

/// Number of ports by which the part with index `part`, of `parts` parts, sends chunks to later
/// parts.
fn chunk_ports(shape: Shape, parts: usize, part: usize) -> usize {
    match shape {
        _ if part + 1 == parts => 0,
        // Without workers, the two parts are a chain.
        Shape::Workers if part == 0 => (parts - 2).max(1),
        Shape::Chain | Shape::Workers => 1,
    }
}

/// For each output of a stage, the part that the rows leave, and the port of the part, which comes
/// after its ports for chunks. The last `early` outputs leave the first part, which has the index
/// `first`.
fn exits(
    outputs: &[SchemaRef],
    early: usize,
    first: usize,
    chunk_ports: &[usize],
) -> Vec<(usize, usize)> {
    let late = outputs.len() - early;
    // An operator of one part has no ports for chunks, so both cases are the same.
    let exit = |port: usize| match port < late {
        true => (first + chunk_ports.len() - 1, port),
        false => (first, chunk_ports[0] + port),
    };
    (0..outputs.len()).map(exit).collect()
}

/// The core of a part of a stage that names `cores`. Further parts join the last core. The first
/// worker shares the core of the first part, which has little to do.
fn core_of(shape: Shape, parts: usize, position: usize, cores: &[usize]) -> Option<usize> {
    let place = match shape {
        Shape::Chain => position,
        Shape::Workers if position + 1 == parts => position,
        Shape::Workers => position.saturating_sub(1),
    };
    cores.get(place).or(cores.last()).copied()
}

/// The schema that all inputs of a single port share.
fn one_schema(schemas: &[SchemaRef]) -> Result<Vec<SchemaRef>, GraphErrorKind> {
    let Some((first, others)) = schemas.split_first() else { return Ok(Vec::new()) };
    match others.iter().find(|other| other.fields() != first.fields()) {
        None => Ok(vec![SchemaRef::clone(first)]),
        Some(other) => {
            let (first, second) = (describe_columns(first), describe_columns(other));
            Err(GraphErrorKind::SchemaMismatch { first, second })
        }
    }
}
