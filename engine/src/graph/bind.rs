//! Stages are bound to their inputs one after the other.

use std::collections::HashSet;

use arrow_schema::SchemaRef;

use super::{OutputPort, Stage, StageId, error};
use crate::error::{GraphError, GraphErrorKind, describe_columns};
use crate::memory::MemoryBudget;
use crate::operator::claim::Ledger;
use crate::operator::{BindContext, Demand, Fragment};

/// A stage that is bound to its inputs.
pub(super) struct BoundStage {
    pub(super) id: String,
    pub(super) operator: &'static str,
    /// The outputs that the stage reads. Stages are numbered in the order in which they were bound.
    pub(super) inputs: Vec<OutputPort>,
    /// Whether all inputs enter one port.
    pub(super) has_one_port: bool,
    /// Names of the output ports, if there are several.
    pub(super) output_ports: &'static [&'static str],
    pub(super) reads_stdin: bool,
    pub(super) cores: Vec<usize>,
    pub(super) workers: Option<usize>,
    pub(super) fragment: Fragment,
}

/// The stages that have been bound.
pub(super) struct Binding {
    /// For each stage of the graph, the index of the stage among the bound ones; `None` if the
    /// stage could not be bound.
    bound: Vec<Option<usize>>,
    pub(super) stages: Vec<BoundStage>,
    pub(super) memory: MemoryBudget,
    /// Indices of the stages whose rows come again in a later run.
    rereads: HashSet<usize>,
    pub(super) claims: Ledger,
    /// For each stage of the graph, the part of its rows that later stages look at.
    demands: Vec<Demand>,
    /// Number of threads for the parts of a stage that names no core.
    threads: usize,
    pub(super) has_failures: bool,
}

impl Binding {
    /// No stage is bound yet. `demands` has a value for each stage of the graph.
    pub(super) fn new(demands: Vec<Demand>, memory: MemoryBudget, threads: usize) -> Self {
        Self {
            bound: vec![None; demands.len()],
            stages: Vec::new(),
            memory,
            rereads: HashSet::new(),
            claims: Ledger::default(),
            demands,
            threads,
            has_failures: false,
        }
    }

    /// Binds the stage with this index in the graph, after its inputs.
    pub(super) fn bind(&mut self, index: usize, stage: Stage, errors: &mut Vec<GraphError>) {
        match self.try_bind(index, stage) {
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
    fn try_bind(&mut self, index: usize, stage: Stage) -> Result<Option<usize>, GraphError> {
        let Stage { id, spec, inputs, cores, workers } = stage;
        let at_stage = |kind: GraphErrorKind| error(&id, kind);
        let (operator, output_ports) = (spec.operator(), spec.output_ports());
        let (reads_stdin, ports) = (spec.reads_stdin(), *spec.input_ports().end());
        let Some(schemas) = self.port_schemas(&inputs, ports).map_err(at_stage)? else {
            return Ok(None);
        };
        let context = self.context(index, &inputs, &cores, workers);
        let rereads = context.rereads;
        let fragment = spec.bind(&schemas, context).map_err(|bind| at_stage(bind.into()))?;
        check_fragment(operator, output_ports, &fragment);
        if rereads || fragment.rereads {
            self.rereads.insert(index);
        }
        for claim in &fragment.claims {
            self.claims.claim(Some(&id), claim).map_err(|conflict| at_stage(conflict.into()))?;
        }
        let bound = |input: &OutputPort| {
            let stage = self.bound[input.stage.0].expect("inputs are bound before their readers");
            OutputPort { stage: StageId(stage), port: input.port }
        };
        let inputs = inputs.iter().map(bound).collect();
        self.stages.push(BoundStage {
            id,
            operator,
            inputs,
            has_one_port: ports == 1,
            output_ports,
            reads_stdin,
            cores,
            workers,
            fragment,
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
    fn context(
        &self,
        index: usize,
        inputs: &[OutputPort],
        cores: &[usize],
        workers: Option<usize>,
    ) -> BindContext {
        let threads = if cores.is_empty() { self.threads } else { cores.len() };
        BindContext::new(cores.len())
            .threads(threads)
            .workers(workers)
            .memory(self.memory.clone())
            .outputs(self.claims.outputs())
            .demand(self.demands[index].clone())
            .rereads(inputs.iter().any(|input| self.rereads.contains(&input.stage.0)))
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
            let outputs = &stage.fragment.outputs;
            let Some(schema) = outputs.get(input.port) else {
                return Err(GraphErrorKind::NoSuchOutput {
                    input: stage.id.clone(),
                    port: input.port,
                    ports: outputs.len(),
                });
            };
            schemas.push(SchemaRef::clone(schema));
        }
        Ok(Some(schemas))
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
