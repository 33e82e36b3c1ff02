//! A configured operator before it is bound to its inputs, and the surroundings of the stage at
//! that moment.

use std::ops::RangeInclusive;

use arrow_schema::SchemaRef;

use super::claim::Outputs;
use super::demand::Demand;
use super::fragment::Fragment;
use crate::error::BindError;
use crate::memory::MemoryBudget;

/// The surroundings of a stage when it is bound.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct BindContext {
    /// Number of cores that the configuration names for the stage.
    pub cores: usize,
    /// Number of threads that the parts of the stage can have: the number of workers that the
    /// configuration asks for; or else one for each core that it names, or for each core of the
    /// process. 1 if all parts share a thread.
    pub threads: usize,
    /// The number of workers that the configuration asks for, if it does.
    pub workers: Option<usize>,
    /// The memory that the stages of the pipeline share. State that grows with the stream reserves
    /// its memory here.
    pub memory: MemoryBudget,
    /// The things that the run writes. All claims are included when the run starts.
    pub outputs: Outputs,
    /// Whether a source of the input [reads the input again](Fragment::rereads) in a later run: a
    /// state that a later run goes on with would count everything twice.
    pub rereads: bool,
    /// The part of the first output that later stages look at.
    pub demand: Demand,
}

impl BindContext {
    /// A stage with `cores` cores by name, a thread for each of these cores or one thread, and half
    /// of the memory of the process.
    #[must_use]
    pub fn new(cores: usize) -> Self {
        let (memory, outputs) = (MemoryBudget::of_process(), Outputs::default());
        let (rereads, demand) = (false, Demand::all());
        let threads = cores.max(1);
        Self { cores, threads, workers: None, memory, outputs, rereads, demand }
    }

    /// Sets the number of threads that the parts of the stage can have.
    #[must_use]
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = threads;
        self
    }

    /// Sets the number of workers that the configuration asks for, which each can have a thread.
    #[must_use]
    pub fn workers(mut self, workers: Option<usize>) -> Self {
        self.threads = workers.unwrap_or(self.threads);
        self.workers = workers;
        self
    }

    /// Gives the stage this budget.
    #[must_use]
    pub fn memory(mut self, budget: MemoryBudget) -> Self {
        self.memory = budget;
        self
    }

    /// Says whether a source of the input reads the input again in a later run.
    #[must_use]
    pub fn rereads(mut self, rereads: bool) -> Self {
        self.rereads = rereads;
        self
    }

    /// Sets the part of the first output that later stages look at.
    #[must_use]
    pub fn demand(mut self, demand: Demand) -> Self {
        self.demand = demand;
        self
    }

    /// Gives the stage these outputs of the run.
    #[must_use]
    pub fn outputs(mut self, outputs: Outputs) -> Self {
        self.outputs = outputs;
        self
    }
}

/// A configured operator that does not know its inputs yet. A graph is described by such
/// specifications.
pub trait OperatorSpec: Send {
    /// The operator's name in configurations, such as `frequent_items`.
    fn operator(&self) -> &'static str;

    /// Number of input ports: `0..=0` for a source, `1..=usize::MAX` for any number. An operator
    /// with exactly one port accepts several inputs of the same schema and gets their batches as
    /// the batches come. The provided method answers one port.
    fn input_ports(&self) -> RangeInclusive<usize> {
        1..=1
    }

    /// Names of the output ports, if there are several. A configuration reads an output as
    /// `stage.port`, and a first output without a name as `stage`.
    fn output_ports(&self) -> &'static [&'static str] {
        &[]
    }

    /// Makes the operator send rows that it cannot use to the output `rejected`, unless the
    /// configuration says what to do with these rows. Returns whether the operator has this output
    /// now. The call comes before all others, for a pipeline that collects the rejected rows of all
    /// stages.
    fn reject(&mut self) -> bool {
        false
    }

    /// The part of the rows at input `port` that the operator looks at, given the part of its first
    /// output that later stages look at; the provided method answers all rows. The call comes
    /// before [`OperatorSpec::bind`].
    fn demand(&self, _port: usize, _output: &Demand) -> Demand {
        Demand::all()
    }

    /// Whether the operator reads standard input, which a process has once.
    fn reads_stdin(&self) -> bool {
        false
    }

    /// Checks the input schemas (one a port) and builds the operator.
    ///
    /// # Errors
    /// If a column is missing or has the wrong type, or a parameter does not fit the inputs or the
    /// machine.
    fn bind(
        self: Box<Self>,
        inputs: &[SchemaRef],
        context: BindContext,
    ) -> Result<Fragment, BindError>;
}
