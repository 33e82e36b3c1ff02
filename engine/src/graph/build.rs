//! The step from a described graph to a checked one.

use std::collections::HashSet;

use super::assemble::Assembly;
use super::bind::Binding;
use super::divide::{CopyError, divide};
use super::{Graph, Stage, Topology, error};
use crate::error::{GraphError, GraphErrorKind, GraphErrors};
use crate::memory::MemoryBudget;
use crate::operator::Demand;
use crate::placement::{Cores, Placement, available_cores, parallelism, place};

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
    let demands = demands(&graph.stages, &order);
    let mut binding = Binding::new(demands, memory, threads);
    let mut stages: Vec<Option<Stage>> = graph.stages.into_iter().map(Some).collect();
    for index in order {
        let stage = stages[index].take().expect("the order names each stage once");
        binding.bind(index, stage, &mut errors);
    }
    // A stage that could not be bound reads nothing, so the check would blame the inputs for its
    // mistake.
    if !binding.has_failures {
        check_unused_outputs(&binding, &mut errors);
    }
    if !errors.is_empty() {
        return Err(GraphErrors(errors));
    }
    let Binding { mut stages, memory, claims, .. } = binding;
    let copies = divide(&mut stages, threads).map_err(|CopyError { stage, error: bind }| {
        GraphErrors(vec![error(&stages[stage].id, bind.into())])
    })?;
    let mut assembly = Assembly::default();
    for (stage, copies) in stages.into_iter().zip(copies) {
        if let Err(error) = assembly.add(stage, copies) {
            errors.push(error);
        }
    }
    if !errors.is_empty() {
        return Err(GraphErrors(errors));
    }
    let Assembly { stages, parts, links, replies, queries, requests, .. } = assembly;
    let cores = Cores { ids: available_cores(), parallelism: parallelism(), pin: graph.pin };
    let plan = place(&requests, cores, graph.placement);
    Ok(Topology { stages, parts, links, replies, queries, plan, memory, claims })
}

/// Reports outputs that no stage reads.
fn check_unused_outputs(binding: &Binding, errors: &mut Vec<GraphError>) {
    let read: HashSet<(usize, usize)> = binding
        .stages
        .iter()
        .flat_map(|stage| stage.inputs.iter().map(|input| (input.stage.0, input.port)))
        .collect();
    for (index, stage) in binding.stages.iter().enumerate() {
        for port in (0..stage.fragment.outputs.len()).filter(|&port| !read.contains(&(index, port)))
        {
            let port = stage.output_ports.get(port).copied();
            let port = port.filter(|name| !name.is_empty());
            errors.push(error(&stage.id, GraphErrorKind::UnusedOutput { port }));
        }
    }
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
