//! A pipeline as a graph: stages with their inputs and cores.
//!
//! ```text
//! Graph (described) ── build(): schemas, ports, cycles, cores ──► Topology (checked) ── start() ──► Running
//! ```
//!
//! | file | contents |
//! |---|---|
//! | `build` | the checks, and the order of the steps |
//! | `bind` | stages are bound to their inputs |
//! | `divide` | the number of copies of each stage |
//! | `assemble` | bound stages become parts and links |

mod assemble;
mod bind;
mod build;
mod divide;

use std::fmt;
use std::ops::Range;

use arrow_schema::SchemaRef;

use crate::error::{GraphError, GraphErrorKind};
use crate::memory::MemoryBudget;
use crate::operator::claim::Ledger;
use crate::operator::{Body, Claim, ClaimConflict, Division, OperatorSpec, Part};
use crate::placement::{Placement, Plan};

/// A stage of a [`Graph`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct StageId(usize);

impl StageId {
    /// Output `port` of this stage, counted from 0. A bare `StageId` means port 0.
    #[must_use]
    pub fn port(self, port: usize) -> OutputPort {
        OutputPort { stage: self, port }
    }
}

/// An output of a stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct OutputPort {
    stage: StageId,
    port: usize,
}

impl From<StageId> for OutputPort {
    fn from(stage: StageId) -> Self {
        stage.port(0)
    }
}

/// A mistake at a stage.
fn error(stage: &str, kind: GraphErrorKind) -> GraphError {
    GraphError { stage: stage.to_owned(), kind }
}

struct Stage {
    id: String,
    spec: Box<dyn OperatorSpec>,
    inputs: Vec<OutputPort>,
    cores: Vec<usize>,
    workers: Option<usize>,
}

/// Describes a pipeline.
///
/// # Examples
/// ```
/// # mod pipeline { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/numbers.rs")); }
/// # use pipeline::*;
/// use trommel_engine::graph::Graph;
/// use trommel_engine::runtime::RunOptions;
///
/// let mut graph = Graph::new();
/// let numbers = graph.add("numbers", Numbers(0, 1_000));
/// graph.add_after(numbers, "sum", Sum(0));
/// let metrics = graph.build()?.run(RunOptions::new())?;
/// assert_eq!(metrics.stage("sum").unwrap().items_in(), 1_000);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Default)]
pub struct Graph {
    stages: Vec<Stage>,
    placement: Placement,
    pin: bool,
    memory_max: Option<usize>,
}

impl fmt::Debug for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stages = self.stages.iter().map(|s| (&s.id, s.spec.operator()));
        f.debug_map().entries(stages).finish()
    }
}

impl Graph {
    /// A graph without stages.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a stage that has no inputs yet. `id` names the stage in queries, metrics and errors.
    pub fn add(&mut self, id: impl Into<String>, spec: impl OperatorSpec + 'static) -> StageId {
        self.add_boxed(id.into(), Box::new(spec))
    }

    /// Adds a stage that reads `input`.
    pub fn add_after(
        &mut self,
        input: impl Into<OutputPort>,
        id: impl Into<String>,
        spec: impl OperatorSpec + 'static,
    ) -> StageId {
        let stage = self.add(id, spec);
        self.connect(input, stage);
        stage
    }

    pub(crate) fn add_boxed(&mut self, id: String, spec: Box<dyn OperatorSpec>) -> StageId {
        self.stages.push(Stage { id, spec, inputs: Vec::new(), cores: Vec::new(), workers: None });
        StageId(self.stages.len() - 1)
    }

    /// Makes `output` the next input of stage `to`: the input of its next port or, for an operator
    /// with one port, one more stream into that port.
    ///
    /// # Examples
    /// ```
    /// # mod pipeline { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/numbers.rs")); }
    /// # use pipeline::*;
    /// # use trommel_engine::graph::Graph;
    /// # use trommel_engine::runtime::RunOptions;
    /// let mut graph = Graph::new();
    /// let sum = graph.add("sum", Sum(0));
    /// for (id, end) in [("few", 10), ("many", 500)] {
    ///     let numbers = graph.add(id, Numbers(0, end));
    ///     graph.connect(numbers, sum);
    /// }
    /// let metrics = graph.build()?.run(RunOptions::new())?;
    /// assert_eq!(metrics.stage("sum").unwrap().items_in(), 510);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn connect(&mut self, output: impl Into<OutputPort>, to: StageId) -> &mut Self {
        self.stages[to.0].inputs.push(output.into());
        self
    }

    /// Gives the parts of `stage` threads on these cores: part *i* runs on core *i*, and further
    /// parts run on the last core.
    pub fn cores(&mut self, stage: StageId, cores: impl Into<Vec<usize>>) -> &mut Self {
        self.stages[stage.0].cores = cores.into();
        self
    }

    /// Sets the number of workers that do the work of `stage` side by side, and of the divided
    /// stages before and after it. By default, a stage that can be [divided](Division) has a worker
    /// for each core that the process may use, where this pays; 1 keeps the stage in one place.
    pub fn workers(&mut self, stage: StageId, workers: usize) -> &mut Self {
        self.stages[stage.0].workers = Some(workers.max(1));
        self
    }

    /// Sets the placement of stages that name no core.
    ///
    /// # Examples
    /// ```
    /// # mod pipeline { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/numbers.rs")); }
    /// # use pipeline::*;
    /// # use trommel_engine::graph::Graph;
    /// use trommel_engine::placement::Placement;
    ///
    /// let mut graph = Graph::new();
    /// let numbers = graph.add("numbers", Numbers(0, 10));
    /// graph.add_after(numbers, "sum", Sum(0));
    /// graph.placement(Placement::Fused);
    /// assert_eq!(graph.build()?.plan().groups.len(), 1, "one thread");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn placement(&mut self, placement: Placement) -> &mut Self {
        self.placement = placement;
        self
    }

    /// Pins every thread to a core of its own, not only the threads of named cores. Pinning pays on
    /// a machine without other load; by default the operating system places the threads.
    pub fn pin(&mut self, pin: bool) -> &mut Self {
        self.pin = pin;
        self
    }

    /// Limits the memory of state that grows with the stream to `bytes` for all stages together;
    /// by default, to half of the memory that the process may use.
    pub fn memory_max(&mut self, bytes: usize) -> &mut Self {
        self.memory_max = Some(bytes);
        self
    }
}

/// A stage of a [`Topology`].
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct StageInfo {
    /// The id of the stage.
    pub id: String,
    /// The operator of the stage.
    pub operator: &'static str,
    /// The inputs of the stage: stages, or `stage.port` of stages with several outputs.
    pub inputs: Vec<String>,
    /// Schema of each output port.
    pub outputs: Vec<SchemaRef>,
    /// Names of the output ports, if there are several. The id of the stage names a first output
    /// without a name.
    pub output_ports: &'static [&'static str],
    /// Whether the stage reads standard input.
    pub reads_stdin: bool,
    /// The way in which the work of the stage is divided over workers.
    pub division: Division,
    /// The parts of the stage, as indices into [`Topology::parts`].
    pub parts: Vec<usize>,
    /// The parts that do work side by side: copies, workers, or one part.
    pub(crate) beside: Range<usize>,
    /// For each output, the parts that its rows leave.
    pub(crate) exits: Vec<Exit>,
    /// Things outside of the pipeline that the stage reads and writes.
    pub claims: Vec<Claim>,
}

impl StageInfo {
    /// The name by which a configuration reads an output port: `stage` or `stage.port`.
    #[must_use]
    pub fn output_name(&self, port: usize) -> String {
        output_name(&self.id, self.output_ports, port)
    }

    /// The parts that queries go to: the first part or, if it has a partial state, its copies.
    pub(crate) fn asked_parts(&self) -> Range<usize> {
        let first = self.parts[0];
        match self.division {
            Division::Partial if self.beside.contains(&first) => self.beside.clone(),
            _ => first..first + 1,
        }
    }

    /// The parts whose threads a query needs, although a part has used its input up: those of a
    /// partial state.
    pub(crate) fn kept_parts(&self) -> Range<usize> {
        match self.division {
            Division::Partial => self.parts[0]..self.beside.end,
            _ => self.asked_parts(),
        }
    }

    /// Number of workers that do the work of the stage side by side.
    #[must_use]
    pub fn workers(&self) -> usize {
        self.beside.len()
    }
}

/// The name by which a configuration reads an output of the stage `id`.
fn output_name(id: &str, output_ports: &[&str], port: usize) -> String {
    match output_ports.get(port) {
        Some(name) if !name.is_empty() => format!("{id}.{name}"),
        _ => id.to_owned(),
    }
}

/// The parts that the rows of an output leave: one part or, if the part is divided, its copies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Exit {
    pub(crate) parts: Range<usize>,
    /// The port of each part.
    pub(crate) port: usize,
}

/// A part of a [`Topology`], with its stage.
#[derive(Debug)]
pub(crate) struct PlacedPart {
    /// Id of the stage.
    pub(crate) stage: String,
    /// Id of the stage, followed by a slash and the part's name if there are several parts.
    pub(crate) label: String,
    pub(crate) operator: &'static str,
    pub(crate) part: Part,
    /// The columns of the output ports of the stage, if the part sends rows.
    pub(crate) declared: Vec<SchemaRef>,
    /// Number of ports for chunks to later parts of the stage. These ports come before the ports
    /// for rows.
    pub(crate) chunk_ports: usize,
}

/// The way of data from an output port of one part to an input port of another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Link {
    pub(crate) from: usize,
    pub(crate) from_port: usize,
    pub(crate) to: usize,
    pub(crate) to_port: usize,
    pub(crate) route: Route,
}

/// The way in which the messages of an output are shared among the copies of producer and
/// consumer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Route {
    /// From one part to one part.
    Direct,
    /// From one copy to the copy with the same number.
    Lane,
    /// From one part to one of the copies of a consumer: each message is a piece. Links with the
    /// same number lead to the same consumer.
    Dealt(usize),
    /// From one of the copies of a producer to one part, which takes the messages in the order of
    /// the pieces. Links with the same number are the copies of one input of the part.
    Gathered(usize),
    /// The state of a copy, to the part that merges the states.
    Merged,
}

impl Route {
    pub(crate) fn is_dealt(self) -> bool {
        matches!(self, Self::Dealt(_))
    }

    /// The lanes among those of the consumer, and whether their messages come in order.
    pub(crate) fn lanes(self) -> Option<(usize, bool)> {
        match self {
            Self::Gathered(gather) => Some((gather, true)),
            Self::Merged => Some((0, false)),
            Self::Direct | Self::Lane | Self::Dealt(_) => None,
        }
    }
}

/// The way of replies from one part of an operator back to an earlier part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ReplyPath {
    pub(crate) from: usize,
    pub(crate) to: usize,
}

/// The way of queries from one part of an operator to the next part, or to one of its copies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct QueryPath {
    pub(crate) from: usize,
    pub(crate) to: usize,
}

/// A checked pipeline whose operators know their inputs: ready to start.
///
/// # Examples
/// ```
/// # mod pipeline { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/numbers.rs")); }
/// # use pipeline::*;
/// # use trommel_engine::graph::Graph;
/// let mut graph = Graph::new();
/// let numbers = graph.add("numbers", Numbers(0, 10));
/// graph.add_after(numbers, "sum", Sum(0));
/// let topology = graph.build()?;
/// assert_eq!(topology.parts().collect::<Vec<_>>(), ["numbers", "sum"]);
/// assert_eq!(topology.links().collect::<Vec<_>>(), [(0, 1)]);
/// assert_eq!(topology.stages()[1].inputs, ["numbers"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Topology {
    pub(crate) stages: Vec<StageInfo>,
    pub(crate) parts: Vec<PlacedPart>,
    pub(crate) links: Vec<Link>,
    pub(crate) replies: Vec<ReplyPath>,
    pub(crate) queries: Vec<QueryPath>,
    pub(crate) plan: Plan,
    pub(crate) memory: MemoryBudget,
    pub(crate) claims: Ledger,
}

impl Topology {
    /// The stages, in topological order.
    #[must_use]
    pub fn stages(&self) -> &[StageInfo] {
        &self.stages
    }

    /// The labels of all parts, in topological order: the stage's id, followed by a slash and the
    /// part if the stage has several.
    pub fn parts(&self) -> impl ExactSizeIterator<Item = &str> {
        self.parts.iter().map(|p| p.label.as_str())
    }

    /// The parts whose work may go to a device, by their index in [`Self::parts`], with the device.
    pub fn devices(&self) -> impl Iterator<Item = (usize, String)> + '_ {
        self.parts.iter().enumerate().filter_map(|(index, placed)| match &placed.part.body {
            Body::Operator(operator) => Some((index, operator.device()?)),
            Body::Source(_) => None,
        })
    }

    /// Claims a thing for the program that runs the pipeline, such as the file of a report. A
    /// source that finds its files by patterns leaves out files that the program writes.
    ///
    /// # Examples
    /// ```
    /// # mod pipeline { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/numbers.rs")); }
    /// # use pipeline::*;
    /// # use trommel_engine::graph::Graph;
    /// use trommel_engine::operator::{Access, Claim};
    ///
    /// let mut graph = Graph::new();
    /// let numbers = graph.add("numbers", Numbers(0, 10));
    /// graph.add_after(numbers, "sum", Sum(0));
    /// let mut topology = graph.build()?;
    /// topology.claim(&Claim::new(b"inode 42".to_vec(), "run.json", "--report"))?;
    /// let config = Claim::new(b"inode 42".to_vec(), "run.json", "FILE").with(Access::Reads);
    /// assert_eq!(
    ///     topology.claim(&config).unwrap_err().to_string(),
    ///     "run.json is an output, of `--report`; an input cannot be an output of its run"
    /// );
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If a stage, or the program itself, has a claim that excludes this one.
    pub fn claim(&mut self, claim: &Claim) -> Result<(), Box<ClaimConflict>> {
        self.claims.claim(None, claim)
    }

    /// The memory that the stages share.
    #[must_use]
    pub fn memory(&self) -> &MemoryBudget {
        &self.memory
    }

    /// The parts of each thread, and the core of the thread.
    #[must_use]
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Pairs of parts between which data flows.
    pub fn links(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        self.links.iter().map(|l| (l.from, l.to))
    }
}
