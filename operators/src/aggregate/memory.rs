//! The memory of the operator, which its parts share.

use trommel_engine::error::BindError;
use trommel_engine::memory::MemoryBudget;

use crate::shared::budget::{Allowance, Budget};

/// Most bytes that a worker takes when no number is given: 4 GiB.
const MEMORY_MAX: usize = 1 << 32;

/// The memory of the stage, which workers and panes share.
#[derive(Debug, Clone)]
pub(crate) struct Memory {
    shared: MemoryBudget,
    most: usize,
    /// The bytes of the stage in the memory of the pipeline, if the stage has a number of its own.
    _own: Option<Allowance>,
}

impl Memory {
    /// The memory of a stage whose parameter `memory_max` is given.
    pub(crate) fn new(
        memory_max: Option<usize>,
        pipeline: &MemoryBudget,
    ) -> Result<Self, BindError> {
        let Some(bytes) = memory_max else {
            return Ok(Self { shared: pipeline.clone(), most: MEMORY_MAX, _own: None });
        };
        let own = Allowance::of_stage(memory_max, bytes, pipeline)?;
        Ok(Self { shared: MemoryBudget::new(bytes), most: bytes, _own: Some(own) })
    }

    /// A budget for the groups of a worker or of a pane.
    pub(crate) fn budget(&self) -> Budget {
        let allowance = Allowance::of_stage(None, self.most, &self.shared);
        allowance.expect("nothing is reserved at first").budget()
    }
}
