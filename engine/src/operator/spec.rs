//! A configured operator before it is bound, and what it learns when it is bound.

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
    /// Number of cores that the stage was given by name.
    pub cores: usize,
    /// Number of threads that the parts of the stage can have: one for each core that it was given
    /// by name, or else for each core of the process, if parts do not share one thread.
    pub threads: usize,
    /// The memory that the stages of the pipeline share. State that grows with the stream
    /// reserves here.
    pub memory: MemoryBudget,
    /// The things that the run writes. All claims are in it when the run starts.
    pub outputs: Outputs,
    /// Whether a source of its input [reads it again](Fragment::rereads) in a later run: a state
    /// that a later run goes on with would have everything twice.
    pub rereads: bool,
    /// The part of its first output that later stages look at.
    pub demand: Demand,
}

impl BindContext {
    /// A stage that was given `cores` cores by name, with a thread for each of them or one, and
    /// half of the memory of the process.
    #[must_use]
    pub fn new(cores: usize) -> Self {
        let (memory, outputs) = (MemoryBudget::of_process(), Outputs::default());
        let (rereads, demand) = (false, Demand::all());
        Self { cores, threads: cores.max(1), memory, outputs, rereads, demand }
    }

    /// Sets the number of threads that the parts of the stage can have.
    #[must_use]
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = threads;
        self
    }

    /// Gives the stage this budget.
    #[must_use]
    pub fn memory(mut self, budget: MemoryBudget) -> Self {
        self.memory = budget;
        self
    }

    /// Says whether a source of its input reads it again in a later run.
    #[must_use]
    pub fn rereads(mut self, rereads: bool) -> Self {
        self.rereads = rereads;
        self
    }

    /// Says what later stages look at.
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

/// A configured operator that does not know its inputs yet. Graphs are built from these.
pub trait OperatorSpec: Send {
    /// The operator's name in configurations, such as `frequent_items`.
    fn operator(&self) -> &'static str;

    /// Number of input ports: `0..=0` for a source, `1..=usize::MAX` for any number. An operator
    /// with exactly one port accepts several inputs of the same schema and sees their batches as
    /// they come, and one port is what an operator has unless it says otherwise.
    fn input_ports(&self) -> RangeInclusive<usize> {
        1..=1
    }

    /// Names of its output ports, if it has several: a configuration reads one as `stage.port`, and
    /// a first one without a name as `stage`.
    fn output_ports(&self) -> &'static [&'static str] {
        &[]
    }

    /// Sends the rows that it cannot use to its output `rejected`, unless it was told to do
    /// something else with them. Whether it has this output now. Called before anything else, for a
    /// pipeline that collects the rejected rows of all stages.
    fn reject(&mut self) -> bool {
        false
    }

    /// The part of the rows at input `port` that it looks at, where later stages look at this
    /// part of its first output; the provided method answers all of them. Called before
    /// [`OperatorSpec::bind`].
    fn demand(&self, _port: usize, _output: &Demand) -> Demand {
        Demand::all()
    }

    /// Whether it reads standard input, which a process has once.
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
